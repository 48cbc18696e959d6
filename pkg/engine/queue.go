package engine

// The wait queue is a list through the sequences: first come first served, but
// for preempted ones, which go to its head.

// Enqueue puts a request at the end of the wait queue and returns the number by
// which Abort knows it.
func (e *Engine) Enqueue(r Request) int32 {
	var s int32
	if last := len(e.spare) - 1; last >= 0 {
		s = e.spare[last]
		e.spare = e.spare[:last]
	} else {
		s = int32(len(e.seqs))
		e.seqs = append(e.seqs, sequence{})
	}
	e.seqs[s] = sequence{tag: r.Tag, kv: e.cache.Open(r.Path), input: int32(r.Input), output: int32(r.Output), prev: e.tail, next: none}
	if e.tail != none {
		e.seqs[e.tail].next = s
	} else {
		e.head = s
	}
	e.tail = s
	e.queued++
	e.stats.PeakWaiting = max(e.stats.PeakWaiting, e.queued)
	return s
}

// putBack puts a preempted sequence at the head of the wait queue.
func (e *Engine) putBack(s int32) {
	q := &e.seqs[s]
	q.prev, q.next = none, e.head
	if e.head != none {
		e.seqs[e.head].prev = s
	} else {
		e.tail = s
	}
	e.head = s
	e.queued++
	e.stats.PeakWaiting = max(e.stats.PeakWaiting, e.queued)
}

func (e *Engine) unqueue(s int32) {
	q := &e.seqs[s]
	if q.prev != none {
		e.seqs[q.prev].next = q.next
	} else {
		e.head = q.next
	}
	if q.next != none {
		e.seqs[q.next].prev = q.prev
	} else {
		e.tail = q.prev
	}
	e.queued--
}
