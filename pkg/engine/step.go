package engine

import (
	"fmt"

	"blis/pkg/des"
)

// Start forms a batch at time now and returns false if there is nothing to do.
// It fails when no sequence can make progress, which is a bug.
func (e *Engine) Start(now des.Time) (bool, error) {
	if e.Running()+e.queued == 0 {
		return false, nil
	}
	e.step = Step{Start: now, Admitted: e.step.Admitted[:0], Preempted: e.step.Preempted[:0]}
	budget := e.cfg.MaxNumBatchedTokens
	if !e.runTogether(&budget) {
		e.runOneByOne(&budget)
	}
	if len(e.step.Preempted) == 0 {
		e.admit(&budget)
	}
	if e.step.Prefill+e.step.Decode == 0 {
		return false, e.stuck("schedules nothing")
	}
	e.step.End = now + e.model.Step(e.step.Batch)
	e.step.Running, e.step.Waiting = e.Running(), e.queued
	e.step.UsedBlocks = e.cache.Total() - e.cache.Free()
	e.inFlight = true
	e.stats.PeakRunning = max(e.stats.PeakRunning, e.step.Running)
	e.stats.PeakBlocks = max(e.stats.PeakBlocks, e.step.UsedBlocks)
	return true, nil
}

// Stop accounts for the part of a step in flight that lies before now, where a
// simulation ends.
func (e *Engine) Stop(now des.Time) {
	if e.inFlight {
		e.account(now)
	}
}

func (e *Engine) account(now des.Time) {
	d := now - e.step.Start
	e.stats.BusyUS += d
	e.stats.BlockUS += float64(d) * float64(e.step.UsedBlocks)
}

// want returns how many tokens s still has to compute.
func (q *sequence) want() int32 { return q.input + q.generated - q.computed }

// runTogether schedules what runs: the steady sequences as one, the singles in
// turn. It does nothing and returns false where the order of admission would
// decide who gets tokens or blocks.
func (e *Engine) runTogether(budget *int) bool {
	left := *budget - e.steadies.Len()
	need := 0
	if left < 0 {
		return false
	}
	if e.steadies.Len() > 0 {
		need = e.cache.TickNeed()
	}
	for _, s := range e.singles {
		q := &e.seqs[s]
		n := e.capped(int(q.want()))
		if n > left {
			if q.order < e.newest {
				return false
			}
			n = left
		}
		if n > 0 && e.cache.Writing(q.kv) {
			return false
		}
		need += e.cache.Missing(q.kv, int(q.computed)+n)
		left -= n
		q.scheduled = int32(n)
	}
	if need > e.cache.Free() {
		return false
	}
	if e.ticked = e.steadies.Len() > 0; e.ticked {
		e.step.Decode = int64(e.steadies.Len())
		e.step.Context = e.context + e.step.Decode*e.cache.Ticks()
		e.cache.Tick()
	}
	for _, s := range e.singles {
		q := &e.seqs[s]
		if q.scheduled > 0 {
			e.cache.Extend(q.kv, int(q.computed+q.scheduled))
			e.count(q)
		}
	}
	*budget = left
	return true
}

// capped applies the long-prefill threshold.
func (e *Engine) capped(n int) int {
	if t := e.cfg.LongPrefillTokenThreshold; 0 < t && t < n {
		return t
	}
	return n
}

// count adds what q computes in this step to the batch.
func (e *Engine) count(q *sequence) {
	if q.generated > 0 && q.want() == 1 {
		e.step.Decode++
		e.step.Context += int64(q.computed)
	} else {
		e.step.Prefill += int64(q.scheduled)
	}
}

// runOneByOne schedules what runs, sequence by sequence in order of admission,
// preempting from the end where blocks run out.
func (e *Engine) runOneByOne(budget *int) {
	e.settleAll()
	e.ticked = false
	for i := 0; i < len(e.singles) && *budget > 0; i++ {
		q := &e.seqs[e.singles[i]]
		n := min(e.capped(int(q.want())), *budget)
		for !e.cache.Extend(q.kv, int(q.computed)+n) {
			victim := e.singles[len(e.singles)-1]
			e.preempt(victim)
			if len(e.singles) == i {
				return
			}
		}
		q.scheduled = int32(n)
		*budget -= n
		e.count(q)
	}
}

// preempt throws the last running sequence back into the wait queue. It has not
// had its turn in this step.
func (e *Engine) preempt(s int32) {
	q := &e.seqs[s]
	e.cache.Release(q.kv)
	q.computed, q.state = 0, waiting
	e.singles = e.singles[:len(e.singles)-1]
	e.putBack(s)
	e.step.Preempted = append(e.step.Preempted, q.tag)
	e.stats.Preemptions++
}

// admit schedules waiting requests in queue order until the first that does not
// fit.
func (e *Engine) admit(budget *int) {
	for *budget > 0 && e.head != none && e.Running() < e.cfg.MaxNumSeqs {
		s := e.head
		q := &e.seqs[s]
		tokens := int(q.input + q.generated)
		cached := e.cache.Lookup(q.kv, tokens-1)
		n := e.capped(tokens - cached)
		if n > *budget && !e.cfg.ChunkedPrefill {
			return
		}
		n = min(n, *budget)
		if !e.cache.Admit(q.kv, cached+n) {
			return
		}
		e.unqueue(s)
		q.computed, q.scheduled, q.state = int32(cached), int32(n), single
		q.order = e.orders
		e.orders++
		e.singles = append(e.singles, s)
		*budget -= n
		e.count(q)
		if !q.admitted {
			q.admitted = true
			e.step.Admitted = append(e.step.Admitted, Admission{q.tag, cached})
			e.stats.QueriedTokens += int64(tokens)
			e.stats.CachedTokens += int64(cached)
		}
	}
}

// stuck is the error of a replica that makes no progress.
func (e *Engine) stuck(how string) error {
	s := e.head
	if len(e.singles) > 0 {
		s = e.singles[0]
	} else if e.steadies.Len() > 0 {
		s = e.steadies.First().Slot
	}
	return &StuckError{Tag: e.seqs[s].tag, Msg: fmt.Sprintf("the replica %s: %d running, %d waiting, %d of %d blocks free",
		how, e.Running(), e.queued, e.cache.Free(), e.cache.Total())}
}

// StuckError is a replica that makes no progress though it has work.
type StuckError struct {
	Tag int32 // a request that does not get on
	Msg string
}

func (e *StuckError) Error() string { return "engine: " + e.Msg }
