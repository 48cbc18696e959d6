package kv

import "math"

// While a replica only decodes, every sequence gets one token a step. The cache then advances a clock
// instead of visiting the sequences. Tick t is the call of Tick that advances the clock from t to t+1.
// Its phase is t % blockSize. A growing sequence needs a new block at the ticks of one phase, and the
// cache counts the growing sequences of each phase.

// Grow makes s get one token at each Tick from now on. s must have n tokens and hold exactly their blocks.
// At any time its newest lag tokens are not known yet, so that a block is published lag ticks after it is
// full. The full blocks of the prompt, and those that known tokens fill, must be published before. At the next
// Tick, inFlight of its tokens are being computed, and lag at later ones.
func (c *Cache) Grow(s Seq, n, lag, inFlight int) {
	q := &c.seqs[s]
	q.growing, q.lag, q.base = true, int32(lag), int64(n)-c.tick
	if c.groups != nil {
		c.groups.grow(s, int32(inFlight))
	} else {
		c.growingByPhase[c.phaseOf(q.base)]++
	}
	if tail := q.path[len(q.path)-1].Node; c.caching && c.tree.nodes[tail].named {
		c.writers[tail] = s
	}
}

// StopGrowing undoes Grow: s keeps its tokens and blocks, and ticks no longer affect it.
func (c *Cache) StopGrowing(s Seq) {
	c.catchUp(s)
	q := &c.seqs[s]
	q.growing = false
	if c.groups != nil {
		c.groups.stopGrowing(s)
	} else {
		c.growingByPhase[c.phaseOf(q.base)]--
	}
	if tail := q.path[len(q.path)-1].Node; c.caching && c.tree.nodes[tail].named {
		delete(c.writers, tail)
	}
}

// TickNeed returns how many free blocks the next Tick takes. With groups it may free some before.
func (c *Cache) TickNeed() int {
	if c.groups != nil {
		return c.groups.tickNeed()
	}
	return int(c.growingByPhase[c.phase])
}

// Tick gives every growing sequence one token. At least TickNeed blocks must be free. With groups, sequences
// get their blocks in the order of admission: those admitted before a sequence that Extend is called for get
// theirs then, and the others at Settle.
func (c *Cache) Tick() {
	if c.groups != nil {
		c.groups.tick()
	} else if need := c.growingByPhase[c.phase]; need > 0 {
		c.takeFree(need)
	}
	c.tick++
	if c.phase++; c.phase == c.blockSize {
		c.phase = 0
	}
}

// Settle completes a Tick. Only Extend, for sequences that do not grow, may be called between the two.
func (c *Cache) Settle() {
	if c.groups != nil {
		c.groups.settleBefore(math.MaxInt64)
	}
}

// Ticks returns how many times Tick was called.
func (c *Cache) Ticks() int64 { return c.tick }

// Phase returns the phase of the next Tick, which is as many ticks after that of the first one as there were ticks.
// PreviousPhase returns that of the last one.
func (c *Cache) Phase() int32 { return c.phase }

// PreviousPhase returns the phase of the last Tick.
func (c *Cache) PreviousPhase() int32 {
	if c.phase == 0 {
		return c.blockSize - 1
	}
	return c.phase - 1
}

// DependsOnWriter reports whether the prompt of s contains output that a growing sequence of this
// cache is still producing.
func (c *Cache) DependsOnWriter(s Seq) bool {
	if len(c.writers) == 0 || !c.seqs[s].hasOutput {
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
