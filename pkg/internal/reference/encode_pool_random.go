package reference

import (
	"math/rand/v2"
	"slices"
)

// RandomEncodePool is RandomEncoder with encode replicas.
func RandomEncodePool(seed uint64) (Config, []Request) {
	c, requests := RandomEncoder(seed)
	return withEncodePool(seed, c, requests), requests
}

// RandomEncodePoolSessions is RandomEncoderSessions with encode replicas.
func RandomEncodePoolSessions(seed uint64) (Config, []Request) {
	c, requests := RandomEncoderSessions(seed)
	hasStates := func() bool { return slices.ContainsFunc(c.Groups, func(g Group) bool { return g.State }) }
	for again := seed; c.Scaling != nil || c.Failures != nil || hasStates(); { // replicas neither come nor go
		again += 1<<32 + 1
		c, requests = RandomEncoderSessions(again)
	}
	return withEncodePool(seed, c, requests), requests
}

// withEncodePool draws encode replicas for the images of the requests. What the encoder of the others costs has no
// effect.
func withEncodePool(seed uint64, c Config, requests []Request) Config {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x65706f6f))}
	largest := 1
	for _, r := range requests {
		for _, s := range r.Prompt {
			if s.Media {
				largest = max(largest, s.Tokens)
			}
		}
	}
	step := c.stepTime(batchOf(4, 2, 8))
	p := &EncodePool{Replicas: d.between(1, 3), MaxSeqs: pick(d, 1, 2, 256), RoundRobin: d.percent(50),
		ItemUS: pick(d, 0, 0, 3, 40.5, float64(step)/2), TokenUS: pick(d, 0, 1, 0.3, 12),
		LatencyUS: pick(d, 0, 1, 7, step), OutGBPerS: pick(d, 0.001, 0.1, 1), InGBPerS: pick(d, 0.001, 0.1, 1),
		TokenBytes: pick(d, 1, 10, 64)}
	p.Budget = max(largest, pick(d, 1, largest+d.between(0, largest), c.MaxNumBatchedTokens))
	p.Cache = max(largest, pick(d, 1, largest+d.between(0, 2*largest), c.MaxNumBatchedTokens))
	c.EncodePool = p
	return c
}

// RandomEncodePrefill is RandomDisaggregation with images and encode replicas.
func RandomEncodePrefill(seed uint64) (Config, []Request) {
	c, requests := RandomDisaggregation(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x65706421))}
	tokens := make([]int, d.between(1, 6))
	for i := range tokens {
		tokens[i] = d.between(1, pick(d, 2, 5, 12, 30))
	}
	share := pick(d, 30, 60, 100)
	for i := range requests {
		if d.percent(share) {
			d.images(&requests[i], tokens)
		}
	}
	pool := &c.Disaggregation.Pool
	p := withEncoder(d, *pool, requests)
	c = withEncodePool(seed, withEncoder(d, c, requests), requests)
	p.EncodePool = c.EncodePool
	*pool = p
	return c, requests
}
