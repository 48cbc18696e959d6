package kv

// While a replica only decodes, every sequence gains a token a step. The cache
// then keeps one clock and counts, by the clock's remainder, how many
// sequences need a block, instead of visiting them.

// Grow makes s, which holds blocks for exactly tokens tokens and knows all but
// the behind newest, and all of its prompt, gain one token at each Tick from now
// on: a block of it is findable when it has been full for behind ticks.
func (c *Cache) Grow(s Seq, tokens, behind int) {
	q := &c.seqs[s]
	q.growing, q.behind, q.base = true, int32(behind), int64(tokens)-c.tick
	c.due[c.class(q.base)]++
	c.window.grow(c.class(q.base), q.base, c.tick, 1)
	if tail := q.path[len(q.path)-1].Node; c.caching && c.tree.nodes[tail].named {
		c.writers[tail] = s
	}
}

// Settle stops the growth of s: its blocks are again what Extend makes them.
func (c *Cache) Settle(s Seq) {
	c.update(s)
	q := &c.seqs[s]
	q.growing = false
	c.due[c.class(q.base)]--
	c.window.grow(c.class(q.base), q.base, c.tick, -1)
	if tail := q.path[len(q.path)-1].Node; c.caching && c.tree.nodes[tail].named {
		delete(c.writers, tail)
	}
}

// TickNeed returns how many blocks the next Tick takes.
func (c *Cache) TickNeed() int {
	need := c.due[c.phase]
	if c.window.each > 0 {
		need += c.window.need(int64(c.phase))
	}
	return int(need)
}

// Tick gives every growing sequence one token. There must be TickNeed free
// blocks.
func (c *Cache) Tick() {
	if need := c.TickNeed(); need > 0 {
		c.evict(int32(need))
	}
	if c.window.each > 0 {
		c.window.pass(c.tick)
	}
	c.tick++
	if c.phase++; c.phase == c.blockSize {
		c.phase = 0
	}
}

// Ticks returns how often Tick was called.
func (c *Cache) Ticks() int64 { return c.tick }

// Writing reports whether the prompt of s names output that a growing sequence
// of this cache is still producing.
func (c *Cache) Writing(s Seq) bool {
	if len(c.writers) == 0 {
		return false
	}
	path := c.seqs[s].path
	for _, span := range path[:len(path)-1] {
		if _, ok := c.writer(span.Node); ok {
			return true
		}
	}
	return false
}

// class is the remainder of the ticks at which a sequence of this base needs a
// block: those at which base + tick is a multiple of the block size.
func (c *Cache) class(base int64) int64 {
	b := int64(c.blockSize)
	return ((-base)%b + b) % b
}

// update brings the books of the growing sequence s up to date.
func (c *Cache) update(s Seq) {
	q := &c.seqs[s]
	tokens := q.base + c.tick
	q.blocks = c.blocksFor(int(tokens))
	q.extra = c.window.extra(q.blocks)
	c.Know(s, int(tokens)-int(q.behind))
}

// writer returns the growing sequence that produces the tokens of node n.
func (c *Cache) writer(n Node) (Seq, bool) {
	if len(c.writers) == 0 || !c.tree.nodes[n].output {
		return 0, false
	}
	s, ok := c.writers[n]
	return s, ok
}

// sync makes what is known of node n complete.
func (c *Cache) sync(n Node) {
	if s, ok := c.writer(n); ok {
		c.update(s)
	}
}
