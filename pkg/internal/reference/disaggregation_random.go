package reference

import (
	"math/rand/v2"
	"slices"
)

// RandomDisaggregation is Random with prompts computed by a prefill pool. Its engines differ from those that decode. In
// most cases transfers wait for blocks or share links.
func RandomDisaggregation(seed uint64) (Config, []Request) {
	c, requests := Random(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x706f6f6c))}
	c.Groups, c.States, c.HashAll, c.Sparse, c.Interval = nil, States{}, false, false, 0
	c.KeepUntilComputed, c.ReserveWindow = false, false
	if !slices.Contains([]string{"round-robin", "least-loaded", "least-snapshot", "power-of-two", "prefix-affinity",
		"weighted"}, c.Routing) {
		c.Routing = pick(d, "round-robin", "least-loaded")
	}
	input, slots := 1, 1
	for _, r := range requests {
		input, slots = max(input, r.Input), max(slots, r.Input+r.Output-1)
	}
	blocks := func(tokens int) int { return (tokens-1)/c.BlockSize + 1 }
	c.NumBlocks = 1 + blocks(slots) + pick(d, -1, 0, 0, d.between(0, blocks(slots)), d.between(0, 3*blocks(slots)))
	c.NumBlocks = max(2, c.NumBlocks)
	p := c
	p.Replicas = d.between(1, 3)
	p.NumBlocks = max(2, 1+blocks(input)+pick(d, -1, 0, 0, d.between(0, blocks(input)), d.between(0, 4*blocks(input))))
	p.MaxNumSeqs = pick(d, p.MaxNumSeqs, p.MaxNumSeqs, d.between(1, 4))
	p.MaxNumBatchedTokens = pick(d, p.MaxNumBatchedTokens, max(1, p.MaxNumBatchedTokens*d.between(1, 3)/2))
	p.Chunked, p.PrefixCaching = d.percent(80), c.PrefixCaching && d.percent(90)
	p.Async, p.ReserveFull = d.percent(40), d.percent(40)
	if p.Routing == "round-robin" && d.percent(40) {
		p.Routing = "least-loaded"
	}
	step := max(1, int(p.stepTime(batchOf(min(p.MaxNumBatchedTokens, 20), 0, 0))))
	if d.percent(50) {
		p.Alpha = [4]float64{float64(d.between(0, 2*step)), float64(d.between(0, 2)), 0, 0}
	}
	us := float64(d.between(1, 2*step)) * pick(d, 0.05, 0.3, 1)
	c.Disaggregation = &Disaggregation{Pool: p, Decider: pick(d, "always", "always", "always", "prefix", "prefix",
		"never"),
		NonCached: d.between(0, max(1, input/2)), PromptTokens: pick(d, 0, d.between(0, input)),
		LatencyUS: int64(pick(d, 0, d.between(0, step), d.between(0, 3*step))), BlockBytes: 1000,
		OutGBPerS: max(1e-6, 1/us), InGBPerS: max(1e-6, pick(d, 0.5, 1, 2)/us), HopUS: int64(pick(d, 0, 0,
			d.between(0, step)))}
	if d.percent(25) {
		d.setFlow(&c, requests, int64(step))
	}
	x := c.Disaggregation
	x.MaxWaiting = pick(d, 0, 0, d.between(1, 3))
	if delay := x.HopUS + c.queueDelay(input/2); d.percent(30) {
		x.LeaseUS, x.Recompute = max(1, delay-pick(d, 0, 1, int64(d.between(0, step)))), d.percent(50)
	}
	return c, requests
}

// RandomPrefillFirst is RandomDisaggregation with prefill replicas that are chosen first.
func RandomPrefillFirst(seed uint64) (Config, []Request) {
	c, requests := RandomDisaggregation(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x66697273))}
	x := c.Disaggregation
	x.PrefillFirst, x.MaxWaiting = true, 0
	if d.percent(60) {
		longest := 1
		for _, r := range requests {
			longest = max(longest, r.Input)
		}
		x.Decider, x.NonCached, x.PromptTokens = "conditional", d.between(0, longest), 0
		x.NewRatio = pick(d, 0.3, 0.7, 1)
	}
	return c, requests
}

