package kv

// Watcher is notified of each change in what can be found in a cache, once and in order. Inserted:
// blocks of node n, from lo on and before hi, became findable, of which there was no findable copy.
// Evicted: the last findable copy of these blocks is gone. Within one Tick evictions come first.
//
// Tails without a name are not reported. No other prompt ever finds them; their own request can,
// but only after it has been in this cache.
//
// A reported node lives until the call returns. A watcher that stores its number must keep it alive
// with Tree.Ref. A watcher must not call the cache.
type Watcher interface {
	Inserted(n Node, lo, hi int32)
	Evicted(n Node, lo, hi int32)
}

// Watch makes w the only watcher of the cache. It must have no findable blocks, unless w knows them
// already. Blocks that growing sequences have filled are reported late: when they are looked up, when
// they affect another report, and at CatchUp at the latest.
func (c *Cache) Watch(w Watcher) { c.watcher = w }

// CatchUp sends all outstanding notifications. It visits each sequence.
func (c *Cache) CatchUp() {
	if len(c.writers) == 0 {
		return
	}
	for s := range c.seqs {
		if q := &c.seqs[s]; q.growing {
			c.sync(q.path[len(q.path)-1].Node)
		}
	}
}

// notify calls report for the parts of blocks lo to hi of n that are in no run.
func (c *Cache) notify(report func(Node, int32, int32), n Node, lo, hi int32) {
	if n == noNode || !c.tree.nodes[n].named {
		return
	}
	for lo < hi {
		if r, stop := c.firstCopy(n, lo); r != none {
			lo = stop
			continue
		}
		next := hi
		for r := c.index.get(n); r != none; r = c.runs[r].later {
			if x := &c.runs[r]; x.lo > lo && x.hi > x.lo {
				next = min(next, x.lo)
			}
		}
		report(n, lo, next)
		lo = next
	}
}

// Invalidate moves the copies without a holder of blocks lo to hi of node n to the front of the free
// list, where they cannot be found. Copies with holders stay.
func (c *Cache) Invalidate(n Node, lo, hi int32) {
	c.sync(n)
	for lo < hi {
		r := c.unheldRun(n, lo, hi)
		if r == none {
			return
		}
		if c.runs[r].unhashed > 0 {
			c.splitUnhashed(r)
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
			c.notify(c.watcher.Evicted, n, from, to)
		}
		c.discardRun(r)
		c.pushFront(to - from)
	}
}

// unheldRun returns a run without holders that has any of blocks lo to hi of n.
func (c *Cache) unheldRun(n Node, lo, hi int32) int32 {
	for r := c.index.get(n); r != none; r = c.runs[r].later {
		if x := &c.runs[r]; x.refs == 0 && x.lo < hi && lo < x.hi {
			return r
		}
	}
	return none
}
