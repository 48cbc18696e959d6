package engine

import (
	"slices"

	"blis/pkg/des"
)

// Abort ends the request that Enqueue numbered s, and returns what it had. It
// leaves at once if it holds no blocks or no step is in flight, else when that
// ends. What it has in batches that were formed runs, and is lost.
func (e *Engine) Abort(s int32) (r Result, left bool) {
	q := &e.seqs[s]
	e.fruitless = 0
	for _, b := range []*batch{e.current, e.ahead} {
		e.withdraw(s, b)
	}
	if q.counting {
		e.collect(q)
	}
	r = Result{Tag: q.tag, Generated: int(q.shown), Gaps: q.gaps}
	q.gaps = Gaps{} // they are r's now
	if q.state == waiting {
		e.unqueue(s)
		e.drop(s)
		return r, true
	}
	q.aborted = true
	e.aborted = append(e.aborted, s)
	if e.inFlight {
		return r, false
	}
	e.dropAborted()
	return r, true
}

// withdraw takes s from those that get a token when b ends.
func (e *Engine) withdraw(s int32, b *batch) {
	if e.awaits(&e.seqs[s], b) {
		b.steady--
	}
	is := func(x int32) bool { return x == s }
	b.last = slices.DeleteFunc(b.last, is)
	b.tokens = slices.DeleteFunc(b.tokens, is)
}

// dropAborted lets the aborted sequences go, in the order of their aborts.
func (e *Engine) dropAborted() {
	aborted := func(s int32) bool { return e.seqs[s].aborted }
	e.singles = slices.DeleteFunc(e.singles, aborted)
	e.endings = slices.DeleteFunc(e.endings, aborted)
	e.steadies.Keep(func(d des.Event) bool { return !aborted(d.Slot) })
	for _, s := range e.aborted {
		if e.seqs[s].state == steady {
			e.unsteady(s)
		}
		e.ends.Left = append(e.ends.Left, e.seqs[s].tag)
		e.drop(s)
	}
	e.aborted = e.aborted[:0]
}