// setFlow draws flow control whose detector counts no tokens and whose limit does not count its uses.
func (d *generator) setFlow(c *Config, requests []Request, step int64) {
	f := &Flow{Saturation: pick(d, 0.1, 0.2, 0.4, 0.6, 1, 2), Bands: d.percent(60), Detector: d.detector(c),
		Limit: d.limit(), Order: pick(d, "fifo", "priority", "deadline"), Fairness: pick(d, "none", "round-robin")}
	if d.percent(25) {
		f.Capacity = d.between(1, 8)
	}
	if d.percent(35) {
		f.TTLUS = max(1, step*pick[int64](d, 1, 3, 10, 40))
	}
	if p := f.Detector; p != nil && p.Name == "concurrency-detector" && !p.says("concurrencyMode", "requests") {
		f.Detector = nil
	}
	if f.Limit != nil && f.Limit.Name != "static-usage-limit-policy" {
		f.Limit = nil
	}
	c.Flow = f
	d.assignTenants(requests, step)
}

// RandomDisaggregationFailures is RandomDisaggregation with replicas of both pools that fail.
func RandomDisaggregationFailures(seed uint64) (Config, []Request) {
	c, requests := RandomDisaggregation(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x70666169))}
	step := c.stepTime(batchOf(min(c.MaxNumBatchedTokens, 20), 2, 20))
	steps := func(of ...int64) int64 { return step*pick(d, of...) + int64(pick(d, 0, 0, 0, 1)) }
	f := defaultFailures()
	f.Start = Scaling{LoadUS: steps(0, 1, 4), WarmupUS: steps(0, 3, 10),
		Curve: pick(d, "linear", "exponential", "step"), Factor: pick(d, 1.5, 2, 4), WarmingWaits: d.percent(30)}
	d.drawEvents(f, requests, step, func(e *Failure) int {
		if e.Prefill = d.percent(50); e.Prefill {
			return d.IntN(c.Disaggregation.Pool.Replicas)
		}
		return d.IntN(c.Replicas)
	})
	if d.percent(60) {
		f.ProbeUS, f.Probes = max(1, steps(1, 2, 5, 10)), d.between(1, 3)
	}
	if c.Flow != nil && c.Flow.Detector != nil && c.Flow.Detector.Name == "utilization-detector" {
		c.Flow.Detector = nil // it judges the age of reports, which partitions change
	}
	c.Failures = f
	return c, requests
}

// RandomDisaggregationFleets is RandomDisaggregation with an auto-scaler of one pool or both, sometimes with replicas
// that fail.
func RandomDisaggregationFleets(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x70736361))}
	draw := RandomDisaggregation
	if d.percent(40) {
		draw = RandomDisaggregationFailures
	}
	c, requests := draw(seed)
	other, targets := RandomScaling(seed)
	for i := range requests {
		requests[i].TTFTTargetMS = targets[i].TTFTTargetMS
	}
	if c.Flow != nil && c.Flow.Detector != nil && c.Flow.Detector.Name == "utilization-detector" {
		c.Flow.Detector = nil // it judges the age of reports, which new replicas do not have
	}
	scaled := func(replicas int) *Scaling {
		s := *other.Scaling
		s.Min, s.Max = d.between(1, replicas), replicas+d.between(0, 3)
		if c.Flow != nil && d.percent(30) {
			s.Min = 0
		}
		return &s
	}
	which := d.IntN(3)
	if which != 0 {
		c.Scaling = scaled(c.Replicas)
	}
	if which != 1 {
		c.Disaggregation.Pool.Scaling = scaled(c.Disaggregation.Pool.Replicas)
	}
	return c, requests
}
