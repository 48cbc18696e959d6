package kv

// While a replica only decodes, every sequence gains one token a step. The cache then advances one
// clock and counts, by tick modulo block size, how many sequences need a block, instead of visiting
// them.

// Grow makes s, which has the given number of tokens, gain one more at each Tick from now on. s
// must own blocks for exactly these tokens. All of them except the last lag tokens must be
// published, and so must its whole prompt. A block of s can be found once it has been full for lag
// ticks.
func (c *Cache) Grow(s Seq, tokens, lag int) {
	q := &c.seqs[s]
	q.growing, q.lag, q.base = true, int32(lag), int64(tokens)-c.tick
	c.blockDemand[c.phaseOf(q.base)]++
	c.window.addGrowing(c.phaseOf(q.base), q.base, c.tick, 1)
	if tail := q.path[len(q.path)-1].Node; c.caching && c.tree.nodes[tail].named {
		c.writers[tail] = s
	}
}

// StopGrowing ends the growth of s: from now on Extend adds its blocks.
func (c *Cache) StopGrowing(s Seq) {
	c.update(s)
	q := &c.seqs[s]
	q.growing = false
	c.blockDemand[c.phaseOf(q.base)]--
	c.window.addGrowing(c.phaseOf(q.base), q.base, c.tick, -1)
	if tail := q.path[len(q.path)-1].Node; c.caching && c.tree.nodes[tail].named {
		delete(c.writers, tail)
	}
}

// TickNeed returns how many blocks the next Tick takes.
func (c *Cache) TickNeed() int {
	need := c.blockDemand[c.phase]
	if c.window.extraPerBlock > 0 {
		need += c.window.demand(int64(c.phase))
	}
	return int(need)
}

// Tick gives every growing sequence one token. TickNeed blocks must be free.
func (c *Cache) Tick() {
	if need := c.TickNeed(); need > 0 {
		c.evict(int32(need))
	}
	if c.window.extraPerBlock > 0 {
		c.window.endTick(c.tick)
	}
	c.tick++
	if c.phase++; c.phase == c.blockSize {
		c.phase = 0
	}
}

// Ticks returns how many times Tick was called.
func (c *Cache) Ticks() int64 { return c.tick }

// DependsOnWriter reports whether the prompt of s contains output that a growing sequence of this
// cache is still producing.
func (c *Cache) DependsOnWriter(s Seq) bool {
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

// phaseOf returns the phase of the ticks at which a sequence of this base needs a block: those at
// which base + tick is a multiple of the block size.
func (c *Cache) phaseOf(base int64) int64 {
	b := int64(c.blockSize)
	return ((-base)%b + b) % b
}

// update computes the block counts of the growing sequence s and publishes its blocks.
func (c *Cache) update(s Seq) {
	q := &c.seqs[s]
	tokens := q.base + c.tick
	q.blocks = c.blocksFor(int(tokens))
	q.extra = c.window.extra(q.blocks)
	c.Publish(s, int(tokens)-int(q.lag))
}

// writer returns the growing sequence that produces the tokens of node n.
func (c *Cache) writer(n Node) (Seq, bool) {
	if len(c.writers) == 0 || !c.tree.nodes[n].output {
		return 0, false
	}
	s, ok := c.writers[n]
	return s, ok
}

// sync publishes all visible blocks of node n.
func (c *Cache) sync(n Node) {
	if s, ok := c.writer(n); ok {
		c.update(s)
	}
}
