package engine

import (
	"slices"

	"blis/pkg/des"
)

// Finish ends the step in flight at time now, its End. The result is valid
// until the next Finish.
func (e *Engine) Finish(now des.Time) (*Ends, error) {
	b := e.current
	e.inFlight = false
	e.account(now)
	e.stats.Steps++
	e.stats.PrefillTokens += b.Prefill
	e.stats.DecodeTokens += b.Decode
	e.ends = Ends{First: e.ends.First[:0], Done: e.ends.Done[:0], Left: e.ends.Left[:0], Gaps: e.ends.Gaps[:0]}
	e.finished = e.finished[:0]
	last := e.seen
	e.seen = max(last+1, now+e.model.Output(b.Decode))
	e.ends.Seen = e.seen
	if b.ticked {
		e.shown = b.tick
		e.ends.Steady, e.ends.Gap = b.steady, e.seen-last
		e.log.add(b.tick, e.ends.Gap)
	}
	for _, s := range b.last {
		q := &e.seqs[s]
		e.collect(q)
		e.show(s, q)
	}
	for _, s := range b.tokens {
		q := &e.seqs[s]
		if q.shown == 0 {
			e.ends.First = append(e.ends.First, q.tag)
		} else {
			gap := e.seen - q.lastToken
			e.ends.Gaps = append(e.ends.Gaps, gap)
			q.gaps.add(gap, 1, e.cfg.KeepGaps)
		}
		q.shown++
		q.lastToken = e.seen
		e.show(s, q)
	}
	if e.log.full() {
		e.log.forget(e.oldest())
	}
	e.dropFinished()
	if len(e.aborted) > 0 {
		e.dropAborted()
	}
	return &e.ends, e.watch()
}

// show notes that the newest token of s has appeared: others can now find the
// block that it completed the knowledge of.
func (e *Engine) show(s int32, q *sequence) {
	if q.state != waiting && e.cfg.AsyncScheduling {
		e.cache.Know(q.kv, int(q.input+q.shown-1))
	}
	if q.shown == q.output {
		e.finished = append(e.finished, s)
	}
}

// dropFinished lets those go that have all their output, in order of admission.
func (e *Engine) dropFinished() {
	if len(e.finished) == 0 {
		return
	}
	e.sortByTurn(e.finished)
	e.endings = slices.DeleteFunc(e.endings, func(s int32) bool { return e.seqs[s].shown == e.seqs[s].output })
	for _, s := range e.finished {
		q := &e.seqs[s]
		if q.state == waiting { // preempted when its last token was in flight
			e.unqueue(s)
		}
		e.ends.Done = append(e.ends.Done, Result{Tag: q.tag, Generated: int(q.output), Gaps: q.gaps})
		e.drop(s)
	}
}

// drop ends a sequence that is in no list.
func (e *Engine) drop(s int32) {
	e.cache.Close(e.seqs[s].kv)
	e.seqs[s] = sequence{}
	e.spare = append(e.spare, s)
}

// watch stops a replica that computes for ever without a token: one sequence
// needs at most a step for each token that the cache has room for, and a few may
// have to give way before.
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
