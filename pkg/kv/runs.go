package kv

// none is the null index of runs and chunks. A variable r is the index of a run, and x is that run.
const none int32 = -1

// run is a range of consecutive blocks with the same holders. The blocks of a free run are also consecutive
// in the free queue, the last one first.
type run struct {
	// Blocks lo to hi of node are hashed. In a free run, a number of unhashed blocks may follow them. Held
	// unhashed blocks are in no run: only their number is stored, in their sequence.
	node             Node
	lo, hi, unhashed int32
	// refs is the number of sequences that hold the run. If it is 0, the run is free.
	refs               int32
	prevFree, nextFree int32 // neighbors in the free queue
	// splitOff is the run that was split off this one at hi while it was held, or none. A heldRange that
	// ends after hi continues in it.
	splitOff int32
	// The runs of a node form a list, oldest first: of two copies, the one in the earlier run was
	// published first. The first run's prevOfNode is the last run.
	prevOfNode, nextOfNode int32
}

// oldestCopy returns the run with the oldest copy of block j of node n, or none. The run also has the
// oldest copies of the blocks after j and before stop.
func (c *Cache) oldestCopy(n Node, j int32) (r, stop int32) {
	stop = unbounded
	for r = c.firstRun.get(n); r != none; r = c.runs[r].nextOfNode {
		x := &c.runs[r]
		if x.lo <= j && j < x.hi {
			return r, min(stop, x.hi)
		}
		if x.lo > j {
			stop = min(stop, x.lo)
		}
	}
	return none, 0
}

// hasCopy reports whether any of blocks lo to hi of node n is hashed.
func (c *Cache) hasCopy(n Node, lo, hi int32) bool {
	for r := c.firstRun.get(n); r != none; r = c.runs[r].nextOfNode {
		if c.runs[r].lo < hi && lo < c.runs[r].hi {
			return true
		}
	}
	return false
}

// newRun stores x, outside of the free queue. If x has a node, it becomes the node's last run.
func (c *Cache) newRun(x run) int32 {
	r := c.unusedRun()
	x.prevFree, x.nextFree, x.splitOff, x.nextOfNode = none, none, none, none
	c.runs[r] = x
	if x.node == noNode {
		return r
	}
	c.tree.ref(x.node)
	if first := c.firstRun.get(x.node); first == none {
		c.firstRun.set(x.node, r)
		c.runs[r].prevOfNode = r
	} else {
		c.insertInNode(c.runs[first].prevOfNode, r, first)
	}
	return r
}

// insertInNode inserts run r after run prev in the list of their node, whose first run is first.
func (c *Cache) insertInNode(prev, r, first int32) {
	next := c.runs[prev].nextOfNode
	c.runs[r].prevOfNode, c.runs[r].nextOfNode = prev, next
	c.runs[prev].nextOfNode = r
	if next == none {
		next = first
	}
	c.runs[next].prevOfNode = r
}

// unusedRun returns the index of a run that is not in use.
func (c *Cache) unusedRun() int32 {
	if last := len(c.spareRuns) - 1; last >= 0 {
		r := c.spareRuns[last]
		c.spareRuns = c.spareRuns[:last]
		return r
	}
	c.runs = append(c.runs, run{})
	if c.fences != nil {
		c.fences = append(c.fences, fence{})
	}
	return int32(len(c.runs) - 1)
}

// discardRun removes a run that has no blocks and is not in the free queue.
func (c *Cache) discardRun(r int32) {
	x := &c.runs[r]
	if x.node != noNode {
		c.removeFromNode(r)
		c.tree.unref(x.node)
	}
	if c.fencing { // else it has none, or one that is over
		c.fences[r] = fence{}
	}
	c.spareRuns = append(c.spareRuns, r)
}

// removeFromNode removes run r from the list of its node.
func (c *Cache) removeFromNode(r int32) {
	x := &c.runs[r]
	first := c.firstRun.get(x.node)
	switch {
	case first == r && x.nextOfNode == none:
		c.firstRun.remove(x.node)
		return
	case first == r:
		c.firstRun.set(x.node, x.nextOfNode)
		first = x.nextOfNode
	default:
		c.runs[x.prevOfNode].nextOfNode = x.nextOfNode
	}
	if x.nextOfNode != none {
		c.runs[x.nextOfNode].prevOfNode = x.prevOfNode
	} else {
		c.runs[first].prevOfNode = x.prevOfNode
	}
}

