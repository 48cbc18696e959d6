package kv

// A transfer to another memory may read blocks that their sequence has released. A step that takes such a block or hits
// it must wait until the transfer has ended (_block_id_to_pending_jobs in
// vllm/distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py).

// fence is what reads blocks: transfers until a time, and maybe others, for which the blocks have a mark. The zero
// value is none, and one that is over is like none.
type fence struct{ until, mark int64 }

// Marked are blocks Lo to Hi of a sequence that have a mark. Other sequences with the same blocks have the same mark.
type Marked struct {
	Lo, Hi int32
	Mark   int64
}

// KeepFences makes Fence usable. The cache must be new and without groups.
func (c *Cache) KeepFences() { c.fences = make([]fence, len(c.runs)) }

// Fence notes that blocks lo to hi of s, which are hashed, are read until a time.
func (c *Cache) Fence(s Seq, lo, hi int32, until int64) {
	c.lastFence = max(c.lastFence, until)
	c.observe()
	c.eachRun(s, lo, hi, func(r int32) { c.fences[r].until = max(c.fences[r].until, until) })
}

// Mark marks blocks lo to hi of s, which may be read later. The last one may be the first block of s without a hash.
func (c *Cache) Mark(s Seq, lo, hi int32) (list []Marked) {
	c.eachRun(s, lo, hi, func(r int32) {
		if c.fences[r].mark == 0 {
			c.marks++
			c.fences[r].mark = c.marks
			c.marking = append(c.marking, r)
		}
		list = append(list, Marked{c.runs[r].lo, c.runs[r].hi, c.fences[r].mark})
	})
	if q := &c.seqs[s]; hi > q.hashed {
		c.marks++
		q.fence.mark = c.marks
		c.markedSeqs = append(c.markedSeqs, s)
		list = append(list, Marked{q.hashed, hi, c.marks})
	}
	c.observe()
	return list
}

// eachRun calls f for the runs with blocks lo to hi of s, which it cuts off others.
func (c *Cache) eachRun(s Seq, lo, hi int32, f func(r int32)) {
	if c.seqs[s].growing {
		c.catchUp(s)
	}
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

// Resolve notes that those of blocks lo to hi that are in m are read until a time.
func (c *Cache) Resolve(m Marked, lo, hi int32, until int64) {
	lo, hi = max(lo, m.Lo), min(hi, m.Hi)
	if lo >= hi {
		return
	}
	c.lastFence = max(c.lastFence, until)
	c.observe()
	for i := 0; i < len(c.marking); i++ {
		r := c.marking[i]
		x := &c.runs[r]
		if c.fences[r].mark != m.Mark || x.hi <= lo || hi <= x.lo {
			continue
		}
		if x.lo < lo {
			r = c.split(r, lo)
		}
		if hi < c.runs[r].hi {
			c.split(r, hi)
		}
		c.fences[r].until = max(c.fences[r].until, until)
	}
	for _, s := range c.markedSeqs {
		if q := &c.seqs[s]; q.fence.mark == m.Mark {
			q.fence.until = until
		}
	}
}

// DropMarks removes all marks and the blocks that TakenMarks returns.
func (c *Cache) DropMarks() {
	if c.marks == 0 {
		return
	}
	c.dropMarks()
}

// dropMarks is a function of its own so that DropMarks is inlined.
func (c *Cache) dropMarks() {
	for _, r := range c.marking {
		c.fences[r].mark = 0
	}
	for _, s := range c.markedSeqs {
		c.seqs[s].fence.mark = 0
	}
	c.marks, c.marking, c.markedSeqs, c.marked = 0, c.marking[:0], c.markedSeqs[:0], c.marked[:0]
	c.observe()
}

// TakenMarks returns the blocks with marks that were taken or hit since the last call of DropMarks.
func (c *Cache) TakenMarks() []Marked { return c.marked }

// Fenced returns until when the blocks that were taken or hit since the last call are read, 0 if they are not. It may
// be 0, too, if that was before now.
func (c *Cache) Fenced(now int64) int64 {
	at := c.fenced
	c.fenced, c.now = 0, now
	c.observe()
	return at
}

// observe notes whether blocks may have marks, or may be read now.
func (c *Cache) observe() {
	c.fencing = c.lastFence > c.now || len(c.marking)+len(c.markedSeqs) > 0
	c.observed = c.watcher != nil || c.fencing || c.keepsGiven
}

// Retake notes that the blocks of s are taken once more.
func (c *Cache) Retake(s Seq) {
	if !c.fencing {
		return
	}
	c.eachRun(s, 0, unbounded, func(r int32) { c.noteTaken(r, c.runs[r].lo, c.runs[r].hi) })
}

// noteTaken notes that blocks lo to hi of run r were taken or hit.
func (c *Cache) noteTaken(r, lo, hi int32) {
	f := c.fences[r]
	c.fenced = max(c.fenced, f.until)
	if f.mark != 0 {
		c.marked = append(c.marked, Marked{lo, hi, f.mark})
	}
}

// taken notes that d blocks of run r, the ones behind its first hi, were taken from the free queue.
func (c *Cache) taken(r, d int32) {
	x := &c.runs[r]
	if c.fencing {
		c.noteTaken(r, x.hi, x.hi+d)
	}
	if c.keepsGiven {
		c.give(x.node, x.hi, x.hi+d)
	}
	if c.watcher != nil {
		c.notify(c.watcher.Evicted, x.node, x.hi, x.hi+d)
	}
}

// freeFenced adds unhashed blocks that s has released to the free queue. The first of them is read.
func (c *Cache) freeFenced(q *sequence, unhashed int32) {
	r := c.newRun(run{node: noNode, lo: q.hashed, hi: q.hashed + 1, unhashed: unhashed - 1})
	c.fences[r] = q.fence
	if q.fence.mark != 0 {
		c.marking = append(c.marking, r)
	}
	c.free += unhashed
	if c.unhashedFirst && c.freeHead != none {
		c.queueBefore(r, c.freeHead)
	} else {
		c.queueBack(r)
	}
	q.fence = fence{}
}

// sameFence reports whether two runs may become one.
func (c *Cache) sameFence(r, t int32) bool {
	return !c.fencing || c.fences[r] == c.fences[t]
}
