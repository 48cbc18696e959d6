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
	for ; steps < most && e.current.End < until && e.quiet(); steps++ {
		now, n := e.current.End, int64(e.current.decoding)
		e.deliver(now)
		e.trimLog()
		if last := len(r.Coasted) - 1; last >= 0 && r.Coasted[last].Gap == r.DecodeGap {
			r.Coasted[last].Tokens += n
		} else {
			r.Coasted = append(r.Coasted, GapRun{r.DecodeGap, n})
		}
		b := e.current
		if e.hasNext {
			e.current, e.next, b = e.next, e.current, e.current
		}
		e.begin(b)
		e.tick(b)
		e.cache.Settle()
		if e.offload != nil {
			e.now, e.offload.blocked = now, none
			e.endStores(now)
			e.offer(b)
		}
		e.advance(b)
		e.count(b)
		b.length = e.model.Step(latency.Batch{Decode: b.Decode, Context: b.Context, LongestContext: b.LongestContext,
			WindowContext: b.WindowContext})
		if e.offload == nil {
			e.inFlight, e.current.Start, e.current.End = true, now, now+e.current.length // start, without a call
		} else {
			e.startWithTier(now)
			if e.hasNext {
				e.askAll(b, max(e.current.End, b.notBefore)+b.length)
			}
		}
		e.used, e.tokenlessSteps = b.UsedBlocks, 0
	}
	if e.cadence != nil {
		e.cadence.formed += int64(steps)
	}
	r.Decoding, r.DecodeGap = 0, 0
	return steps, r
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
