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
