package engine

import (
	"cmp"
	"slices"

	"blis/pkg/des"
)

// A decoding sequence gets a token at each tick of the cache's clock. It is not visited until it is
// done, preempted or aborted.

// startDecoding gives s a token in each batch from the next one on.
func (e *Engine) startDecoding(s int32) {
	q := &e.seqs[s]
	q.state, q.onClock = decoding, true
	q.startTick, q.countedTick = e.cache.Ticks(), e.cache.Ticks()
	q.endTick = q.startTick + int64(q.output-q.generated)
	e.newestDecoding = max(e.newestDecoding, q.admission)
	base := int64(q.computed) - q.startTick
	e.context += base
	e.longest.add(base)
	e.window.add(base, q.startTick)
	lag, computing := 0, 0
	if e.cfg.AsyncScheduling {
		lag, computing = 1, int(q.lastTokens) // each token it computes is in flight when it gets the next one
	}
	e.cache.Grow(q.kv, int(q.computed), lag, computing)
	e.own.ordered = false
	e.decoding.Push(des.NewEvent(q.endTick, 0, q.admission, s))
	if e.cfg.KeepBatches {
		e.started = append(e.started, started{q.admission, s})
	}
}

// materialize updates the counts of a decoding sequence that was removed from the heap.
func (e *Engine) materialize(s int32) {
	q := &e.seqs[s]
	if e.offload != nil {
		e.offload.stopFilling(s, q)
	}
	base := int64(q.computed) - q.startTick
	e.context -= base
	e.longest.remove(base)
	e.window.remove(base, e.cache.Ticks())
	gained := int32(e.cache.Ticks() - q.startTick)
	if gained > 0 {
		q.lastTokens, q.lastBatch = 1, e.newestTicked
	}
	q.generated += gained
	q.computed += gained
	e.cache.StopGrowing(q.kv)
}

// materializeAll turns every running sequence into an individual one when a batch is formed. Tokens
// in flight are then assigned to individual sequences.
func (e *Engine) materializeAll() {
	for d := range e.decoding.All() {
		q := &e.seqs[d.Slot]
		e.materialize(d.Slot)
		if q.startTick < e.emittedTick {
			e.collect(q)
			q.lastTokenAt = e.deliveredAt
		}
		if e.expectsToken(q, e.current) {
			e.current.decoding--
			e.current.individual = append(e.current.individual, d.Slot)
		}
		q.onClock, q.state = false, individual
		e.individual = append(e.individual, d.Slot)
	}
	e.own.ordered, e.started = false, e.started[:0]
	e.decoding.Keep(func(des.Event) bool { return false })
	e.individual = append(e.individual, e.finishing...)
	e.finishing = e.finishing[:0]
	e.sortByAdmission(e.individual)
}

// expectsToken reports whether q is a decoding sequence that gets a token at the end of b, and b
// has not ended.
func (e *Engine) expectsToken(q *sequence, b *batch) bool {
	return q.onClock && b.ticked && e.emittedTick < b.tick && q.startTick < b.tick && b.tick <= q.endTick
}

// collect counts the emitted tokens of q that are not counted yet, and their gaps.
func (e *Engine) collect(q *sequence) {
	upto := min(e.emittedTick, q.endTick)
	if upto <= q.countedTick {
		return
	}
	e.log.collect(&q.gaps, q.countedTick, upto)
	q.emitted += int32(upto - q.countedTick)
	q.countedTick = upto
}

func (e *Engine) sortByAdmission(list []int32) {
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b int32) int { return cmp.Compare(e.seqs[a].admission, e.seqs[b].admission) })
	}
}

// oldestNeededTick returns the last tick before the gaps that still have to be collected.
func (e *Engine) oldestNeededTick() int64 {
	t := e.cache.Ticks()
	for d := range e.decoding.All() {
		t = min(t, e.seqs[d.Slot].countedTick)
	}
	if e.hasNext {
		for _, s := range e.next.finishing {
			t = min(t, e.seqs[s].countedTick)
		}
	}
	return t
}
