package engine

import "slices"

// cadence lets prompts be computed in some steps only: prefill_schedule_interval of vLLM 0.33 (Scheduler.schedule in
// vllm/v1/core/sched/scheduler.py, DPEngineCoreProc._should_throttle_prefills in vllm/v1/engine/core.py). Such a limit
// holds while a sequence decodes, and not if requests were left in the queue by the last batch that could have prompts.
type cadence struct {
	interval int64
	// joint: the steps are those of the ranks of a server, which have prompts at multiples of interval. Else there are
	// prompts when interval batches have been formed since the last one with a chunk.
	joint bool
	// formed counts the batches with tokens, those that were formed since the ranks began to run if joint. lastPrefill
	// is what it was with the last one that has a chunk.
	formed, lastPrefill int64
	// saturated: requests were left in the queue that were not passed (prefill_capacity_bound).
	saturated bool
	// Of the batch being formed: it has no chunks, and a waiting request is therefore not admitted, or it has one.
	defers, stops, prefills bool
	// passed are the waiting requests that were passed before, by their number (deferred_waiting).
	passed []bool
}

func newCadence(cfg *Config) *cadence {
	if cfg.PrefillInterval <= 1 {
		return nil
	}
	n := int64(cfg.PrefillInterval)
	return &cadence{interval: n, joint: cfg.JointSteps, lastPrefill: -n}
}

// beginCadence decides whether the batch that is formed now may have chunks.
func (e *Engine) beginCadence() {
	c := e.cadence
	throttled := c.formed+1-c.lastPrefill < c.interval
	if c.joint {
		throttled = c.formed%c.interval != 0
	}
	c.stops, c.prefills = false, false
	c.defers = throttled && !c.saturated && e.decodes()
}

// decodes reports whether any running sequence had no part of its prompt left when it was last scheduled.
func (e *Engine) decodes() bool {
	return e.decoding.Len()+len(e.finishing) > 0 ||
		slices.ContainsFunc(e.individual, func(s int32) bool { return !e.seqs[s].inPrompt })
}

// runningTokens is the number of tokens that a running q may compute in the batch being formed, of n.
func (e *Engine) runningTokens(q *sequence, n int) int {
	if e.cadence != nil && e.cadence.defers && q.inPrompt {
		return 0
	}
	return e.limitChunk(n)
}

// defersPrompt reports whether the batch being formed may not have a waiting request with this many tokens, of which
// some are cached.
func (e *Engine) defersPrompt(cached, tokens int) bool {
	if e.cadence == nil || !e.cadence.defers || cached >= tokens-1 {
		return false
	}
	e.cadence.stops = true
	return true
}

// setPassed notes whether the waiting request s has been passed.
func (c *cadence) setPassed(s int32, passed bool) {
	for len(c.passed) <= int(s) {
		c.passed = append(c.passed, false)
	}
	c.passed[s] = passed
}

// endCadence notes what b, whose sequences are not advanced yet, leaves to the next batches.
func (e *Engine) endCadence(b *batch) {
	c := e.cadence
	for _, s := range e.individual {
		if q := &e.seqs[s]; q.lastBatch == b.number {
			q.inPrompt = q.remaining() > 0
		}
	}
	if len(b.Preempted) == 0 && !c.defers {
		c.saturated = slices.ContainsFunc(e.wait.heap, func(w waiter) bool { return !c.passed[w.seq] })
	}
	if b.Prefill+b.Decode > 0 {
		c.formed++
	}
	if c.prefills {
		c.lastPrefill = c.formed
	}
}

func (c *cadence) clone() *cadence {
	if c == nil {
		return nil
	}
	d := *c
	d.passed = slices.Clone(c.passed)
	return &d
}
