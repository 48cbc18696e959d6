package kv

// Given are hashed blocks Lo to Hi of a node that were taken for others, the last one first.
type Given struct {
	Node   Node
	Lo, Hi int32
}

// KeepGiven lets the cache note the hashed blocks that are taken. It must be new and without groups.
func (c *Cache) KeepGiven() { c.keepsGiven, c.observed = true, true }

// Given returns, in order, the hashed blocks that were taken since the last call of DropGiven. Their nodes stay alive
// until then.
func (c *Cache) Given() []Given { return c.given }

// DropGiven drops what Given returns.
func (c *Cache) DropGiven() {
	for _, x := range c.given {
		c.tree.unref(x.Node)
	}
	c.given = c.given[:0]
}

// give notes that blocks lo to hi of a node were taken.
func (c *Cache) give(n Node, lo, hi int32) {
	c.tree.ref(n)
	if last := len(c.given) - 1; last >= 0 && c.given[last].Node == n && c.given[last].Lo == hi {
		c.given[last].Lo = lo
		c.tree.unref(n)
		return
	}
	c.given = append(c.given, Given{n, lo, hi})
}
