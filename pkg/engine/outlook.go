package engine

import (
	"cmp"
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/latency"
)

// Outlook is what awaits a request at a replica, in the sums that decide how long
// it takes there: the true ones, or what somebody believes.
type Outlook struct {
	// Left is the rest of the step in flight in µs, Held how many steps it then
	// waits for a seat or for blocks.
	Left, Held des.Time
	// Ahead are the prompt tokens that are computed before its own, Cached those of
	// its own that need not be. Queued requests are before it.
	Ahead, Cached, Queued int64
	// Decode sequences are in the batch, with Context tokens computed.
	Decode, Context int64
	// Lasting is how many steps those in the batch have left on average, 0 if it is
	// not known.
	Lasting int64
	// PrefillRate and DecodeRate are how many prompt tokens and tokens of answers the
	// replica computes in a µs, idle ones included: what is to be expected beside.
	PrefillRate, DecodeRate float64
	// Budget is the most tokens that a step computes, Seats the most sequences.
	Budget, Seats int64
}

// Estimate returns when clients see the first token of a request's answer and the last,
// in µs from now, if the replica goes on as it is.
func (o *Outlook) Estimate(m latency.Model, input, output int64) (first, last des.Time) {
	own := max(1, input-o.Cached)
	work, room := o.Ahead+own, max(1, o.Budget-o.Decode)
	step := func(prefill, decode int64) des.Time {
		b := latency.Batch{Prefill: prefill, Decode: decode, Context: o.Context}
		if prefill > 0 {
			b.Chunks, b.Pairs = 1, prefill*(prefill+1)/2
		}
		if decode == 0 {
			b.Context = 0
		}
		return m.Step(b)
	}
	first = o.Left
	if o.Held > 0 && o.Held*room >= o.Ahead { // those before it are computed while it waits
		first += o.Held * step(o.Ahead/o.Held, o.Decode)
		work = own
	}
	if whole := (work - 1) / room; whole > 0 {
		first += whole * step(room, o.Decode)
		work -= whole * room
	}
	first += step(work, o.Decode) + m.Output(o.Decode)
	last = first
	if output > 1 {
		last += (output - 1) * o.decoding(m, input, output)
	}
	return first, last
}

// decoding is how long a step takes on average while the request decodes. The longer
// it is the more comes in meanwhile, so that it is found in a few rounds.
func (o *Outlook) decoding(m latency.Model, input, output int64) (us des.Time) {
	each := input + output/2 // context, also of others as far as is known
	if o.Decode > 0 {
		each = o.Context / o.Decode
	}
	for range 4 {
		others := o.beside(output-1, o.DecodeRate*float64(us))
		b := latency.Batch{Decode: others + 1, Context: others*each + input + output/2}
		if n := min(int64(o.PrefillRate*float64(us)), max(0, o.Budget-b.Decode)); n > 0 {
			b.Prefill, b.Chunks, b.Pairs = n, 1, n*(n+1)/2
		}
		us = m.Step(b)
	}
	return us
}

// beside is how many others decode on average while it does, for so many steps:
// those there now end, and as many as usual come in their place.
func (o *Outlook) beside(steps int64, usual float64) int64 {
	now := float64(min(o.Decode+o.Queued, o.Seats-1))
	if o.Lasting == 0 {
		return int64(now)
	}
	x := float64(steps) / float64(o.Lasting)
	usual = min(usual, float64(o.Seats-1))
	return int64(usual + (now-usual)*(1-math.Exp(-x))/x)
}

// Coming is a request on its way to a replica: its prompt, of Input tokens.
type Coming struct {
	Path  kv.Path
	Input int
}

// Outlook returns what awaits a request from now on that comes behind those that the
// engine has and those before it on the way.
func (e *Engine) Outlook(now des.Time, r Coming, before []Coming) Outlook {
	e.before.Clear()
	o := Outlook{Queued: int64(len(e.wait.heap) + len(before)), Budget: int64(e.cfg.MaxNumBatchedTokens), Seats: int64(e.cfg.MaxNumSeqs)}
	if e.inFlight {
		o.Left = e.current.End - now
	}
	for _, s := range e.singles {
		q := &e.seqs[s]
		if n := int64(q.want()); n > 1 {
			o.Ahead += n
			e.before.Add(e.cache.Path(q.kv), int(q.computed+q.want()))
		} else {
			o.Decode++
			o.Context += int64(q.computed)
		}
	}
	if n := len(e.wait.heap); n > 0 {
		looked, tokens := min(n, mostLooked), int64(0)
		for i := range looked {
			q := &e.seqs[e.wait.heap[i*n/looked].seq]
			tokens += e.behind(Coming{e.cache.Path(q.kv), int(q.want())})
		}
		o.Ahead += tokens * int64(n) / int64(looked)
	}
	for _, b := range before {
		o.Ahead += e.behind(b)
	}
	o.Cached = int64(e.cache.MatchBehind(r.Path, r.Input-1, &e.before))
	o.Decode += int64(e.steadies.Len())
	o.Context += e.context + int64(e.steadies.Len())*e.cache.Ticks()
	for d := range e.steadies.All() {
		o.Lasting += d.At - e.cache.Ticks()
	}
	if n := int64(e.steadies.Len()); n > 0 {
		o.Lasting = max(1, o.Lasting/n)
	}
	size := int64(e.cache.BlockSize())
	o.Held = e.held(o.Queued, (o.Ahead+int64(r.Input)-o.Cached+size-1)/size)
	return o
}

// mostLooked is how many of those who wait are looked at; longer queues are taken to
// be like an even choice of so many.
const mostLooked = 64

// behind returns how many tokens of a request are left to compute once those before
// it have been, whom it joins.
func (e *Engine) behind(r Coming) int64 {
	tokens := r.Input - e.cache.MatchBehind(r.Path, r.Input-1, &e.before)
	e.before.Add(r.Path, r.Input)
	return int64(tokens)
}

// held is how many steps pass until a request behind queued others has a seat, and
// all of them so many blocks.
func (e *Engine) held(queued, blocks int64) des.Time {
	seats := queued + 1 + int64(e.Running()) - int64(e.cfg.MaxNumSeqs)
	blocks -= int64(e.cache.Free())
	if seats <= 0 && blocks <= 0 {
		return 0
	}
	e.ending = e.ending[:0]
	for d := range e.steadies.All() {
		e.ending = append(e.ending, until{d.At, int64(e.cache.Holds(e.seqs[d.Slot].kv))})
	}
	slices.SortFunc(e.ending, func(a, b until) int { return cmp.Compare(a.tick, b.tick) })
	for _, u := range e.ending {
		seats--
		blocks -= u.blocks
		if seats <= 0 && blocks <= 0 {
			return max(0, u.tick-e.cache.Ticks())
		}
	}
	if n := len(e.ending); n > 0 {
		return max(0, e.ending[n-1].tick-e.cache.Ticks())
	}
	return 0
}

// until is a tick at which a sequence ends, and the blocks that it then frees.
type until struct {
	tick   int64
	blocks int64
}
