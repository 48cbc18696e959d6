package engine

import (
	"cmp"
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/latency"
	"blis/pkg/portable"
)

// Forecast is the load that a new request meets at a replica, true or estimated: the numbers that
// decide how long it takes there.
type Forecast struct {
	// StepRemaining is the rest of the step in flight in µs. SlotWait is the number of steps that the
	// request then waits for a batch slot or for blocks.
	StepRemaining, SlotWait des.Time
	// QueuedTokens counts the prompt tokens that are computed before its own, Cached its own prompt
	// tokens that are in the cache. Queued requests are ahead of it.
	QueuedTokens, Cached, Queued int64
	// Decode sequences are in the batch, with Context tokens computed.
	Decode, Context int64
	// RemainingSteps is the mean number of steps that the sequences in the batch have left, 0 if
	// unknown.
	RemainingSteps int64
	// PrefillRate and DecodeRate are the prompt and output tokens that the replica computes per µs,
	// idle time included: the expected concurrent load.
	PrefillRate, DecodeRate float64
	// Budget is the maximum number of tokens of a step, MaxSeqs the maximum number of sequences.
	Budget, MaxSeqs int64
	// Drafts of speculative decoding are verified for each sequence that decodes. A step then gives the request
	// TokensPerStep on average; 0 is 1.
	Drafts        int64
	TokensPerStep float64
	// Adapters are in the batch. Unready is how long the grammar of the request is compiled.
	Adapters int64
	Unready  des.Time
	// Load is its load from KV tiers, and zero without one.
	Load TierLoad
}

// Estimate returns the times until the client has the first and the last output token, in µs from
// now, if the replica's load continues as it is.
func (o *Forecast) Estimate(m latency.Model, input, output int64) (first, last des.Time) {
	own := max(1, input-o.Cached-o.Load.Tokens)
	work, chunk := o.QueuedTokens+own, max(1, o.Budget-o.Decode)
	step := func(prefill, decode int64) des.Time {
		b := o.batch(prefill, decode)
		b.Context = o.Context
		if prefill > 0 {
			b.Chunks, b.Pairs = 1, prefill*(prefill+1)/2
		}
		if decode == 0 {
			b.Context = 0
		}
		return m.Step(b)
	}
	first = o.StepRemaining
	if o.SlotWait > 0 && o.SlotWait*chunk >= o.QueuedTokens { // earlier ones are computed while it waits
		first += o.SlotWait * step(o.QueuedTokens/o.SlotWait, o.Decode)
		work = own
	}
	if o.Load != (TierLoad{}) { // once it has loaded, its prompt comes before those of others
		first, work = o.loaded(first, work-own, chunk, step), own
	}
	if full := (work - 1) / chunk; full > 0 {
		work -= full * chunk
		first += full * m.Step(o.chunk(chunk, min(chunk, own), input-own+max(0, own-work-chunk)/2)) // the mean one
	}
	last = min(work, own)
	first = max(first, o.Unready) + m.Step(o.chunk(work, last, input-last)) + m.Output(o.Decode)
	last = first
	if output > 1 {
		last += o.steps(output-1) * o.decodeStep(m, input, output)
	}
	return first, last
}

// chunk returns a batch with n tokens of prompts, the last own ones of which are the request's, behind prior others of
// its prompt.
func (o *Forecast) chunk(n, own, prior int64) latency.Batch {
	b := o.batch(n, o.Decode)
	if o.Decode > 0 {
		b.Context = o.Context
	}
	b.Chunks, b.PriorContext, b.Pairs = 1, prior, n*(n+1)/2+own*prior
	return b
}

// batch returns a batch with these tokens of prompts and sequences that decode, each with its drafts.
func (o *Forecast) batch(prefill, decode int64) latency.Batch {
	return latency.Batch{Prefill: prefill, Decode: decode, Drafts: o.Drafts * decode, Proposals: o.Drafts,
		Adapters: o.Adapters}
}

// steps returns in how many steps the request gets this many tokens.
func (o *Forecast) steps(tokens int64) int64 {
	if o.TokensPerStep <= 1 {
		return tokens
	}
	return int64(math.Ceil(float64(tokens) / o.TokensPerStep))
}

// decodeStep returns the mean duration of a step while the request decodes. The longer a step is,
// the more requests arrive meanwhile, so a few iterations find the fixed point.
func (o *Forecast) decodeStep(m latency.Model, input, output int64) (us des.Time) {
	each := input + output/2 // mean context; also the guess for other sequences
	if o.Decode > 0 {
		each = o.Context / o.Decode
	}
	for range 4 {
		others := o.concurrent(o.steps(output-1), o.DecodeRate*float64(us))
		b := o.batch(0, others+1)
		b.Context = others*each + input + output/2
		if n := min(int64(o.PrefillRate*float64(us)), max(0, o.Budget-b.Decode)); n > 0 {
			b.Prefill, b.Chunks, b.Pairs = n, 1, n*(n+1)/2
		}
		us = m.Step(b)
	}
	return us
}

// concurrent returns the mean number of other sequences that decode during the given number of
// steps: current ones end and usual, the steady-state number, replaces them.
func (o *Forecast) concurrent(steps int64, usual float64) int64 {
	now := float64(min(o.Decode+o.Queued, o.MaxSeqs-1))
	if o.RemainingSteps == 0 {
		return int64(now)
	}
	x := float64(steps) / float64(o.RemainingSteps)
	usual = min(usual, float64(o.MaxSeqs-1))
	return int64(usual + (now-usual)*(1-portable.Exp(-x))/x)
}

// InTransit is a request on its way to a replica: its prompt has Input tokens.
type InTransit struct {
	Path  kv.Path
	Input int
}

