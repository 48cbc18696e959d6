package kv

import "slices"

// PrefixIndex knows which of several caches with the same block size have a block hashed. One Match finds
// the hits of a prompt in all of them. Its cost grows with the number of caches that have blocks of the
// prompt's nodes, not with the number of all caches. The index is the Watcher of each cache.
type PrefixIndex struct {
	blockSize int32
	// heads has the first chunk of each node's list of chunks, or none. spare is the first chunk of the
	// list of those not in use.
	heads  []int32
	chunks []chunk
	spare  int32
	hits   []int32 // by number of the cache, in blocks: the result of Match
}

// chunk has some of a node's cached extents in any order: the first used of extents. All chunks of a list
// but the first are full.
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
// yet, unless both the index and c are clones and c was cache i before.
func (p *PrefixIndex) Watch(i int32, c *Cache) {
	p.hits = append(p.hits, make([]int32, max(0, int(i)+1-len(p.hits)))...)
	c.Watch(indexWatcher{p, i})
}

// Clone returns an independent copy that watches no cache yet.
func (p *PrefixIndex) Clone() *PrefixIndex {
	return &PrefixIndex{blockSize: p.blockSize, heads: slices.Clone(p.heads), chunks: slices.Clone(p.chunks),
		spare: p.spare}
}

// Match returns for each cache what its Match returns for the first n tokens of path, but in blocks. Blocks
// that growing sequences fill count when they have been reported. The slice, indexed by the number of the
// cache, is valid until the next call.
func (p *PrefixIndex) Match(path Path, n int) []int32 {
	clear(p.hits)
	maxBlocks, done := int32(n)/p.blockSize, int32(0)
	for _, span := range path {
		end := min(span.End/p.blockSize, maxBlocks)
		if end <= done {
			continue
		}
		complete := false // whether all blocks before end are hits in some cache
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

// take removes and returns one extent of node n in a cache that has, or is adjacent to, any of blocks lo
// to hi.
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
func (w indexWatcher) Inserted(n Node, lo, hi int32) {
	for { // blocks lo to hi grow by each adjacent extent
		e, found := w.index.take(n, w.cache, lo, hi)
		if !found {
			w.index.add(n, cachedExtent{w.cache, lo, hi})
			return
		}
		lo, hi = min(lo, e.lo), max(hi, e.hi)
	}
}

// Evicted is called by the cache. The blocks are all in one extent.
func (w indexWatcher) Evicted(n Node, lo, hi int32) {
	e, found := w.index.take(n, w.cache, lo+1, hi-1) // not an adjacent one
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
