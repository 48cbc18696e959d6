package engine

import (
	"cmp"
	"slices"

	"blis/pkg/des"
)

// A steady sequence gets a token at each tick of the cache's clock and is not
// looked at until it is done, preempted or aborted.

// makeSteady lets s gain a token in each batch from the next one on.
func (e *Engine) makeSteady(s int32) {
	q := &e.seqs[s]
	q.state, q.counting = steady, true
	q.since, q.seen = e.cache.Ticks(), e.cache.Ticks()
	q.until = q.since + int64(q.output-q.generated)
	e.newest = max(e.newest, q.turn)
	base := int64(q.computed) - q.since
	e.context += base
	e.window.add(base, q.since)
	behind := 0
	if e.cfg.AsyncScheduling {
		behind = 1 // the token it computes next is still in flight
	}
	e.cache.Grow(q.kv, int(q.computed), behind)
	e.steadies.Push(des.NewEvent(q.until, 0, q.turn, s))
}

// unsteady brings the counts of a steady sequence, which is no longer in the
// heap, up to date.
func (e *Engine) unsteady(s int32) {
	q := &e.seqs[s]
	base := int64(q.computed) - q.since
	e.context -= base
	e.window.remove(base, e.cache.Ticks())
	gained := int32(e.cache.Ticks() - q.since)
	q.generated += gained
	q.computed += gained
	e.cache.Settle(q.kv)
}

// settleAll makes every running sequence a single when a batch is formed. What is in flight for them are then tokens of their own.
func (e *Engine) settleAll() {
	for d := range e.steadies.All() {
		q := &e.seqs[d.Slot]
		e.unsteady(d.Slot)
		if q.since < e.shown {
			e.collect(q)
			q.lastToken = e.seen
		}
		if e.awaits(q, e.current) {
			e.current.steady--
			e.current.tokens = append(e.current.tokens, d.Slot)
		}
		q.counting, q.state = false, single
		e.singles = append(e.singles, d.Slot)
	}
	e.steadies.Keep(func(des.Event) bool { return false })
	e.singles = append(e.singles, e.endings...)
	e.endings = e.endings[:0]
	e.sortByTurn(e.singles)
}

// awaits reports whether q is one of the steady sequences that get a token when
// b ends, and that has not happened.
func (e *Engine) awaits(q *sequence, b *batch) bool {
	return q.counting && b.ticked && e.shown < b.tick && q.since < b.tick && b.tick <= q.until
}

// collect counts for q the tokens of ticks that have appeared, and their gaps.
func (e *Engine) collect(q *sequence) {
	upto := min(e.shown, q.until)
	if upto <= q.seen {
		return
	}
	e.log.collect(&q.gaps, q.seen, upto)
	q.shown += int32(upto - q.seen)
	q.seen = upto
}

func (e *Engine) sortByTurn(list []int32) {
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b int32) int { return cmp.Compare(e.seqs[a].turn, e.seqs[b].turn) })
	}
}

// oldest returns the first tick whose gaps are still to be collected, less one.
func (e *Engine) oldest() int64 {
	t := e.cache.Ticks()
	for d := range e.steadies.All() {
		t = min(t, e.seqs[d.Slot].seen)
	}
	if e.isQueued {
		for _, s := range e.ahead.last {
			t = min(t, e.seqs[s].seen)
		}
	}
	return t
}
