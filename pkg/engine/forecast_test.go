package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"blis/pkg/des"
	"blis/pkg/internal/reference"
	"blis/pkg/kv"
)

// forecastChecker compares forecasts with plain ones while the harness runs. The engine keeps what it found for one
// request until its own requests change.
type forecastChecker struct {
	rng    *rand.Rand
	counts map[string]int
}

// check compares the forecasts of a few requests, each behind some in transit, all with prompts of the harness.
func (c *forecastChecker) check(p *harness, now des.Time) {
	if c == nil {
		return
	}
	var present []int
	for i, number := range p.numbers {
		if number != notEnqueued {
			present = append(present, i)
		}
	}
	if len(present) == 0 {
		return
	}
	draw := func() InTransit {
		i := present[c.rng.IntN(len(present))]
		return InTransit{p.paths[i], p.requests[i].Input}
	}
	for range 2 {
		var before []InTransit
		for range max(0, c.rng.IntN(5)-2) {
			before = append(before, draw())
		}
		r := draw()
		got, want := p.engine.Forecast(now, r, before), plainForecast(p.engine, now, r, before)
		if got != want {
			p.Fatalf("at %d the forecast is %+v, plainly %+v", now, got, want)
		}
		for name, is := range map[string]bool{"waits": got.SlotWait > 0, "queued": got.Queued > int64(len(before)),
			"in transit": len(before) > 0, "cached": got.Cached > 0, "decodes": got.RemainingSteps > 1} {
			if is {
				c.counts[name]++
			}
		}
	}
}

// TestForecastEqualsPlainOne covers what a forecast depends on.
func TestForecastEqualsPlainOne(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(200) {
		c, requests := reference.Random(seed)
		c.Replicas, c.Routing, c.Scorers, c.SnapshotUS = 1, "round-robin", nil, 0
		p := newHarness(t, c, requests, reference.Run(c, requests))
		p.forecasts = &forecastChecker{rand.New(rand.NewPCG(seed, 1)), counts}
		p.run()
	}
	t.Log(counts)
	for _, name := range []string{"waits", "queued", "in transit", "cached", "decodes"} {
		if counts[name] < 1000 {
			t.Errorf("%s: %d forecasts, want more", name, counts[name])
		}
	}
}

// plainForecast is Forecast without anything kept.
func plainForecast(e *Engine, now des.Time, r InTransit, before []InTransit) Forecast {
	pending := kv.PendingPrompts{}
	o := Forecast{Queued: int64(len(e.wait.heap) + len(before)), Budget: int64(e.cfg.MaxNumBatchedTokens),
		MaxSeqs: int64(e.cfg.MaxNumSeqs)}
	if e.inFlight {
		o.StepRemaining = e.current.End - now
	}
	for _, s := range e.individual {
		q := &e.seqs[s]
		if n := int64(q.remaining()); n > 1 {
			o.QueuedTokens += n
			pending.Add(e.cache.Path(q.kv), int(q.computed+q.remaining()))
		} else {
			o.Decode++
			o.Context += int64(q.computed)
		}
	}
	uncached := func(r InTransit) int64 {
		tokens := r.Input - e.cache.MatchAfter(r.Path, r.Input-1, &pending)
		pending.Add(r.Path, r.Input)
		return int64(tokens)
	}
	if n := len(e.wait.heap); n > 0 {
		sampled, tokens := min(n, maxSampled), int64(0)
		for i := range sampled {
			q := &e.seqs[e.wait.heap[i*n/sampled].seq]
			tokens += uncached(InTransit{e.cache.Path(q.kv), int(q.remaining())})
		}
		o.QueuedTokens += tokens * int64(n) / int64(sampled)
	}
	for _, b := range before {
		o.QueuedTokens += uncached(b)
	}
	o.Cached = int64(e.cache.MatchAfter(r.Path, r.Input-1, &pending))
	o.Decode += int64(e.decoding.Len())
	o.Context += e.context + int64(e.decoding.Len())*e.cache.Ticks()
	for d := range e.decoding.All() {
		o.RemainingSteps += d.At - e.cache.Ticks()
	}
	if n := int64(e.decoding.Len()); n > 0 {
		o.RemainingSteps = max(1, o.RemainingSteps/n)
	}
	o.SlotWait = plainSlotWait(e, o.Queued, e.cache.Demand(o.QueuedTokens+int64(r.Input)-o.Cached, o.Queued+1))
	return o
}

func plainSlotWait(e *Engine, queued, blocks int64) (wait des.Time) {
	slots := queued + 1 + int64(e.Running()) - int64(e.cfg.MaxNumSeqs)
	blocks -= int64(e.cache.Free())
	ends := slices.SortedFunc(e.decoding.All(), func(a, b des.Event) int { return cmp.Compare(a.At, b.At) })
	for _, d := range ends {
		if slots <= 0 && blocks <= 0 {
			break
		}
		slots--
		blocks -= int64(e.cache.HeldBlocks(e.seqs[d.Slot].kv))
		wait = max(0, d.At-e.cache.Ticks())
	}
	return wait
}
