package kv

// While a replica only decodes, every sequence gets one token a step. The cache then advances a clock
// instead of visiting the sequences. Tick t is the call of Tick that advances the clock from t to t+1.
// Its phase is t % blockSize. A growing sequence needs a new block at the ticks of one phase, and the
// cache counts the growing sequences of each phase.

// Grow makes s get one token at each Tick from now on. s must have n tokens and hold exactly their blocks.
// At any time its newest lag tokens are not known yet, so that a block is published lag ticks after it is
// full. The full blocks of the prompt, and those that known tokens fill, must be published before.
func (c *Cache) Grow(s Seq, n, lag int) {
	q := &c.seqs[s]
	q.growing, q.lag, q.base = true, int32(lag), int64(n)-c.tick
	c.growingByPhase[c.phaseOf(q.base)]++
	c.window.countFilling(c.phaseOf(q.base), q.base, c.tick, 1)
	if tail := q.path[len(q.path)-1].Node; c.caching && c.tree.nodes[tail].named {
		c.writers[tail] = s
	}
}

// StopGrowing undoes Grow: s keeps its tokens and blocks, and ticks no longer affect it.
func (c *Cache) StopGrowing(s Seq) {
	c.catchUp(s)
	q := &c.seqs[s]
	q.growing = false
	c.growingByPhase[c.phaseOf(q.base)]--
	c.window.countFilling(c.phaseOf(q.base), q.base, c.tick, -1)
	if tail := q.path[len(q.path)-1].Node; c.caching && c.tree.nodes[tail].named {
		delete(c.writers, tail)
	}
}

// TickNeed returns how many free blocks the next Tick takes.
func (c *Cache) TickNeed() int {
	need := c.growingByPhase[c.phase]
	if c.window.extra > 0 {
		need += c.window.tickNeed(int64(c.phase))
	}
	return int(need)
}

// Tick gives every growing sequence one token. At least TickNeed blocks must be free.
func (c *Cache) Tick() {
	if need := c.TickNeed(); need > 0 {
		c.takeFree(int32(need))
	}
	if c.window.extra > 0 {
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

// phaseOf returns the phase at which a growing sequence of this base needs a block: that of the ticks t
// for which base + t is a multiple of the block size, so that all its blocks are full.
func (c *Cache) phaseOf(base int64) int64 {
	b := int64(c.blockSize)
	return ((-base)%b + b) % b
}

// catchUp updates the block counts of the growing sequence s and publishes its blocks.
func (c *Cache) catchUp(s Seq) {
	q := &c.seqs[s]
	tokens := q.base + c.tick
	q.blocks = c.blocksFor(int(tokens))
	q.windowBlocks = c.window.size(q.blocks)
	c.Publish(s, int(tokens)-int(q.lag))
}

// writer returns the growing sequence that produces the tokens of node n, if there is one.
func (c *Cache) writer(n Node) (Seq, bool) {
	if len(c.writers) == 0 || !c.tree.nodes[n].output {
		return 0, false
	}
	s, ok := c.writers[n]
	return s, ok
}

// catchUpNode publishes the blocks of node n that its writer has filled.
func (c *Cache) catchUpNode(n Node) {
	if s, ok := c.writer(n); ok {
		c.catchUp(s)
	}
}
