package engine

import (
	"cmp"
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
	// Background are the prompt tokens that a step computes beside on average.
	Background int64
	// Budget is the most tokens that a step computes.
	Budget int64
}

// Estimate returns when the last of a request's answer and the first token of it
// appear, in µs from now, if the replica goes on as it is.
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
	if o.Held > 0 {
		first += o.Held * step(min(o.Background, room), o.Decode)
	}
	if whole := (work - 1) / room; whole > 0 {
		first += whole * step(room, o.Decode)
		work -= whole * room
	}
	first += step(work, o.Decode)
	last = first
	if output > 1 {
		last += (output - 1) * step(min(o.Background, room), o.Decode+o.Queued+1)
	}
	return first, last
}

// Outlook returns what awaits, from now on, a request with this path, of so many
// input tokens.
func (e *Engine) Outlook(now des.Time, path kv.Path, input int) Outlook {
	o := Outlook{Queued: int64(len(e.wait.heap)), Budget: int64(e.cfg.MaxNumBatchedTokens)}
	o.Cached = int64(e.cache.Match(path, input-1))
	if e.inFlight {
		o.Left = e.current.End - now
	}
	if e.stats.Steps > 0 {
		o.Background = e.stats.PrefillTokens / e.stats.Steps
	}
	for _, w := range e.wait.heap {
		o.Ahead += int64(e.seqs[w.seq].want())
	}
	if e.stats.QueriedTokens > 0 { // as many of them are cached as ever
		o.Ahead -= int64(float64(o.Ahead) * float64(e.stats.CachedTokens) / float64(e.stats.QueriedTokens))
	}
	for _, s := range e.singles {
		if n := int64(e.seqs[s].want()); n > 1 {
			o.Ahead += n
		} else {
			o.Decode++
			o.Context += int64(e.seqs[s].computed)
		}
	}
	o.Decode += int64(e.steadies.Len())
	o.Context += e.context + int64(e.steadies.Len())*e.cache.Ticks()
	o.Held = e.held(o.Queued, int64(input))
	return o
}

// held is how many steps pass until a request behind queued others has a seat and
// the blocks of its prompt.
func (e *Engine) held(queued, input int64) des.Time {
	size := int64(e.cache.BlockSize())
	seats := queued + 1 + int64(e.Running()) - int64(e.cfg.MaxNumSeqs)
	blocks := (input+size-1)/size - int64(e.cache.Free())
	for _, w := range e.wait.heap {
		blocks += (int64(e.seqs[w.seq].want()) + size - 1) / size
	}
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
