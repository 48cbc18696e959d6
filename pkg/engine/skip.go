package engine

import "slices"

// skipping is what a replica needs whose waiting requests may be passed: those with an adapter for which there is no
// room, those whose grammar is not compiled, those that begin with an item that the encoder has no room for, and those
// of which batches in flight still have tokens from before they were preempted: these still count (Scheduler.schedule,
// num_stale_output_tokens). Of requests with one order the one that arrived first is the first then, since running ones
// can have arrived after waiting ones.
type skipping struct {
	// skipped are the waiting requests that the batch being formed may not have. adapters and grammars: any of them for
	// its adapter, or its grammar. items: any request for an item that the encoder has no room for.
	skipped                   []waiter
	adapters, grammars, items bool
	// blocked is the first of the others, none if there is none.
	blocked int32
}

// skips reports whether waiting requests may be passed.
func (e *Engine) skips() bool {
	return e.lora != nil || e.grammars != nil || e.encoder != nil || e.pipe != nil
}

// ordersByArrival reports whether of requests with the same order the one that arrived first is before the others.
func (e *Engine) ordersByArrival() bool { return e.cfg.ByArrival && e.skips() }

// passOver passes the waiting request s, the first one, if the batch being formed may not have it.
func (e *Engine) passOver(s int32) bool {
	x := &e.skipping
	switch {
	case e.pipe != nil && e.pipe.seqs[e.seqs[s].kv].flying > 0:
	case e.seqs[s].grammar != 0 && e.grammars.ready[s] > e.now:
		x.grammars = true
	case e.lora != nil && e.lora.hasNoRoom(e.seqs[s].adapter):
		x.adapters = true
	default:
		return false
	}
	e.pass(s)
	return true
}

// pass skips the waiting request s, the first one.
func (e *Engine) pass(s int32) {
	e.skipping.skipped = append(e.skipping.skipped, e.wait.heap[0])
	if e.cadence != nil {
		e.cadence.setPassed(s, true)
	}
	e.dequeue(s)
}

// endSkips returns the skipped requests to their places in the queue.
func (e *Engine) endSkips() {
	x := &e.skipping
	x.blocked = e.firstWaiting()
	for _, w := range x.skipped {
		e.push(w)
	}
	x.skipped = x.skipped[:0]
}

// firstWaiting is the first request of the queue, none if it is empty.
func (e *Engine) firstWaiting() int32 {
	if len(e.wait.heap) == 0 {
		return none
	}
	return e.wait.heap[0].seq
}

// orderByArrival orders the queue when requests can be passed from now on.
func (e *Engine) orderByArrival() {
	e.skipping.blocked = e.firstWaiting()
	if !e.cfg.ByArrival {
		return
	}
	h := e.wait.heap
	for i := range h {
		h[i].rank = e.seqs[h[i].seq].arrival
	}
	slices.SortFunc(h, func(v, w waiter) int {
		if v.before(&w) {
			return -1
		}
		return 1
	})
	for i := range h {
		e.seqs[h[i].seq].heapIndex = int32(i)
	}
}
