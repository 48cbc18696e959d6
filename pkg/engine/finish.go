package engine

import (
	"slices"

	"blis/pkg/des"
)

// Finish ends the step in flight at time now, its End. The result is valid until the next Finish.
func (e *Engine) Finish(now des.Time) (*StepResult, error) {
	b := e.current
	e.own.known = false
	e.deliver(now)
	e.result.Coasted, e.finished = e.result.Coasted[:0], e.finished[:0]
	if e.encoder != nil {
		e.finishItems(b)
	}
	for _, s := range b.finishing {
		q := &e.seqs[s]
		e.collect(q)
		e.emit(s, q)
	}
	for _, s := range b.individual {
		q := &e.seqs[s]
		if q.emitted == 0 {
			e.result.First = append(e.result.First, q.tag)
		} else {
			gap := e.deliveredAt - q.lastTokenAt
			e.result.Gaps = append(e.result.Gaps, gap)
			q.gaps.add(gap, 1, e.cfg.KeepGaps)
		}
		q.emitted++
		q.lastTokenAt = e.deliveredAt
		e.emit(s, q)
	}
	if e.spec != nil {
		e.finishDrafted(b)
	}
	if e.pipe != nil {
		e.finishPipelined(b)
	}
	e.trimLog()
	if e.offload != nil {
		if e.offload.cfg.WholePrompts {
			e.reportPrompts()
		}
		e.dropWithTier(now)
		return &e.result, e.checkProgress()
	}
	if len(e.aborted) > 0 { // vLLM processes aborts before a step's output
		e.dropAborted()
	}
	e.dropFinished()
	return &e.result, e.checkProgress()
}

// deliver ends the step in flight: clients get its tokens. The result has those of decoding sequences.
func (e *Engine) deliver(now des.Time) {
	b, r := e.current, &e.result
	e.inFlight = false
	e.account(now)
	if e.pipe != nil {
		e.stats.StageUS += b.stageUS(now)
	}
	e.stats.Steps++
	e.stats.PrefillTokens += b.Prefill
	e.stats.DecodeTokens += b.Decode
	last, filled := e.deliveredAt, now
	if e.grammars != nil {
		filled += e.fillDeferred(now)
	}
	e.deliveredAt = max(last+1, e.notBefore, filled+e.model.Output(b.Decode))
	r.DeliveredAt, r.Decoding, r.DecodeGap = e.deliveredAt, 0, 0
	r.First, r.Done, r.Aborted, r.Gaps = r.First[:0], r.Done[:0], r.Aborted[:0], r.Gaps[:0]
	if b.ticked {
		e.emittedTick = b.tick
		r.Decoding, r.DecodeGap = b.decoding, e.deliveredAt-last
		e.log.add(b.tick, r.DecodeGap)
	}
}

func (e *Engine) trimLog() {
	if e.log.full() {
		e.log.trim(e.oldestNeededTick())
	}
}

// emit records that the newest token of s was emitted. Other sequences can now find the block that
// it completes.
func (e *Engine) emit(s int32, q *sequence) {
	if q.state != waiting && e.cfg.AsyncScheduling {
		e.cache.Publish(q.kv, int(q.input+q.emitted-1))
	}
	if q.emitted == q.output {
		e.finished = append(e.finished, s)
	}
}

// dropFinished removes the sequences that have all their output, in order of admission.
func (e *Engine) dropFinished() {
	if len(e.finished) == 0 {
		return
	}
	e.sortByAdmission(e.finished)
	e.finishing = slices.DeleteFunc(e.finishing, func(s int32) bool { return e.seqs[s].emitted == e.seqs[s].output })
	for _, s := range e.finished {
		q := &e.seqs[s]
		switch q.state {
		case waiting: // preempted while its last token was in flight
			e.dequeue(s)
		case individual: // its overrun is not in a batch
			i := slices.Index(e.individual, s)
			e.individual = slices.Delete(e.individual, i, i+1)
		}
		e.result.Done = append(e.result.Done, Result{Tag: q.tag, Generated: int(q.output), Gaps: q.gaps})
		if q.hold {
			e.endUse(s)
			e.hold(s)
			continue
		}
		if e.offload != nil && q.lastBatch > e.current.number {
			e.dropLate(s)
			continue
		}
		e.drop(s)
	}
}

// drop ends a sequence that is in no list.
func (e *Engine) drop(s int32) {
	e.own.known = false
	if e.spec != nil {
		e.current.forget(s)
		e.next.forget(s)
	}
	if e.pipe != nil {
		e.pipe.forget(e.current, s)
	}
	if e.offload != nil && !e.offload.uses[s].ended {
		e.endUse(s)
	}
	if e.lora != nil {
		e.lora.drop(&e.seqs[s])
	}
	if e.grammars != nil {
		e.dropGrammar(s)
	}
	if e.encoder != nil {
		e.leaveItems(s)
		e.current.forgetItems(s)
		e.next.forgetItems(s)
		if e.encoder.remote != nil {
			e.encoder.forget(s)
		}
	}
	e.cache.Close(e.seqs[s].kv)
	e.seqs[s] = sequence{}
	e.spare = append(e.spare, s)
}

// checkProgress reports a replica that computes forever without emitting a token. One sequence
// needs at most a step for each token that the cache can hold, plus a few for sequences preempted
// first.
func (e *Engine) checkProgress() error {
	if e.result.Decoding+len(e.result.First)+len(e.result.Gaps) > 0 ||
		e.offload != nil && e.offload.busy() { // others may hold the blocks that it needs
		e.tokenlessSteps = 0
		return nil
	}
	if e.tokenlessSteps++; e.tokenlessSteps > e.stallLimit {
		return e.noProgress("computes forever without emitting a token")
	}
	return nil
}
