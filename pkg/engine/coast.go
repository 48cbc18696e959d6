package engine

import (
	"blis/pkg/des"
	"blis/pkg/latency"
)

// GapRun is a number of tokens that came the same time after the ones before them.
type GapRun struct {
	Gap    des.Time
	Tokens int64
}

// Coast runs steps, from the one in flight on, that end before until and only give a token, which is not
// the last one, to each running sequence; at most the given number. It equals calls of Finish and Start at
// their ends and returns how many it ran. The gaps of their tokens are in Coasted of the result.
func (e *Engine) Coast(until des.Time, most int) (steps int, result *StepResult) {
	r := &e.result
	r.Coasted, e.formed, e.own.known = r.Coasted[:0], e.formed[:0], false
	if e.slow != nil || e.lora != nil || e.pipe != nil || e.masks() || e.encoder != nil && e.encoder.references > 0 ||
		!e.offload.coasts() {
		return 0, r
	}
	for steps < most && e.current.End < until && e.quiet() {
		if n := e.coastAlike(until, most-steps); n > 0 {
			steps += n
			continue
		}
		now, n := e.current.End, int64(e.current.decoding)
		e.deliver(now)
		e.trimLog()
		r.addCoasted(r.DecodeGap, n)
		b := e.current
		if e.hasNext {
			e.current, e.next, b = e.next, e.current, e.current
		}
		e.begin(b)
		e.tick(b)
		e.cache.Settle()
		e.offerCoasting(b, now)
		e.advance(b)
		e.count(b)
		b.length = e.model.Step(latency.Batch{Decode: b.Decode, Context: b.Context, LongestContext: b.LongestContext,
			WindowContext: b.WindowContext})
		e.startCoasting(b, now)
		e.used, e.tokenlessSteps, b.coasted = b.UsedBlocks, 0, true
		steps++
	}
	if e.cadence != nil {
		e.cadence.formed += int64(steps)
	}
	r.Decoding, r.DecodeGap = 0, 0
	return steps, r
}

// coastAlike runs those of the steps of Coast in which only contexts grow: no sequence gets its last token. All batches
// must be alike, so it returns 0 unless Coast formed those that have not ended.
func (e *Engine) coastAlike(until des.Time, most int) (steps int) {
	newest, c, r := e.current, e.cache, &e.result
	if e.hasNext {
		newest = e.next
	}
	if e.features || e.window.size > 0 || !e.current.coasted || !newest.coasted {
		return 0
	}
	tokens := int64(e.decoding.Len())
	output, longest, ends := e.model.Output(tokens), e.longestBase(), e.decoding.Next()
	for ; steps < most && e.current.End < until && c.Ticks()+1 < ends && c.TickNeed() <= c.Free(); steps++ {
		now, last := e.current.End, e.deliveredAt
		e.account(now)
		e.deliveredAt = max(last+1, e.notBefore, now+output)
		e.emittedTick = e.current.tick
		e.log.add(e.emittedTick, e.deliveredAt-last)
		r.addCoasted(e.deliveredAt-last, tokens)
		b := e.current
		if e.hasNext {
			e.current, e.next, b = e.next, e.current, e.current
		}
		e.newest++
		t := c.Ticks()
		b.number, b.tick, b.Context, b.LongestContext = e.newest, t+1, e.context+tokens*t, longest+t
		c.Tick()
		c.Settle()
		e.offerCoasting(b, now)
		e.used = c.Total() - c.Free()
		b.UsedBlocks = e.used
		e.stats.PeakBlocks = max(e.stats.PeakBlocks, e.used)
		b.length = e.model.Step(latency.Batch{Decode: tokens, Context: b.Context, LongestContext: b.LongestContext})
		e.startCoasting(b, now)
	}
	if steps > 0 {
		e.newestTicked, e.tokenlessSteps = e.newest, 0
		e.stats.Steps += int64(steps)
		e.stats.DecodeTokens += int64(steps) * tokens
		r.DeliveredAt = e.deliveredAt
		e.trimLog()
	}
	return steps
}

// offerCoasting offers the blocks of b to the tier, if there is one, when Coast forms it.
func (e *Engine) offerCoasting(b *batch, now des.Time) {
	if e.offload != nil {
		e.now, e.offload.blocked = now, none
		e.endStores(now)
		e.offer(b)
	}
}

// startCoasting starts the current step, after which b was formed if that is another one.
func (e *Engine) startCoasting(b *batch, now des.Time) {
	if e.offload == nil {
		e.inFlight, e.current.Start, e.current.End = true, now, now+e.current.length // start, without a call
		return
	}
	e.startWithTier(now)
	if e.hasNext {
		e.askAll(b, max(e.current.End, b.notBefore)+b.length)
	}
}

// addCoasted adds a number of tokens that come the same time after the ones before them.
func (r *StepResult) addCoasted(gap des.Time, tokens int64) {
	if last := len(r.Coasted) - 1; last >= 0 && r.Coasted[last].Gap == gap {
		r.Coasted[last].Tokens += tokens
	} else {
		r.Coasted = append(r.Coasted, GapRun{gap, tokens})
	}
}

// quiet reports whether the step in flight, the batches formed after it and the next one to form only
// decode, and no sequence has its last token in the formed ones.
func (e *Engine) quiet() bool {
	newest := e.current
	if e.hasNext {
		newest = e.next
	}
	return e.inFlight && e.hasNext == e.cfg.AsyncScheduling && e.current.ticked && newest.ticked &&
		len(e.individual)+len(e.finishing)+len(e.wait.heap)+len(e.aborted) == 0 &&
		len(e.current.individual)+len(newest.individual)+newest.Waiting == 0 &&
		0 < e.decoding.Len() && e.decoding.Len() <= e.cfg.MaxNumBatchedTokens && e.cache.TickNeed() <= e.cache.Free()
}
