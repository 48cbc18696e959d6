package reference

import "math/rand/v2"

// RandomPieces is RandomDisaggregation, RandomPrefillFirst or RandomDisaggregationHosts with blocks that move in pieces
// while the prompt is computed, with requests that run while the last piece arrives, or with both.
func RandomPieces(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x70696563))}
	draw := pick(d, RandomDisaggregation, RandomDisaggregation, RandomDisaggregation, RandomPrefillFirst,
		RandomDisaggregationHosts)
	c, requests := draw(seed)
	x := c.Disaggregation
	c.Failures, c.Scaling, x.Pool.Scaling, x.Pool.Failures = nil, nil, nil, nil
	x.Granularity, x.Pipeline = pick(d, "request", "chunk", "chunk", "block", "block"), d.percent(50)
	if x.Granularity == "request" || c.Host != nil {
		x.Pipeline = c.Host == nil
	}
	if x.Decider == "never" {
		x.Decider = "always"
	}
	if fast := pick(d, 1, 1, 10, 100); fast > 1 { // prompts take longer than their transfers
		x.OutGBPerS, x.InGBPerS, x.LatencyUS = float64(fast)*x.OutGBPerS, float64(fast)*x.InGBPerS, x.LatencyUS/10
	}
	longest := 1
	for _, r := range requests {
		longest = max(longest, r.Input)
	}
	if x.Pool.Chunked && d.percent(80) { // prompts in several steps
		x.Pool.MaxNumBatchedTokens = max(1, min(x.Pool.MaxNumBatchedTokens, longest/d.between(2, 6)))
	}
	if step := x.Pool.stepTime(batchOf(min(x.Pool.MaxNumBatchedTokens, 20), 0, 0)); d.percent(40) {
		for i := range requests {
			if r := &requests[i]; d.percent(40) {
				r.DeadlineUS = r.ArrivalUS + d.Int64N(20*step)
			}
		}
	}
	return c, requests
}
