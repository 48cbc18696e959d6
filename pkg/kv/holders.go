package kv

import "slices"

// Holders knows which of several caches with the same block size hold the named blocks of each node, so
// that one look at a prompt's nodes gives the prefix hits of all caches. The cost of a look grows with
// the number of caches that hold the nodes, not with that of all caches. It follows the notifications of
// the caches that Watch gives it.
type Holders struct {
	blockSize int32
	// heads holds the first chunk of each node, or none. Chunks form lists; spare is the list of those
	// that are not in use.
	heads  []int32
	chunks []chunk
	spare  int32
	hits   []int32 // by cache: the result of Match
}

// chunk is a part of a node's holdings, in no particular order. Only the first chunk of a list has room.
type chunk struct {
	next, used int32
	holdings   [5]holding
}

// holding is findable blocks in one cache. Two holdings of a cache and node neither overlap nor touch.
type holding struct{ cache, lo, hi int32 }

// NewHolders returns an index without caches.
func NewHolders(blockSize int) *Holders { return &Holders{blockSize: int32(blockSize), spare: none} }

// BlockSize returns the number of tokens in a block.
func (h *Holders) BlockSize() int { return int(h.blockSize) }

// Watch makes h the watcher of an empty cache, or of a cache whose content h knows, under number i.
func (h *Holders) Watch(i int32, c *Cache) {
	h.hits = append(h.hits, make([]int32, max(0, int(i)+1-len(h.hits)))...)
	c.Watch(holder{h, i})
}

// Clone returns an independent copy that watches no cache yet.
func (h *Holders) Clone() *Holders {
	return &Holders{blockSize: h.blockSize, heads: slices.Clone(h.heads), chunks: slices.Clone(h.chunks),
		spare: h.spare}
}

// Match returns by cache how many leading blocks of the first upto tokens of path it holds: what Cache.Match
// returns, in blocks. The slice is valid until the next call.
func (h *Holders) Match(path Path, upto int) []int32 {
	clear(h.hits)
	limit, done := int32(upto)/h.blockSize, int32(0)
	for _, span := range path {
		end := min(span.End/h.blockSize, limit)
		if end <= done {
			continue
		}
		complete := false // some cache holds all blocks so far
		for k := h.first(span.Node); k != none; k = h.chunks[k].next {
			c := &h.chunks[k]
			for _, x := range c.holdings[:c.used] {
				if x.lo <= done && done < x.hi && h.hits[x.cache] == done {
					h.hits[x.cache] = min(x.hi, end)
					complete = complete || x.hi >= end
				}
			}
		}
		if !complete {
			break
		}
		done = end
	}
	return h.hits
}

func (h *Holders) first(n Node) int32 {
	if int(n) >= len(h.heads) {
		return none
	}
	return h.heads[n]
}

// add adds a holding of node n.
func (h *Holders) add(n Node, x holding) {
	for int(n) >= len(h.heads) {
		h.heads = append(h.heads, none)
	}
	k := h.heads[n]
	if k == none || int(h.chunks[k].used) == len(h.chunks[k].holdings) {
		next := k
		if k = h.spare; k != none {
			h.spare = h.chunks[k].next
		} else {
			k = int32(len(h.chunks))
			h.chunks = append(h.chunks, chunk{})
		}
		h.chunks[k].next, h.chunks[k].used = next, 0
		h.heads[n] = k
	}
	c := &h.chunks[k]
	c.holdings[c.used] = x
	c.used++
}

// take removes and returns the first holding of a cache and node that overlaps or touches blocks lo to hi.
func (h *Holders) take(n Node, cache, lo, hi int32) (x holding, found bool) {
	for k := h.first(n); k != none; k = h.chunks[k].next {
		c := &h.chunks[k]
		for i := range c.holdings[:c.used] {
			if x = c.holdings[i]; x.cache != cache || x.hi < lo || hi < x.lo {
				continue
			}
			head := h.heads[n] // its last holding fills the gap
			first := &h.chunks[head]
			first.used--
			c.holdings[i] = first.holdings[first.used]
			if first.used == 0 {
				h.heads[n], first.next, h.spare = first.next, h.spare, head
			}
			return x, true
		}
	}
	return holding{}, false
}

// holder forwards the notifications of one cache.
type holder struct {
	holders *Holders
	cache   int32
}

// Inserted is called by the cache.
func (w holder) Inserted(n Node, lo, hi int32) {
	for { // at most a neighbor on each side
		x, found := w.holders.take(n, w.cache, lo, hi)
		if !found {
			w.holders.add(n, holding{w.cache, lo, hi})
			return
		}
		lo, hi = min(lo, x.lo), max(hi, x.hi)
	}
}

// Evicted is called by the cache. The blocks are in one holding.
func (w holder) Evicted(n Node, lo, hi int32) {
	x, found := w.holders.take(n, w.cache, lo+1, hi-1)
	if !found {
		panic("kv: evicted blocks have no holder")
	}
	if x.lo < lo {
		w.holders.add(n, holding{w.cache, x.lo, lo})
	}
	if hi < x.hi {
		w.holders.add(n, holding{w.cache, hi, x.hi})
	}
}
