package engine

import (
	"math"
	"slices"
)

// scheduleInOrder schedules the running sequences one by one in order of admission and preempts
// where blocks run out. A victim that was already scheduled leaves the batch, except for the hashes
// of blocks that it filled.
func (e *Engine) scheduleInOrder(b *batch, budget *int) {
	e.materializeAll()
	e.scheduled = e.scheduled[:0]
	if e.offload != nil {
		for _, s := range e.individual {
			e.offload.uses[s].computing = e.inFlight && e.seqs[s].lastBatch == e.current.number
		}
	}
	for i := 0; i < len(e.individual) && *budget > 0; i++ {
		q := &e.seqs[e.individual[i]]
		n := 0
		if e.pipe != nil {
			n = e.pipelinedTokens(e.individual[i], *budget)
		} else {
			n = e.align(q, int(q.computed), min(e.runningTokens(q, int(q.remaining())), *budget))
		}
		if e.encoder != nil {
			if n > 0 && e.awaitsItems(e.individual[i], int(q.computed)) {
				n = 0
			}
			n = e.cutAtItem(e.individual[i], int(q.computed), n)
		}
		at, skipped := e.makeRoom(b, i, n, budget)
		if at < 0 {
			if !e.cfg.ContinueAfterSelfPreemption || at == stuck {
				return
			}
			i = len(e.scheduled) - 1
			continue
		}
		if e.encoder != nil && n > 0 {
			e.encode(b, e.individual[at])
		}
		e.scheduled = append(e.scheduled, n)
		*budget -= n
		for range skipped {
			e.scheduled = append(e.scheduled, 0)
		}
		i = at + skipped
	}
}

// makeRoom schedules n tokens of the individual sequence at index i in b and preempts others until there
// are blocks for them. It returns the sequence's index after that, -1 if it preempted itself, or stuck,
// and how many of those behind it vLLM skips.
func (e *Engine) makeRoom(b *batch, i, n int, budget *int) (at, skipped int) {
	q := &e.seqs[e.individual[i]]
	for !e.extend(b, q, n) {
		v := e.victim()
		if e.offload != nil && e.offload.uses[e.individual[v]].computing {
			return stuck, 0
		}
		if v < i { // it had its turn: it returns its tokens
			back := e.scheduled[v]
			e.scheduled = slices.Delete(e.scheduled, v, v+1)
			e.undo(b, &e.seqs[e.individual[v]], back)
			*budget += back
			if e.encoder != nil {
				e.withdrawItems(b, e.individual[v])
			}
			if back > 0 && e.spec != nil {
				*budget += e.spec.BudgetSlots
			}
			if back == 0 && e.cfg.IdleVictimSkipsNext {
				skipped++
			}
		}
		e.preempt(b, v)
		if v == i {
			return -1, 0
		}
		if v < i {
			i--
		}
	}
	return i, skipped
}

// undo removes n tokens of q from b.
func (e *Engine) undo(b *batch, q *sequence, n int) {
	if e.spec != nil {
		e.undoDrafted(b, q, n)
		return
	}
	q.computed -= int32(n)
	if n > 0 {
		e.add(b, q, int64(n), -1)
		b.LongestContext = e.longestScheduled(b)
		e.withdraw(b, q)
	}
}

// victim returns the index in individual of the next sequence to preempt.
func (e *Engine) victim() int {
	last := len(e.individual) - 1
	if e.cfg.PreemptionScore == nil {
		return last
	}
	best, most := last, math.Inf(-1)
	for i := last; i >= 0; i-- {
		q := &e.seqs[e.individual[i]]
		if q.onClock { // its last token is in flight, the earlier ones are not counted yet
			e.collect(q)
		}
		p := Progress{Generated: int(q.emitted), Computed: int(q.computed), Blocks: e.cache.HeldBlocks(q.kv)}
		v := e.cfg.PreemptionScore(q.tag, p)
		if v > most || v == most && e.arrivedLater(e.individual[i], e.individual[best]) {
			best, most = i, v
		}
	}
	return best
}

// arrivedLater reports whether s, of the same score as t, is preempted before it since it arrived after it.
func (e *Engine) arrivedLater(s, t int32) bool {
	return e.offload != nil && e.offload.later(s, t) ||
		e.ordersByArrival() && e.seqs[s].arrival > e.seqs[t].arrival
}

// preempt moves the individual sequence at index at back to the wait queue. Its token in an earlier
// batch is still emitted.
func (e *Engine) preempt(b *batch, at int) {
	s := e.individual[at]
	q := &e.seqs[s]
	e.cache.Release(q.kv)
	if e.offload != nil {
		e.offload.preempted(s)
	}
	q.computed, q.state = 0, waiting
	if e.lora != nil {
		e.lora.leave(q)
	}
	if e.encoder != nil {
		e.leaveItems(s)
	}
	if e.spec != nil {
		e.preemptDrafted(s)
	}
	e.individual = slices.Delete(e.individual, at, at+1)
	e.requeue(s)
	b.Preempted = append(b.Preempted, q.tag)
	e.stats.Preemptions++
}
