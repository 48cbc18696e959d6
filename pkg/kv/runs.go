package kv

// none is the null index of runs.
const none int32 = -1

// run is a range of consecutive blocks of one sequence that have the same holders and are adjacent
// in the free list.
type run struct {
	// Blocks lo to hi, counted from the sequence's first, can be found under node. The unhashed blocks
	// behind them cannot (partly filled, or caching is off). A run with holders has no unhashed blocks.
	node             Node
	lo, hi, unhashed int32
	// refs counts the sequences that hold it; at 0 it is in the free list.
	refs       int32
	prev, next int32
	// right is the run that was split off behind this one while it was held: a sequence whose claim
	// ends beyond hi holds that run too.
	right int32
	// later is the node's next run: of two copies of a block, the one in the earlier run was registered
	// first. The first run's earlier is the last run.
	earlier, later int32
}

// firstCopy returns the run with the copy of block j of node n that was registered first. That run
// also has the first copy of the blocks after j and before stop. It returns none if there is no copy.
func (c *Cache) firstCopy(n Node, j int32) (r, stop int32) {
	stop = unbounded
	for r = c.index.get(n); r != none; r = c.runs[r].later {
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

// hasCopy reports whether node n has a copy of any of the blocks lo to hi.
func (c *Cache) hasCopy(n Node, lo, hi int32) bool {
	for r := c.index.get(n); r != none; r = c.runs[r].later {
		if c.runs[r].lo < hi && lo < c.runs[r].hi {
			return true
		}
	}
	return false
}

// newRun creates a run; a run with a node becomes the node's last.
func (c *Cache) newRun(x run) int32 {
	r := c.allocateRun()
	x.prev, x.next, x.right, x.later = none, none, none, none
	c.runs[r] = x
	if x.node == noNode {
		return r
	}
	c.tree.ref(x.node)
	if first := c.index.get(x.node); first == none {
		c.index.set(x.node, r)
		c.runs[r].earlier = r
	} else {
		c.indexAfter(c.runs[first].earlier, r, first)
	}
	return r
}

// indexAfter inserts run r after run prev in the list of their node, whose first run is first.
func (c *Cache) indexAfter(prev, r, first int32) {
	next := c.runs[prev].later
	c.runs[r].earlier, c.runs[r].later = prev, next
	c.runs[prev].later = r
	if next == none {
		next = first
	}
	c.runs[next].earlier = r
}

func (c *Cache) allocateRun() int32 {
	if last := len(c.spareRuns) - 1; last >= 0 {
		r := c.spareRuns[last]
		c.spareRuns = c.spareRuns[:last]
		return r
	}
	c.runs = append(c.runs, run{})
	return int32(len(c.runs) - 1)
}

// discardRun removes a run that has no blocks and is not in the free list.
func (c *Cache) discardRun(r int32) {
	x := &c.runs[r]
	if x.node != noNode {
		c.unindex(r)
		c.tree.unref(x.node)
	}
	c.spareRuns = append(c.spareRuns, r)
}

// unindex removes run r from the runs of its node.
func (c *Cache) unindex(r int32) {
	x := &c.runs[r]
	first := c.index.get(x.node)
	switch {
	case first == r && x.later == none:
		c.index.remove(x.node)
		return
	case first == r:
		c.index.set(x.node, x.later)
		first = x.later
	default:
		c.runs[x.earlier].later = x.later
	}
	if x.later != none {
		c.runs[x.later].earlier = x.earlier
	} else {
		c.runs[first].earlier = x.earlier
	}
}

// split cuts run r before block m, lo < m < hi, and returns the second part.
func (c *Cache) split(r, m int32) int32 {
	s := c.allocateRun()
	x := &c.runs[r]
	c.runs[s] = run{node: x.node, lo: m, hi: x.hi, unhashed: x.unhashed, refs: x.refs,
		prev: none, next: none, right: none}
	x.hi, x.unhashed = m, 0
	c.tree.ref(x.node)
	c.indexAfter(r, s, c.index.get(x.node))
	if x.refs > 0 {
		c.runs[s].right, x.right = x.right, s
	} else {
		c.insertBefore(s, r)
	}
	return s
}

// splitUnhashed moves the unhashed blocks of the free run r into a run of their own.
func (c *Cache) splitUnhashed(r int32) {
	s := c.newRun(run{node: noNode, unhashed: c.runs[r].unhashed})
	c.runs[r].unhashed = 0
	c.insertBefore(s, r)
}

// The free list holds the runs without holders in order of eviction. A run is evicted from its end.

// moveToFreeList appends run r, which has lost its last holder, to the free list. It merges r with
// the last run there if that one continues r.
func (c *Cache) moveToFreeList(r int32) {
	x := &c.runs[r]
	x.right = none
	c.free += x.hi - x.lo + x.unhashed
	if t := c.tail; t != none && x.node != noNode && x.unhashed == 0 && x.later == t {
		if y := &c.runs[t]; y.lo == x.hi {
			y.lo = x.lo
			x.hi = x.lo
			c.discardRun(r)
			return
		}
	}
	c.pushBack(r)
}

func (c *Cache) pushBack(r int32) {
	x := &c.runs[r]
	x.prev, x.next = c.tail, none
	if c.tail != none {
		c.runs[c.tail].next = r
	} else {
		c.head = r
	}
	c.tail = r
}

// pushFront adds unhashed blocks at the front of the free list.
func (c *Cache) pushFront(blocks int32) {
	if c.head != none && c.runs[c.head].node == noNode {
		c.runs[c.head].unhashed += blocks
		return
	}
	r := c.newRun(run{node: noNode, unhashed: blocks})
	if c.head == none {
		c.pushBack(r)
	} else {
		c.insertBefore(r, c.head)
	}
}

func (c *Cache) insertBefore(s, r int32) {
	p := c.runs[r].prev
	c.runs[s].prev, c.runs[s].next = p, r
	c.runs[r].prev = s
	if p != none {
		c.runs[p].next = s
	} else {
		c.head = s
	}
}

func (c *Cache) unlink(r int32) {
	x := &c.runs[r]
	if x.prev != none {
		c.runs[x.prev].next = x.next
	} else {
		c.head = x.next
	}
	if x.next != none {
		c.runs[x.next].prev = x.prev
	} else {
		c.tail = x.prev
	}
	x.prev, x.next = none, none
}

// evict takes k blocks from the front of the free list, which must have that many.
func (c *Cache) evict(k int32) {
	c.free -= k
	for k > 0 {
		r := c.head
		if c.watcher != nil && c.runs[r].node != noNode {
			c.sync(c.runs[r].node) // blocks of a growing sequence are not evicted
		}
		x := &c.runs[r]
		d := min(x.unhashed, k)
		x.unhashed -= d
		k -= d
		d = min(x.hi-x.lo, k)
		x.hi -= d
		k -= d
		if d > 0 && c.watcher != nil {
			c.notify(c.watcher.Evicted, x.node, x.hi, x.hi+d)
		}
		if x.hi == x.lo && x.unhashed == 0 {
			c.unlink(r)
			c.discardRun(r)
		}
	}
}
