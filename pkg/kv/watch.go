package kv

// Watcher is told what can be found in a cache, as it changes: blocks lo to hi of
// node n, of which no copy could be found before, or of which the last copy is
// gone. It is not told of nodes that nobody can ever name again.
type Watcher interface {
	Found(n Node, lo, hi int32)
	Lost(n Node, lo, hi int32)
}

// Watch makes the cache, which is empty, tell w. Blocks of growing sequences are
// told when somebody looks at them, or at Catch.
func (c *Cache) Watch(w Watcher) { c.watcher = w }

// Catch brings what is told up to date.
func (c *Cache) Catch() {
	if len(c.writers) == 0 {
		return
	}
	for s := range c.seqs {
		if q := &c.seqs[s]; q.growing && len(q.path) > 0 {
			c.sync(q.path[len(q.path)-1].Node)
		}
	}
}

// tell calls the watcher's function for what of blocks lo to hi of n no run has.
func (c *Cache) tell(told func(Node, int32, int32), n Node, lo, hi int32) {
	if n == None || !c.tree.nodes[n].named {
		return
	}
	for lo < hi {
		if r, stop := c.covering(n, lo); r != none {
			lo = stop
			continue
		}
		next := hi
		for r := c.index.get(n); r != none; r = c.runs[r].later {
			if x := &c.runs[r]; x.lo > lo && x.hi > x.lo {
				next = min(next, x.lo)
			}
		}
		told(n, lo, next)
		lo = next
	}
}

// Forget makes blocks lo to hi of node n that nobody holds unfindable; they are
// the first to be taken.
func (c *Cache) Forget(n Node, lo, hi int32) {
	for {
		r := c.idleRun(n, lo, hi)
		if r == none {
			return
		}
		if c.runs[r].lo < lo {
			r = c.split(r, lo)
		}
		if c.runs[r].hi > hi {
			c.split(r, hi)
		}
		x := &c.runs[r]
		blocks := x.hi - x.lo + x.loose
		gone := stretch{n, x.lo, x.hi}
		c.unlink(r)
		x.hi, x.loose = x.lo, 0
		if c.watcher != nil {
			c.tell(c.watcher.Lost, n, gone.lo, gone.hi)
		}
		c.forget(r)
		front := c.newRun(run{node: None, loose: blocks})
		if c.head == none {
			c.pushBack(front)
		} else {
			c.insertBefore(front, c.head)
		}
	}
}

// idleRun returns a run without holders that has any of blocks lo to hi of n.
func (c *Cache) idleRun(n Node, lo, hi int32) int32 {
	for r := c.index.get(n); r != none; r = c.runs[r].later {
		if x := &c.runs[r]; x.refs == 0 && x.lo < hi && lo < x.hi {
			return r
		}
	}
	return none
}
