package main

import "math/rand/v2"

// drawScorers draws at least one scorer.
func drawScorers(r *rand.Rand) (all []Plugin) {
	for _, name := range []string{"queue-scorer", "kv-cache-utilization-scorer", "prefix-cache-scorer",
		"running-requests-size-scorer", "token-load-scorer"} {
		if r.IntN(3) == 0 {
			continue
		}
		p := Plugin{name, map[string]any{"weight": float64(1+r.IntN(20)) / 4}}
		if name == "token-load-scorer" && r.IntN(2) == 0 {
			p.Params["queueThresholdTokens"] = 1 + r.IntN(50000)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return drawScorers(r)
	}
	return all
}

// drawFilters draws up to three filters.
func drawFilters(r *rand.Rand) (all []Plugin) {
	if r.IntN(4) == 0 {
		all = append(all, Plugin{"prefix-cache-affinity-filter", map[string]any{
			"affinityThreshold": float64(1+r.IntN(10)) / 10, "maxTTFTPenaltyMs": 0.0}})
	}
	if r.IntN(4) == 0 {
		all = append(all, drawUtilization(r))
	}
	if r.IntN(4) == 0 {
		all = append(all, Plugin{"concurrency-detector", map[string]any{"maxConcurrency": 1 + r.IntN(100),
			"headroom": float64(r.IntN(5)) / 4}})
	}
	return all
}

// drawUtilization draws a detector of utilization.
func drawUtilization(r *rand.Rand) Plugin {
	return Plugin{"utilization-detector", map[string]any{"queueDepthThreshold": 1 + r.IntN(8),
		"kvCacheUtilThreshold": float64(1+r.IntN(10)) / 10, "headroom": float64(r.IntN(5)) / 4}}
}
