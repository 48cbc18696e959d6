package engine

import (
	"slices"

	"blis/pkg/des"
)

// Abort ends the request that Enqueue numbered s and returns its result. The request is dropped at
// once if it holds no blocks or no step is in flight, else when the step ends. Its tokens in formed
// batches are computed and discarded.
func (e *Engine) Abort(s int32) (r Result, left bool) {
	q := &e.seqs[s]
	e.tokenlessSteps = 0
	if e.offload != nil {
		e.offload.use(s).leaving = e.offload.nextLeaving()
	}
	for _, b := range []*batch{e.current, e.next} {
		e.removeFromBatch(s, b)
	}
	if e.pipe != nil {
		e.pipe.forget(e.current, s)
	}
	if q.onClock {
		e.collect(q)
	}
	if e.encoder != nil {
		e.encoder.releaseAll(s)
	}
	r = Result{Tag: q.tag, Generated: int(q.emitted), Gaps: q.gaps}
	q.gaps = Gaps{} // r owns them now
	if q.state == loading {
		i := slices.Index(e.loaders, s)
		e.loaders = slices.Delete(e.loaders, i, i+1)
	}
	if q.state == waiting {
		e.dequeue(s)
		e.drop(s)
		return r, true
	}
	q.aborted = true
	e.aborted = append(e.aborted, s)
	if e.inFlight {
		return r, false
	}
	e.dropAborted()
	return r, e.offload == nil || !e.offload.holds(s)
}

// Move ends the request that Enqueue numbered s, which goes on at another replica. The tokens of a step in flight are
// lost for it; its blocks are freed as those of an aborted one.
func (e *Engine) Move(s int32) *Moved {
	q := &e.seqs[s]
	m := &Moved{lastTokenAt: q.lastTokenAt, admitted: q.admitted}
	if q.onClock && q.startTick < e.emittedTick {
		m.lastTokenAt = e.deliveredAt
	}
	q.tag = noTag
	m.Result, _ = e.Abort(s)
	return m
}

// removeFromBatch removes s from the sequences that get a token when b ends.
func (e *Engine) removeFromBatch(s int32, b *batch) {
	if e.expectsToken(&e.seqs[s], b) {
		b.decoding--
	}
	is := func(x int32) bool { return x == s }
	b.finishing = slices.DeleteFunc(b.finishing, is)
	b.individual = slices.DeleteFunc(b.individual, is)
	b.forget(s)
}

// dropAborted removes the aborted sequences, in the order of their aborts.
func (e *Engine) dropAborted() {
	aborted := func(s int32) bool { return e.seqs[s].aborted }
	e.individual = slices.DeleteFunc(e.individual, aborted)
	e.finishing = slices.DeleteFunc(e.finishing, aborted)
	e.own.known, e.own.ordered = false, false
	e.decoding.Keep(func(d des.Event) bool { return !aborted(d.Slot) })
	for _, s := range e.aborted {
		if e.offload != nil && e.keepsBlocks(s) {
			continue
		}
		if e.seqs[s].state == decoding {
			e.materialize(s)
		}
		e.leave(s)
	}
	e.aborted = e.aborted[:0]
}

// leave drops the aborted s, which is in no list. The result has it unless it has moved.
func (e *Engine) leave(s int32) {
	if tag := e.seqs[s].tag; tag != noTag {
		e.result.Aborted = append(e.result.Aborted, tag)
	}
	if e.seqs[s].read {
		if !e.offload.uses[s].ended {
			e.endUse(s)
		}
		e.hold(s)
		return
	}
	e.drop(s)
}
