package reference

import (
	"fmt"
	"slices"
)

// block is one KV block. A block without owners is free and keeps its hash until it is allocated
// again.
type block struct {
	owners     int
	hash       string // empty while the block is not full
	registered int    // sequence number of the registration of its hash
	// index is its place in sequences, tokens the hash of these up to its end.
	index  int
	tokens string
}

// cache is the KV cache of one replica.
type cache struct {
	blocks []block
	free   []int // next to allocate first
	// unhashedFirst: released blocks without a hash are allocated next, not last.
	unhashedFirst bool
	// registrations, duplicates and evictions count hashes that were registered, registered twice
	// and lost.
	registrations, duplicates, evictions int
	// given are the blocks with a hash that were allocated, while a batch was formed.
	given []block
	// taken are the blocks that were allocated or hit while a batch was formed.
	taken []int
}

// newCache returns n free blocks in ascending order.
func newCache(n int, unhashedFirst bool) cache {
	c := cache{blocks: make([]block, n), unhashedFirst: unhashedFirst}
	for b := range n {
		c.free = append(c.free, b)
	}
	return c
}

// lookup returns the block with a hash. Of several it returns the one registered first.
func (c *cache) lookup(hash string) (found int, ok bool) {
	for b := range c.blocks {
		if c.blocks[b].hash != hash {
			continue
		}
		if !ok || c.blocks[b].registered < c.blocks[found].registered {
			found, ok = b, true
		}
	}
	return found, ok
}

// pin adds an owner to a hit block; a free block leaves the free list.
func (c *cache) pin(b int) {
	if c.blocks[b].owners == 0 {
		i := slices.Index(c.free, b)
		c.free = slices.Delete(c.free, i, i+1)
	}
	c.blocks[b].owners++
	c.taken = append(c.taken, b)
}

// allocate takes the first free block, which loses its hash.
func (c *cache) allocate() int {
	b := c.free[0]
	c.free = c.free[1:]
	if c.blocks[b].hash != "" {
		c.evictions++
		c.given = append(c.given, c.blocks[b])
	}
	c.blocks[b] = block{owners: 1}
	c.taken = append(c.taken, b)
	return b
}

// register sets the hash of a full block, even if another block has the same one.
func (c *cache) register(b int, hash string) {
	if _, ok := c.lookup(hash); ok {
		c.duplicates++
	}
	c.registrations++
	c.blocks[b].hash = hash
	c.blocks[b].registered = c.registrations
}

// release removes one owner from each block of a request, last block first, so that the tail of a
// sequence is reallocated before its head.
func (c *cache) release(blocks []int) {
	first := 0
	for _, b := range slices.Backward(blocks) {
		if b == null {
			continue
		}
		c.blocks[b].owners--
		switch {
		case c.blocks[b].owners > 0:
		case c.unhashedFirst && c.blocks[b].hash == "":
			c.free = slices.Insert(c.free, first, b)
			first++
		default:
			c.free = append(c.free, b)
		}
	}
}

// used is the number of blocks with owners.
func (c *cache) used() int { return len(c.blocks) - len(c.free) }

// check panics unless the owners of every block are the running requests that hold it, and the free
// list has each block without owners once and no other.
func (c *cache) check(running []*request) {
	held := make([]int, len(c.blocks))
	for _, q := range running {
		for _, b := range q.held() {
			held[b]++
		}
	}
	listed := make([]int, len(c.blocks))
	for _, b := range c.free {
		listed[b]++
	}
	for b, owners := range held {
		free := 0
		if owners == 0 {
			free = 1
		}
		if c.blocks[b].owners != owners || listed[b] != free {
			panic(fmt.Sprintf("reference: block %d: %d owners, held by %d, %d times in the free list",
				b, c.blocks[b].owners, owners, listed[b]))
		}
	}
}