// split moves the blocks of run r from block m on into a new run and returns it; lo < m < hi.
func (c *Cache) split(r, m int32) int32 {
	second := c.unusedRun()
	x := &c.runs[r]
	c.runs[second] = run{node: x.node, lo: m, hi: x.hi, unhashed: x.unhashed, refs: x.refs,
		prevFree: none, nextFree: none, splitOff: none}
	x.hi, x.unhashed = m, 0
	if c.fences != nil {
		c.fences[second] = c.fences[r]
		if c.fences[r].mark != 0 {
			c.marking = append(c.marking, second)
		}
	}
	c.tree.ref(x.node)
	c.insertInNode(r, second, c.firstRun.get(x.node))
	if x.refs > 0 {
		c.runs[second].splitOff, x.splitOff = x.splitOff, second
	} else {
		c.queueBefore(second, r)
	}
	return second
}

// splitUnhashed moves the unhashed blocks of the free run r into a run of their own.
func (c *Cache) splitUnhashed(r int32) {
	second := c.newRun(run{node: noNode, unhashed: c.runs[r].unhashed})
	c.runs[r].unhashed = 0
	c.queueBefore(second, r)
}

// The free queue is a list of the free runs (FreeKVCacheBlockQueue in kv_cache_utils.py). Blocks are taken
// from the first run, and from its end: the unhashed ones first, then block hi-1 down to lo.

// freeRun appends run r, which has lost its last holder, to the free queue. If the last run there has the
// blocks from r's hi on, and comes after r in the list of their node, the two become one.
func (c *Cache) freeRun(r int32) {
	x := &c.runs[r]
	x.splitOff = none
	c.free += x.hi - x.lo + x.unhashed
	if t := c.freeTail; t != none && x.node != noNode && x.unhashed == 0 && x.nextOfNode == t {
		if y := &c.runs[t]; y.lo == x.hi && c.sameFence(r, t) {
			y.lo = x.lo
			x.hi = x.lo
			c.discardRun(r)
			return
		}
	}
	c.queueBack(r)
}

// queueBack appends run r to the free queue.
func (c *Cache) queueBack(r int32) {
	x := &c.runs[r]
	x.prevFree, x.nextFree = c.freeTail, none
	if c.freeTail != none {
		c.runs[c.freeTail].nextFree = r
	} else {
		c.freeHead = r
	}
	c.freeTail = r
}

// queueUnhashedFront adds unhashed blocks at the front of the free queue.
func (c *Cache) queueUnhashedFront(blocks int32) {
	if c.freeHead != none && c.runs[c.freeHead].node == noNode {
		c.runs[c.freeHead].unhashed += blocks
		return
	}
	r := c.newRun(run{node: noNode, unhashed: blocks})
	if c.freeHead == none {
		c.queueBack(r)
	} else {
		c.queueBefore(r, c.freeHead)
	}
}

// queueBefore inserts run r before run next in the free queue.
func (c *Cache) queueBefore(r, next int32) {
	prev := c.runs[next].prevFree
	c.runs[r].prevFree, c.runs[r].nextFree = prev, next
	c.runs[next].prevFree = r
	if prev != none {
		c.runs[prev].nextFree = r
	} else {
		c.freeHead = r
	}
}

// unqueue removes run r from the free queue.
func (c *Cache) unqueue(r int32) {
	x := &c.runs[r]
	if x.prevFree != none {
		c.runs[x.prevFree].nextFree = x.nextFree
	} else {
		c.freeHead = x.nextFree
	}
	if x.nextFree != none {
		c.runs[x.nextFree].prevFree = x.prevFree
	} else {
		c.freeTail = x.prevFree
	}
	x.prevFree, x.nextFree = none, none
}

// takeFree takes k blocks from the free queue, which must have that many, and evicts those that are
// hashed (BlockPool.get_new_blocks).
func (c *Cache) takeFree(k int32) {
	c.free -= k
	for k > 0 {
		r := c.freeHead
		if c.watcher != nil && c.runs[r].node != noNode {
			c.catchUpNode(c.runs[r].node) // which may publish copies of blocks evicted here
		}
		x := &c.runs[r]
		d := min(x.unhashed, k)
		x.unhashed -= d
		k -= d
		d = min(x.hi-x.lo, k)
		x.hi -= d
		k -= d
		if d > 0 && c.observed {
			c.taken(r, d)
		}
		if x.hi == x.lo && x.unhashed == 0 {
			c.unqueue(r)
			c.discardRun(r)
		}
	}
}
