package engine

import (
	"slices"

	"blis/pkg/des"
)

// Joint steps are those that a replica runs together with the other data-parallel ranks of its server.

// BeginJoint precedes the Start of a joint step. The ranks have run n since they began to. late: the batch behind it is
// not formed by Start but by FormLate.
func (e *Engine) BeginJoint(n int64, late bool) {
	e.late = late && e.cfg.AsyncScheduling
	if c := e.cadence; c != nil {
		if c.formed = n; e.hasNext {
			c.formed++
		}
	}
}

// HasBatch reports whether a batch has been formed ahead.
func (e *Engine) HasBatch() bool { return e.hasNext }

// FormsAtEnd reports whether the batch behind the step in flight is formed when that ends, by FormLate before Finish.
func (e *Engine) FormsAtEnd() bool { return e.late && e.inFlight }

// FormLate forms the batch behind the step in flight, which ends now. Aborted requests leave before; see LeftEarly.
func (e *Engine) FormLate(now des.Time) {
	e.formed, e.now, e.late, e.own.known = e.formed[:0], now, false, false
	e.leaveEarly()
	if e.Running()+e.Waiting() == 0 {
		return
	}
	if e.hasNext = e.form(e.next); !e.hasNext {
		e.lostVictims = len(e.next.Preempted)
	}
}

// Arrivals returns how many requests have been enqueued.
func (e *Engine) Arrivals() int64 { return e.wait.last }

// HasOlder reports whether any request waits or runs that was enqueued when Arrivals was n, or before.
func (e *Engine) HasOlder(n int64) bool {
	isOlder := func(s int32) bool { return e.seqs[s].arrival <= n }
	for d := range e.decoding.All() {
		if isOlder(d.Slot) {
			return true
		}
	}
	return slices.ContainsFunc(e.individual, isOlder) || slices.ContainsFunc(e.finishing, isOlder) ||
		slices.ContainsFunc(e.wait.heap, func(w waiter) bool { return isOlder(w.seq) })
}
