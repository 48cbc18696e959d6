package reference

import (
	"fmt"
	"slices"
)

// block is one block of KV memory. A block without owners is free, and keeps
// its hash until it is given away.
type block struct {
	owners     int
	hash       string // "" while the block is not full
	registered int    // when it got its hash, counted over all blocks
}

// cache is the KV memory of one replica.
type cache struct {
	blocks []block
	free   []int // the next to give away first
	// registrations, duplicates and evictions count hashes given, given twice
	// and lost.
	registrations, duplicates, evictions int
}

// newCache has all n blocks free in rising order.
func newCache(n int) cache {
	c := cache{blocks: make([]block, n)}
	for b := range n {
		c.free = append(c.free, b)
	}
	return c
}

// lookup returns the block with this hash, of several the one registered first.
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

// share gives a hit block one more owner; if it had none it leaves the free list.
func (c *cache) share(b int) {
	if c.blocks[b].owners == 0 {
		i := slices.Index(c.free, b)
		c.free = slices.Delete(c.free, i, i+1)
	}
	c.blocks[b].owners++
}

// take gives the first free block its first owner; it loses its hash.
func (c *cache) take() int {
	b := c.free[0]
	c.free = c.free[1:]
	if c.blocks[b].hash != "" {
		c.evictions++
	}
	c.blocks[b] = block{owners: 1}
	return b
}

// register gives a full block its hash, whether or not another one has it.
func (c *cache) register(b int, hash string) {
	if _, ok := c.lookup(hash); ok {
		c.duplicates++
	}
	c.registrations++
	c.blocks[b].hash = hash
	c.blocks[b].registered = c.registrations
}

// release takes one owner from each of a request's blocks, the last block
// first, so that of a sequence the tail is given away before the head.
func (c *cache) release(blocks []int) {
	for _, b := range slices.Backward(blocks) {
		c.blocks[b].owners--
		if c.blocks[b].owners == 0 {
			c.free = append(c.free, b)
		}
	}
}

// used is how many blocks have owners.
func (c *cache) used() int { return len(c.blocks) - len(c.free) }

// check panics unless every block has as many owners as running requests hold
// it, and is in the free list, once, if and only if that is none.
func (c *cache) check(running []*request) {
	held := make([]int, len(c.blocks))
	for _, q := range running {
		for _, b := range slices.Concat(q.blocks, q.extra) {
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
