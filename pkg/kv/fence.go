package kv

// A transfer to another memory may read blocks that their sequence has released. A fence is the time until which
// it does. A step that takes such a block or hits it must wait (_block_id_to_pending_jobs in
// vllm/distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py). A mark is a fence whose time is not known yet.

// Marked are blocks Lo to Hi of a sequence, with its mark, that were taken or hit.
type Marked struct {
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

// Mark returns a mark for blocks lo to hi of s that may be read from now on. Those with a fence do not get it. The
// last one may be the first block of s that is not hashed.
func (c *Cache) Mark(s Seq, lo, hi int32, now int64) (mark int64) {
	c.marks++
	mark = minMark + c.marks
	c.eachRun(s, lo, hi, func(r int32) {
		if c.fences[r] <= now {
			c.fences[r] = mark
			c.marking = append(c.marking, r)
		}
	})
	if c.seqs[s].growing {
		c.catchUp(s)
	}
	if q := &c.seqs[s]; hi > q.hashed {
		q.fence = mark
		c.markedSeqs = append(c.markedSeqs, s)
	}
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

// Resolve gives those of blocks lo to hi that have a mark a fence instead.
func (c *Cache) Resolve(mark int64, lo, hi int32, until int64) {
	for i := 0; i < len(c.marking); i++ {
		r := c.marking[i]
		x := &c.runs[r]
		if c.fences[r] != mark || x.hi <= lo || hi <= x.lo {
			continue
		}
		if x.lo < lo {
			r = c.split(r, lo)
		}
		if hi < c.runs[r].hi {
			c.split(r, hi)
		}
		c.fences[r] = until
	}
	for _, s := range c.markedSeqs {
		if q := &c.seqs[s]; q.fence == mark && hi > q.hashed {
			q.fence = until
		}
	}
}

// DropMarks removes all marks and the blocks that TakenMarks returns.
func (c *Cache) DropMarks() {
	for _, r := range c.marking {
		if c.fences[r] > minMark {
			c.fences[r] = 0
		}
	}
	for _, s := range c.markedSeqs {
		if q := &c.seqs[s]; q.fence > minMark {
			q.fence = 0
		}
	}
	c.marks, c.marking, c.markedSeqs, c.marked = 0, c.marking[:0], c.markedSeqs[:0], c.marked[:0]
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
		c.marked = append(c.marked, Marked{lo, hi, f})
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

// freeFenced adds unhashed blocks that s has released to the free queue. The first of them is read.
func (c *Cache) freeFenced(q *sequence, unhashed int32) {
	r := c.newRun(run{node: noNode, lo: q.hashed, hi: q.hashed + 1, unhashed: unhashed - 1})
	c.fences[r] = q.fence
	if q.fence > minMark {
		c.marking = append(c.marking, r)
	}
	c.free += unhashed
	if c.unhashedFirst && c.freeHead != none {
		c.queueBefore(r, c.freeHead)
	} else {
		c.queueBack(r)
	}
	q.fence = 0
}

// sameFence reports whether two runs may become one.
func (c *Cache) sameFence(r, t int32) bool { return c.fences == nil || c.fences[r] == c.fences[t] }