// ownLoad is what Forecast finds in the engine's own requests. Many forecasts are made between two changes.
type ownLoad struct {
	// known: forecast and pending are those of the present state. ordered: so are ends.
	known, ordered bool
	// forecast has the load without requests in transit, pending the prompts that will be computed.
	forecast Forecast
	pending  kv.PendingPrompts
	// ends are the decoding sequences by the tick at which they end.
	ends []des.Event
	// loads are those of the waiting requests.
	loads loadsAhead
}

// Forecast returns the load for a request that arrives behind the engine's requests and those in
// transit before it.
func (e *Engine) Forecast(now des.Time, r InTransit, before []InTransit) Forecast {
	if !e.own.known {
		e.lookAhead()
	}
	o := e.own.forecast
	o.Queued += int64(len(before))
	if e.inFlight {
		o.StepRemaining = max(0, e.current.End-now)
	}
	tiers, loads := e.offload != nil && e.offload.store != nil, e.own.loads
	if len(before) > 0 {
		e.own.pending.Mark()
	}
	for _, b := range before {
		o.QueuedTokens += e.uncachedTokens(b)
	}
	o.Cached = int64(e.cache.MatchAfter(r.Path, r.Input-1, &e.own.pending))
	if len(before) > 0 {
		e.own.pending.Undo()
	}
	demand := o.QueuedTokens + int64(r.Input) - o.Cached
	if tiers {
		o.Load = e.forecastLoad(now, r, int(o.Cached))
		demand += e.own.loads.tokens
		e.own.loads = loads
	}
	o.SlotWait = e.slotWait(o.Queued, e.cache.Demand(demand, o.Queued+1))
	return o
}

// lookAhead finds the load of the engine's own requests.
func (e *Engine) lookAhead() {
	e.own.known = true
	e.own.pending.Clear()
	e.own.loads = loadsAhead{}
	o := Forecast{Queued: int64(len(e.wait.heap)), Budget: int64(e.cfg.MaxNumBatchedTokens),
		MaxSeqs: int64(e.cfg.MaxNumSeqs)}
	for _, s := range e.individual {
		q := &e.seqs[s]
		if n := int64(q.remaining()); n > 1 {
			o.QueuedTokens += n
			e.own.pending.Add(e.cache.Path(q.kv), int(q.computed+q.remaining()))
		} else {
			o.Decode++
			o.Context += int64(q.computed)
			if e.spec != nil {
				o.RemainingSteps += e.stepsLeft(q)
			}
		}
	}
	if o.RemainingSteps > 0 {
		o.RemainingSteps = max(1, o.RemainingSteps/o.Decode)
	}
	if len(e.loaders) > 0 {
		e.lookAheadLoads(&o)
	}
	if n := len(e.wait.heap); n > 0 {
		sampled, tokens := min(n, maxSampled), int64(0)
		for i := range sampled {
			q := &e.seqs[e.wait.heap[i*n/sampled].seq]
			tokens += e.uncachedTokens(InTransit{e.cache.Path(q.kv), int(q.remaining())})
		}
		o.QueuedTokens += tokens * int64(n) / int64(sampled)
		e.own.loads.scale(int64(n), int64(sampled))
	}
	o.Decode += int64(e.decoding.Len())
	o.Context += e.context + int64(e.decoding.Len())*e.cache.Ticks()
	for d := range e.decoding.All() {
		o.RemainingSteps += d.At - e.cache.Ticks()
	}
	if n := int64(e.decoding.Len()); n > 0 {
		o.RemainingSteps = max(1, o.RemainingSteps/n)
	}
	e.own.forecast = o
}

// maxSampled is the maximum number of waiting requests to inspect; a longer queue is extrapolated
// from an evenly spaced sample.
const maxSampled = 64

// uncachedTokens returns how many tokens of r are left to compute after the pending prompts, and
// adds r to them.
func (e *Engine) uncachedTokens(r InTransit) int64 {
	cached := e.cache.MatchAfter(r.Path, r.Input-1, &e.own.pending)
	tokens := r.Input - cached
	if e.offload != nil && e.offload.store != nil {
		tokens -= e.loadAhead(r, cached)
	}
	e.own.pending.Add(r.Path, r.Input)
	return int64(tokens)
}

// orderEnds orders the decoding sequences by their ends.
func (e *Engine) orderEnds() {
	o := &e.own
	if o.ordered {
		return
	}
	o.ordered, o.ends = true, slices.AppendSeq(o.ends[:0], e.decoding.All())
	switch {
	case e.pipe != nil:
		o.ordered, o.ends = false, e.pipelinedEnds(o.ends)
	case e.spec != nil:
		o.ordered, o.ends = false, e.draftedEnds(o.ends)
	}
	slices.SortFunc(o.ends, func(a, b des.Event) int { return cmp.Compare(a.At, b.At) })
}

// slotWait returns how many steps pass until a request behind queued others has a batch slot, and
// all of them together have the given number of blocks.
func (e *Engine) slotWait(queued, blocks int64) des.Time {
	slots := queued + 1 + int64(e.Running()) - int64(e.cfg.MaxNumSeqs)
	blocks -= int64(e.cache.Free())
	if slots <= 0 && blocks <= 0 {
		return 0
	}
	e.orderEnds()
	ends := e.own.ends
	if len(ends) == 0 {
		return 0
	}
	last := len(ends) - 1
	if slots > int64(last) {
		return max(0, ends[last].At-e.cache.Ticks())
	}
	at := max(0, int(slots)-1) // of the sequence that frees the last slot
	for i := 0; i <= last && blocks > 0; i++ {
		blocks -= int64(e.cache.HeldBlocks(e.seqs[ends[i].Slot].kv))
		at = max(at, i)
	}
	return max(0, ends[at].At-e.cache.Ticks())
}
