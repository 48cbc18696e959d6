package kv

import "slices"

// PrefixIndex knows which blocks are hashed in each of several caches without groups, with the same block size.
// It is the Watcher of all these caches. One Match finds the hits of a prompt in all of them, at a cost that grows
// with the number of caches that have blocks of the prompt's nodes.
type PrefixIndex struct {
	blockSize int32
	// heads[n] is the first chunk of node n's list, or none. spare is the first chunk of the list of those
	// that are not in use.
	heads  []int32
	chunks []chunk
	spare  int32
	hits   []int32 // by number of the cache, in blocks: the result of Match
}

// chunk is a part of the list of a node's extents, which is in no particular order. Its extents are the
// first used ones. Only the first chunk of a list can have room for more.
type chunk struct {
	next, used int32
	extents    [5]cachedExtent
}

// cachedExtent is blocks lo to hi of a node, hashed in a cache. Two extents of one node in one cache have
// a gap between them.
type cachedExtent struct{ cache, lo, hi int32 }

// NewPrefixIndex returns an index without caches.
func NewPrefixIndex(blockSize int) *PrefixIndex {
	return &PrefixIndex{blockSize: int32(blockSize), spare: none}
}

// BlockSize returns the number of tokens in a block.
func (p *PrefixIndex) BlockSize() int { return int(p.blockSize) }

// Watch adds c to the index as cache i and makes the index the watcher of c. No block of c may be hashed
// yet, unless c is a clone of the cache i of which the index is a clone.
func (p *PrefixIndex) Watch(i int32, c *Cache) {
	p.hits = append(p.hits, make([]int32, max(0, int(i)+1-len(p.hits)))...)
	c.Watch(indexWatcher{p, i})
}

// Clone returns an independent copy that watches no cache yet.
func (p *PrefixIndex) Clone() *PrefixIndex {
	return &PrefixIndex{blockSize: p.blockSize, heads: slices.Clone(p.heads), chunks: slices.Clone(p.chunks),
		spare: p.spare}
}

// Match returns for each cache the number of blocks, not tokens, of its Cache.Match. Blocks that growing
// sequences fill count when they have been reported. The index in the slice is the number of the cache. The
// slice is valid until the next call.
func (p *PrefixIndex) Match(path Path, n int) []int32 {
	clear(p.hits)
	maxBlocks, done := int32(n)/p.blockSize, int32(0)
	for _, span := range path {
		end := min(span.End/p.blockSize, maxBlocks)
		if end <= done {
			continue
		}
		complete := false // whether some cache has hits up to end
		for k := p.first(span.Node); k != none; k = p.chunks[k].next {
			c := &p.chunks[k]
			for _, e := range c.extents[:c.used] {
				if e.lo <= done && done < e.hi && p.hits[e.cache] == done {
					p.hits[e.cache] = min(e.hi, end)
					complete = complete || e.hi >= end
				}
			}
		}
		if !complete {
			break
		}
		done = end
	}
	return p.hits
}

// first returns the first chunk of node n, or none.
func (p *PrefixIndex) first(n Node) int32 {
	if int(n) >= len(p.heads) {
		return none
	}
	return p.heads[n]
}

// add adds an extent of node n.
func (p *PrefixIndex) add(n Node, e cachedExtent) {
	for int(n) >= len(p.heads) {
		p.heads = append(p.heads, none)
	}
	k := p.heads[n]
	if k == none || int(p.chunks[k].used) == len(p.chunks[k].extents) {
		next := k
		if k = p.spare; k != none {
			p.spare = p.chunks[k].next
		} else {
			k = int32(len(p.chunks))
			p.chunks = append(p.chunks, chunk{})
		}
		p.chunks[k].next, p.chunks[k].used = next, 0
		p.heads[n] = k
	}
	c := &p.chunks[k]
	c.extents[c.used] = e
	c.used++
}

// take removes and returns an extent of node n in cache that overlaps or is adjacent to blocks lo to hi.
func (p *PrefixIndex) take(n Node, cache, lo, hi int32) (e cachedExtent, found bool) {
	for k := p.first(n); k != none; k = p.chunks[k].next {
		c := &p.chunks[k]
		for i := range c.extents[:c.used] {
			if e = c.extents[i]; e.cache != cache || e.hi < lo || hi < e.lo {
				continue
			}
			head := p.heads[n] // its last extent fills the gap
			first := &p.chunks[head]
			first.used--
			c.extents[i] = first.extents[first.used]
			if first.used == 0 {
				p.heads[n], first.next, p.spare = first.next, p.spare, head
			}
			return e, true
		}
	}
	return cachedExtent{}, false
}

// indexWatcher passes the notifications of one cache to an index.
type indexWatcher struct {
	index *PrefixIndex
	cache int32
}

// Inserted is called by the cache.
func (w indexWatcher) Inserted(_ int, n Node, lo, hi int32) {
	for { // merges the adjacent extents
		e, found := w.index.take(n, w.cache, lo, hi)
		if !found {
			w.index.add(n, cachedExtent{w.cache, lo, hi})
			return
		}
		lo, hi = min(lo, e.lo), max(hi, e.hi)
	}
}

// Evicted is called by the cache. The blocks are all in one extent.
func (w indexWatcher) Evicted(_ int, n Node, lo, hi int32) {
	e, found := w.index.take(n, w.cache, lo+1, hi-1) // the overlapping one
	if !found {
		panic("kv: evicted blocks are not in the index")
	}
	if e.lo < lo {
		w.index.add(n, cachedExtent{w.cache, e.lo, lo})
	}
	if hi < e.hi {
		w.index.add(n, cachedExtent{w.cache, hi, e.hi})
	}
}
