package engine

import (
	"math"
	"slices"

	"blis/pkg/des"
)

// Speculate adds to o, a forecast of this replica, the drafts of speculative decoding for a request that has d.
func (e *Engine) Speculate(o *Forecast, d Drafts) {
	if e.spec != nil {
		o.Drafts = int64(e.spec.proposals(int(min(o.Decode+1, o.MaxSeqs))))
		o.TokensPerStep = e.spec.yield(d, int(o.Drafts))
	}
}

// Prepare adds to o, a forecast of this replica at time now, the adapters in its batch together with that of r, and how
// long the grammar of r is compiled.
func (e *Engine) Prepare(o *Forecast, now des.Time, r *Request) {
	if x := e.lora; x != nil {
		o.Adapters = int64(x.distinct)
		if r.Adapter != 0 && (int(r.Adapter) >= len(x.running) || x.running[r.Adapter] == 0) {
			o.Adapters = min(o.Adapters+1, int64(x.MaxLoras))
		}
	}
	if r.Grammar != 0 {
		_, ready := e.compilation(now, r)
		o.Unready = ready - now
	}
}

// compilation returns the worker that takes the grammar of a request that is enqueued now, and when it is compiled.
func (e *Engine) compilation(now des.Time, r *Request) (worker int, ready des.Time) {
	x := e.grammars
	if x == nil {
		return 0, now + r.CompileUS
	}
	for i, at := range x.free {
		if at < x.free[worker] {
			worker = i
		}
	}
	start := max(now, x.free[worker])
	if int(r.Grammar) < len(x.compiled) && x.compiled[r.Grammar] != never {
		return worker, max(start, x.compiled[r.Grammar])
	}
	return worker, start + r.CompileUS
}

// proposals returns how many drafts are proposed after a step with n sequences.
func (x *speculation) proposals(n int) int {
	if len(x.Schedule) > 0 && n > 0 {
		return x.Schedule[min(n, len(x.Schedule)-1)]
	}
	return x.Tokens
}

// yield returns how many tokens a step with n drafts gives on average.
func (x *speculation) yield(d Drafts, n int) float64 {
	tokens, all := 1.0, 1.0
	for i := range n {
		rate := d.Acceptance
		if rate < 0 {
			rate = x.Rates[i]
		}
		all = float64(all * rate)
		tokens += all
	}
	return tokens
}

// stepsLeft returns how many steps a running sequence with speculative decoding still decodes on average.
func (e *Engine) stepsLeft(q *sequence) int64 {
	x := e.spec
	yield := x.yield(x.seqs[q.kv].Drafts, x.proposals(len(e.individual)))
	return int64(math.Ceil(float64(q.output-q.emitted) / yield))
}

// draftedEnds appends the expected ends of the sequences that run with speculative decoding.
func (e *Engine) draftedEnds(ends []des.Event) []des.Event {
	ends = slices.Grow(ends, len(e.individual))
	for _, s := range e.individual {
		q := &e.seqs[s]
		ends = append(ends, des.NewEvent(e.cache.Ticks()+e.stepsLeft(q), 0, q.admission, s))
	}
	return ends
}
