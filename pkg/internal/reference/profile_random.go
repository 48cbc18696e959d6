package reference

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// RandomProfiles draws a case like Random or RandomSessions, on several replicas with a random profile of llm-d.
func RandomProfiles(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x70726f66))}
	sessions := d.percent(40)
	c, requests := Random(seed)
	if sessions {
		c, requests = RandomSessions(seed)
	}
	c.Replicas, c.Scorers, c.ShadowBlocks = pick(d, 2, 3, 4, 8), nil, 0
	c.Groups, c.Sparse, c.Interval, c.KeepUntilComputed, c.ReserveWindow = nil, false, 0, false, false
	c.Routing, c.Tie, c.Named.Capacity = "profile", "random", c.usable()
	c.Picker = pick(d, "max-score", "max-score", "max-score", "random", "weighted-random")
	if !sessions {
		longer(&c, requests, pick(d, 1, 9, 20, 20))
	}
	for range pick(d, 0, 1, 1, 2) {
		c.Profile = append(c.Profile, d.filter(&c))
	}
	for range pick(d, 1, 1, 2, 3) {
		c.Profile = append(c.Profile, d.scorer(&c))
	}
	if slices.ContainsFunc(c.Profile, func(p Plugin) bool { return p.Name == "precise-prefix-cache-scorer" }) {
		c.SnapshotUS = 0 // the caches that the router sees are current
	}
	return c, requests
}

// filter draws a filter with limits near what the small clusters reach.
func (d *generator) filter(c *Config) Plugin {
	all := d.filters(c)
	return all[pick(d, slices.Sorted(maps.Keys(all))...)]
}

func (d *generator) filters(c *Config) map[string]Plugin {
	few := func() float64 { return float64(d.between(1, 5)) }
	headroom := pick(d, 0, 0, 0.5)
	fallback := pick(d, "true", "false")
	operators := []string{"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Equal", "NotEqual"}
	conditions := map[string]float64{}
	for range d.between(1, 2) {
		name := pick(d, "active-requests", "running-requests", "waiting-queue", "kv-cache-utilization")
		if conditions[name] = few() - 1; name == "kv-cache-utilization" {
			conditions[name] = d.Float64()
		}
	}
	return map[string]Plugin{
		"a": {Name: "utilization-filter", Numbers: conditions, Words: map[string]string{"fallbackOnEmpty": fallback}},
		"b": {Name: "endpoint-attribute-filter", Numbers: map[string]float64{"value": few() - 1},
			Words: map[string]string{"fallbackOnEmpty": fallback, "operator": pick(d, operators...),
				"attribute": pick(d, "queue_depth", "running", "kv_util", "free_blocks")}},
		"c": {Name: "prefix-cache-affinity-filter",
			Numbers: map[string]float64{"affinityThreshold": pick(d, 0, 0.3, 0.5, 0.8, 1),
				"explorationProbability": pick(d, 0, 0, 0.3), "maxTTFTPenaltyMs": pick(d, 0, 1, 10.0),
				"peakPrefillThroughput": pick(d, 1000, 10000.0)}},
		"d": d.sessionPlugin(c, "session-affinity-filter"),
		"e": {Name: "utilization-detector",
			Numbers: map[string]float64{"queueDepthThreshold": few(), "kvCacheUtilThreshold": pick(d, 0.3, 0.6, 1),
				"headroom":                  headroom,
				"metricsStalenessThreshold": max(1, float64(pick(d, 1, c.SnapshotUS/2, 1e6))) / 1e6}},
		"f": {Name: "concurrency-detector",
			Numbers: map[string]float64{"maxConcurrency": few(), "headroom": headroom,
				"maxTokenConcurrency": float64(d.between(1, 4*c.BlockSize*c.usable()))},
			Words: map[string]string{"concurrencyMode": pick(d, "requests", "tokens", "hybrid")}},
	}
}

// scorer draws a scorer.
func (d *generator) scorer(c *Config) Plugin {
	few := func() float64 { return float64(d.between(1, 5)) }
	p := Plugin{Weight: pick(d, 0.5, 1, 2, 3)}
	p.Name = pick(d, "queue-scorer", "kv-cache-utilization-scorer", "running-requests-size-scorer",
		"prefix-cache-scorer", "precise-prefix-cache-scorer", "load-aware-scorer", "active-request-scorer",
		"token-load-scorer",
		"session-affinity-scorer", "no-hit-lru-scorer", "endpoint-attribute-scorer")
	switch p.Name {
	case "prefix-cache-scorer":
		p.Numbers = map[string]float64{"matchLengthWeight": pick(d, 0, 0.4, 1),
			"matchLengthScaleTokens": float64(d.between(1, 8*smallestBlock))}
	case "load-aware-scorer":
		p.Numbers = map[string]float64{"threshold": few()}
	case "active-request-scorer":
		p.Numbers = map[string]float64{"idleThreshold": few() - 1, "maxBusyScore": pick(d, 1, 0.5)}
	case "token-load-scorer":
		p.Numbers = map[string]float64{"queueThresholdTokens": float64(d.between(1, 8*c.BlockSize*c.usable()))}
	case "no-hit-lru-scorer":
		p.Numbers = map[string]float64{"lruSize": pick(d, 1, 2, 1024.0)}
	case "session-affinity-scorer":
		s := d.sessionPlugin(c, p.Name)
		p.Numbers, p.Words = s.Numbers, s.Words
	case "endpoint-attribute-scorer":
		low := few() - 1
		p.Numbers = map[string]float64{"min": low, "max": low + few()}
		p.Words = map[string]string{"attributeKey": pick(d, "queue_depth", "running", "kv_util", "free_blocks"),
			"algorithm":     pick(d, "linear_lower_is_better", "linear_higher_is_better"),
			"normalization": pick(d, "adaptiveRange", "fixedRange")}
	}
	return p
}

// sessionPlugin draws the parameters of a plugin of sessions, with times of some steps.
func (d *generator) sessionPlugin(c *Config, name string) Plugin {
	step := float64(max(1, c.stepTime(batchOf(4, 1, 8))))
	return Plugin{Name: name, Words: map[string]string{"strategy": pick(d, "encoded_endpoint_header", "session_id")},
		Numbers: map[string]float64{"evictionTtlSeconds": max(1, step*pick(d, 0.5, 2, 10, 1000)) / 1e6,
			"evictionSweepSeconds": max(1, step*pick(d, 0.3, 1, 5)) / 1e6}}
}
