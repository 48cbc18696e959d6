package engine

import (
	"cmp"
	"slices"

	"blis/pkg/des"
)

// Finish ends the step in flight at time now, its End. The result is valid
// until the next Finish.
func (e *Engine) Finish(now des.Time) (*Ends, error) {
	e.inFlight = false
	e.account(now)
	e.stats.Steps++
	e.stats.PrefillTokens += e.step.Prefill
	e.stats.DecodeTokens += e.step.Decode
	e.ends = Ends{First: e.ends.First[:0], Done: e.ends.Done[:0], Left: e.ends.Left[:0], Gaps: e.ends.Gaps[:0]}
	e.finished = e.finished[:0]
	if e.ticked {
		e.ends.Steady, e.ends.Gap = e.steadies.Len()-e.steadyAborts(), now-e.step.Start
		if e.log.add(e.cache.Ticks(), e.ends.Gap); e.log.full() {
			e.log.forget(e.oldest())
		}
	}
	e.finishSteady(now)
	e.finishSingles(now)
	e.sortByOrder(e.finished)
	for _, s := range e.finished {
		q := &e.seqs[s]
		e.ends.Done = append(e.ends.Done, Result{Tag: q.tag, Generated: int(q.generated), Gaps: q.gaps})
		e.drop(s)
	}
	if len(e.aborted) > 0 {
		e.dropAborted()
	}
	return &e.ends, e.watch()
}

// finishSteady takes out the steady sequences that have all their output.
func (e *Engine) finishSteady(now des.Time) {
	for e.steadies.Next() <= e.cache.Ticks() {
		s := e.steadies.Pop().Slot
		if e.settle(s, now); e.seqs[s].aborted {
			e.seqs[s].state = single
			e.singles = append(e.singles, s)
			continue
		}
		e.finished = append(e.finished, s)
	}
}

// finishSingles gives their token to the singles that have computed all they
// had; these then are done or become steady.
func (e *Engine) finishSingles(now des.Time) {
	kept := e.singles[:0]
	for _, s := range e.singles {
		q := &e.seqs[s]
		q.computed += q.scheduled
		got := q.scheduled > 0 && q.want() == 0
		q.scheduled = 0
		switch {
		case !got || q.aborted:
			kept = append(kept, s)
			continue
		case q.generated == 0:
			e.ends.First = append(e.ends.First, q.tag)
		default:
			e.ends.Gaps = append(e.ends.Gaps, now-q.lastToken)
			q.gaps.add(now-q.lastToken, 1, e.cfg.KeepGaps)
		}
		q.generated++
		q.lastToken = now
		if q.generated == q.output {
			e.finished = append(e.finished, s)
		} else {
			e.makeSteady(s)
		}
	}
	e.singles = kept
}

// makeSteady lets s gain a token in each step from now on.
func (e *Engine) makeSteady(s int32) {
	q := &e.seqs[s]
	q.state, q.since = steady, e.cache.Ticks()
	e.newest = max(e.newest, q.order)
	e.context += int64(q.computed) - q.since
	e.cache.Grow(q.kv, int(q.computed))
	e.steadies.Push(des.NewEvent(q.since+int64(q.output-q.generated), 0, q.order, s))
}

// settle makes the books of a steady sequence, which is no longer in the heap,
// true again; last is when it got its last token.
func (e *Engine) settle(s int32, last des.Time) {
	q := &e.seqs[s]
	gained := int32(e.cache.Ticks() - q.since)
	e.context -= int64(q.computed) - q.since
	e.log.collect(&q.gaps, q.since, e.cache.Ticks())
	q.generated += gained
	q.computed += gained
	q.lastToken = last
	e.cache.Settle(q.kv)
}

// settleAll makes every running sequence a single, between two steps.
func (e *Engine) settleAll() {
	for d := range e.steadies.All() {
		e.settle(d.Slot, e.step.Start)
		e.seqs[d.Slot].state = single
		e.singles = append(e.singles, d.Slot)
	}
	e.steadies.Keep(func(des.Event) bool { return false })
	e.sortByOrder(e.singles)
	for _, s := range e.singles {
		e.seqs[s].scheduled = 0
	}
}

func (e *Engine) sortByOrder(list []int32) {
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b int32) int { return cmp.Compare(e.seqs[a].order, e.seqs[b].order) })
	}
}

// oldest returns since when all steady sequences are steady.
func (e *Engine) oldest() int64 {
	t := e.cache.Ticks()
	for d := range e.steadies.All() {
		t = min(t, e.seqs[d.Slot].since)
	}
	return t
}

// drop ends a sequence that is in no list.
func (e *Engine) drop(s int32) {
	e.cache.Close(e.seqs[s].kv)
	e.spare = append(e.spare, s)
}

// Abort ends the request that Enqueue numbered s, and returns what it had. It
// leaves at once if it holds no blocks or no step is in flight, else when that
// ends: its token of that step is lost.
func (e *Engine) Abort(s int32) (r Result, left bool) {
	q := &e.seqs[s]
	e.fruitless = 0
	if q.state == waiting {
		e.unqueue(s)
		r = Result{Tag: q.tag, Generated: int(q.generated), Gaps: q.gaps}
		e.drop(s)
		return r, true
	}
	q.aborted = true
	e.aborted = append(e.aborted, s)
	r = Result{Tag: q.tag, Generated: int(q.generated), Gaps: q.gaps}
	q.gaps = Gaps{} // they are r's now
	if q.state == steady {
		last := e.cache.Ticks()
		if e.inFlight && e.ticked {
			last--
		}
		r.Generated += int(last - q.since)
		e.log.collect(&r.Gaps, q.since, last)
	}
	if e.inFlight {
		return r, false
	}
	e.dropAborted()
	return r, true
}

// steadyAborts counts the steady sequences that were aborted.
func (e *Engine) steadyAborts() int {
	n := 0
	for _, s := range e.aborted {
		if e.seqs[s].state == steady {
			n++
		}
	}
	return n
}

// dropAborted lets the aborted sequences go, in the order of their aborts.
func (e *Engine) dropAborted() {
	aborted := func(s int32) bool { return e.seqs[s].aborted }
	e.singles = slices.DeleteFunc(e.singles, aborted)
	e.steadies.Keep(func(d des.Event) bool { return !aborted(d.Slot) })
	for _, s := range e.aborted {
		if e.seqs[s].state == steady {
			e.settle(s, 0)
		}
		e.ends.Left = append(e.ends.Left, e.seqs[s].tag)
		e.drop(s)
	}
	e.aborted = e.aborted[:0]
}

// watch stops a replica that computes for ever without a token: the first in
// line needs at most a step for each token that the cache has room for.
func (e *Engine) watch() error {
	if e.ends.Steady+len(e.ends.First)+len(e.ends.Gaps) > 0 {
		e.fruitless = 0
		return nil
	}
	if e.fruitless++; e.fruitless > e.patience {
		return e.stuck("computes without end and no token appears")
	}
	return nil
}
