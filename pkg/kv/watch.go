package kv

// Watcher is notified, in order, when a cache gets the first copy of blocks and when it loses the last one.
// Inserted reports the first copies of blocks lo to hi of node n, Evicted the loss of the last ones. Of the
// changes at one tick, the evictions come first. Each group of the cache has copies of its own; a cache without
// groups reports group 0.
//
// Blocks of unnamed nodes are not reported. Only their own request can hit them, and only where it ran
// before it was preempted.
//
// The node stays alive until the call returns. A watcher that stores its number must keep it alive
// with Tree.Ref. A watcher must not call the cache.
type Watcher interface {
	Inserted(group int, n Node, lo, hi int32)
	Evicted(group int, n Node, lo, hi int32)
}

// Watch makes w the only watcher of the cache. No block may be hashed yet, unless w knows of it. Blocks
// that growing sequences fill are reported late: when a lookup or another notification depends on them, and
// at CatchUp at the latest.
func (c *Cache) Watch(w Watcher) { c.watcher, c.observed = w, true }

// CatchUp publishes, and so reports, all blocks of named nodes that growing sequences have filled. It
// visits each sequence.
func (c *Cache) CatchUp() {
	if len(c.writers) == 0 {
		return
	}
	for s := range c.seqs {
		if q := &c.seqs[s]; q.growing {
			c.catchUpNode(q.path[len(q.path)-1].Node)
		}
	}
}

// notify calls report for those of blocks lo to hi of node n that are in no run. The caller publishes the
// blocks after the call, or has evicted them before it.
func (c *Cache) notify(report func(int, Node, int32, int32), n Node, lo, hi int32) {
	if n == noNode || !c.tree.nodes[n].named {
		return
	}
	for lo < hi {
		if r, stop := c.oldestCopy(n, lo); r != none {
			lo = stop
			continue
		}
		next := hi
		for r := c.firstRun.get(n); r != none; r = c.runs[r].nextOfNode {
			if x := &c.runs[r]; x.lo > lo && x.hi > x.lo {
				next = min(next, x.lo)
			}
		}
		report(0, n, lo, next)
		lo = next
	}
}

// Invalidate makes all free copies of blocks lo to hi of node n unhashed and moves them to the front of
// the free queue. Held copies stay hashed. The cache must not have groups.
func (c *Cache) Invalidate(n Node, lo, hi int32) {
	c.catchUpNode(n)
	for lo < hi {
		r := c.findFree(n, lo, hi)
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
		c.unqueue(r)
		x.hi = from
		if c.watcher != nil {
			c.notify(c.watcher.Evicted, n, from, to)
		}
		c.discardRun(r)
		c.queueUnhashedFront(to - from)
	}
}

// findFree returns a free run that has any of blocks lo to hi of node n, or none.
func (c *Cache) findFree(n Node, lo, hi int32) int32 {
	for r := c.firstRun.get(n); r != none; r = c.runs[r].nextOfNode {
		if x := &c.runs[r]; x.refs == 0 && x.lo < hi && lo < x.hi {
			return r
		}
	}
	return none
}
