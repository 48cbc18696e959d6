package kv

// A transfer to another memory may read blocks that their sequence has released. A fence is the time until which
// it does. A step that takes such a block or hits it must wait (_block_id_to_pending_jobs in
// vllm/distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py). A mark is a fence whose time is not known yet.

// Marked are blocks Lo to Hi of a node, with a mark, that were taken or hit.
type Marked struct {
	Node   Node
	Lo, Hi int32
	Mark   int64
}

// minMark is the lowest mark. Times are lower.
const minMark = int64(1) << 62

// KeepFences makes Fence usable. The cache must be new and without groups.
func (c *Cache) KeepFences() { c.fences, c.observed = make([]int64, len(c.runs)), true }

// Fence notes that blocks lo to hi of s, which are hashed, are read until a time, which replaces a mark.
func (c *Cache) Fence(s Seq, lo, hi int32, until int64) {
	c.eachRun(s, lo, hi, func(r int32) {
		if c.fences[r] > minMark {
			c.fences[r] = 0
		}
		c.fences[r] = max(c.fences[r], until)
	})
}

// Mark returns a mark for blocks lo to hi of s that may be read from now on. Those with a fence do not get it.
func (c *Cache) Mark(s Seq, lo, hi int32, now int64) (mark int64) {
	c.marks++
	mark = minMark + c.marks
	c.eachRun(s, lo, hi, func(r int32) {
		if c.fences[r] <= now {
			c.fences[r] = mark
		}
	})
	return mark
}

// eachRun calls f for the runs with blocks lo to hi of s, which it cuts off others.
func (c *Cache) eachRun(s Seq, lo, hi int32, f func(r int32)) {
	for _, h := range c.seqs[s].held {
		for r := h.firstRun; ; r = c.runs[r].splitOff {
			if c.runs[r].lo < lo && lo < c.runs[r].hi {
				r = c.split(r, lo)
			}
			if c.runs[r].lo < hi && hi < c.runs[r].hi {
				c.split(r, hi)
			}
			if x := &c.runs[r]; lo <= x.lo && x.hi <= hi {
				f(r)
			}
			if c.runs[r].hi >= h.hi {
				break
			}
		}
	}
}

// Resolve gives those of blocks lo to hi of a node that have a mark a fence instead.
func (c *Cache) Resolve(mark int64, n Node, lo, hi int32, until int64) {
	for r := int32(0); int(r) < len(c.runs); r++ {
		x := c.runs[r]
		if c.fences[r] != mark || x.node != n || x.hi <= lo || hi <= x.lo {
			continue
		}
		k := r
		if x.lo < lo {
			k = c.split(k, lo)
		}
		if hi < x.hi {
			c.split(k, hi)
		}
		c.fences[k] = until
	}
}

// DropMarks removes all marks and the blocks that TakenMarks returns.
func (c *Cache) DropMarks() {
	if c.marks == 0 {
		return
	}
	c.marks = 0
	for r, f := range c.fences {
		if f > minMark {
			c.fences[r] = 0
		}
	}
	c.marked = c.marked[:0]
}

// TakenMarks returns the blocks with marks that were taken or hit since the last call of DropMarks.
func (c *Cache) TakenMarks() []Marked { return c.marked }

// Fenced returns the latest fence of the blocks that were taken or hit since the last call, 0 if they have none.
func (c *Cache) Fenced() int64 {
	at := c.fenced
	c.fenced = 0
	return at
}

// Retake notes that the blocks of s are taken once more.
func (c *Cache) Retake(s Seq) {
	c.eachRun(s, 0, unbounded, func(r int32) { c.noteTaken(r, c.runs[r].lo, c.runs[r].hi) })
}

// noteTaken notes that blocks lo to hi of run r were taken or hit.
func (c *Cache) noteTaken(r, lo, hi int32) {
	if f := c.fences[r]; f > minMark {
		c.marked = append(c.marked, Marked{c.runs[r].node, lo, hi, f})
	} else {
		c.fenced = max(c.fenced, f)
	}
}

// taken notes that d blocks of run r, the ones behind its first hi, were taken from the free queue.
func (c *Cache) taken(r, d int32) {
	x := &c.runs[r]
	if c.fences != nil {
		c.noteTaken(r, x.hi, x.hi+d)
	}
	if c.watcher != nil {
		c.notify(c.watcher.Evicted, x.node, x.hi, x.hi+d)
	}
}

// sameFence reports whether two runs may become one.
func (c *Cache) sameFence(r, t int32) bool { return c.fences == nil || c.fences[r] == c.fences[t] }
