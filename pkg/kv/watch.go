package kv

// Watcher is told what can be found in a cache, each change once and in the order
// in which they happen: that blocks lo to hi of node n, of which there was no
// findable copy, have become findable, or that the last copy of them is gone.
// Within one Tick what is lost comes first.
//
// It is not told of tails that have no name. No other prompt ever finds those; the
// request that they belong to can, but only once it has been in this cache.
//
// A node that it is told of lives until the call returns; a watcher that keeps its
// number must keep the node, with Tree.Ref. It must not call the cache.
type Watcher interface {
	Found(n Node, lo, hi int32)
	Lost(n Node, lo, hi int32)
}

// Watch makes the cache, in which nothing can be found yet, tell w, and only w.
// What growing sequences have filled is told late: when somebody looks for it, or
// it matters to what else is told, and at Catch at the latest.
func (c *Cache) Watch(w Watcher) { c.watcher = w }

// Catch tells what has not been told yet, so that what was is complete. It costs
// a look at each sequence.
func (c *Cache) Catch() {
	if len(c.writers) == 0 {
		return
	}
	for s := range c.seqs {
		if q := &c.seqs[s]; q.growing {
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
// the first to be taken. Copies that have holders stay as they are.
func (c *Cache) Forget(n Node, lo, hi int32) {
	c.sync(n)
	for lo < hi {
		r := c.idleRun(n, lo, hi)
		if r == none {
			return
		}
		if c.runs[r].loose > 0 {
			c.shed(r)
		}
		if c.runs[r].lo < lo {
			r = c.split(r, lo)
		}
		if c.runs[r].hi > hi {
			c.split(r, hi)
		}
		x := &c.runs[r]
		from, to := x.lo, x.hi
		c.unlink(r)
		x.hi = from
		if c.watcher != nil {
			c.tell(c.watcher.Lost, n, from, to)
		}
		c.forget(r)
		c.pushFront(to - from)
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
