package reference

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// filters and scorers are the plugins of a profile that drop replicas and those that score them.
var (
	filters = []string{"utilization-filter", "endpoint-attribute-filter", "prefix-cache-affinity-filter",
		"session-affinity-filter", "utilization-detector", "concurrency-detector"}
	scorers = []string{"queue-scorer", "kv-cache-utilization-scorer", "running-requests-size-scorer",
		"prefix-cache-scorer", "precise-prefix-cache-scorer", "load-aware-scorer", "active-request-scorer",
		"token-load-scorer", "session-affinity-scorer", "no-hit-lru-scorer", "endpoint-attribute-scorer"}
)

// attributes are the numbers that replicas report.
var attributes = []string{"queue_depth", "running", "kv_util", "free_blocks", "queue_depth", "kv_util", "hit_rate",
	"recent_ttft_ms", "recent_tpot_ms", "est_wait_ms"}

// affinity is a scorer for cases with adapters only.
const affinity = "lora-affinity-scorer"

// Plugins are the names of all filters and scorers for any case.
func Plugins() []string { return slices.Concat(filters, scorers) }

// RandomAffinity is RandomProfiles with lora-affinity-scorer and adapters.
func RandomAffinity(seed uint64) (Config, []Request) { return RandomProfiles(seed, affinity) }

// RandomProfiles draws a case like Random or RandomSessions, on several replicas with a random profile of llm-d that
// has a certain plugin.
func RandomProfiles(seed uint64, plugin string) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x70726f66))}
	sessions := d.percent(40) || strings.HasPrefix(plugin, "session-")
	draw := Random
	if sessions {
		draw = RandomSessions
	}
	c, requests := draw(seed)
	if plugin == affinity {
		c, requests = withAdapters(&generator{Rand: rand.New(rand.NewPCG(seed, 0x6c6f7270))}, seed, draw)
	}
	c.Replicas, c.Scorers, c.ShadowBlocks = pick(d, 2, 3, 4, 8), nil, 0
	c.Groups, c.Sparse, c.Interval, c.KeepUntilComputed, c.ReserveWindow = nil, false, 0, false, false
	c.Routing, c.Tie, c.Named.Capacity = "profile", "random", c.usable()
	c.Picker = pick(d, "max-score", "max-score", "max-score", "random", "weighted-random")
	if !sessions {
		longer(&c, requests, pick(d, 1, 9, 20, 20))
	}
	names := []string{plugin}
	if filter := pick(d, filters...); d.percent(40) && filter != plugin {
		names = append(names, filter)
	}
	for range pick(d, 0, 1, 1, 2) {
		names = append(names, pick(d, scorers...))
	}
	scores := func(name string) bool { return name == affinity || slices.Contains(scorers, name) }
	if !slices.ContainsFunc(names, scores) {
		names = append(names, pick(d, scorers...))
	}
	for _, name := range names {
		if slices.Contains(filters, name) {
			c.Profile = append(c.Profile, d.filter(&c, name))
		}
	}
	for _, name := range names {
		if scores(name) {
			c.Profile = append(c.Profile, d.scorer(&c, name))
		}
	}
	if d.percent(40) && slices.ContainsFunc(c.Profile, Plugin.readsIndex) {
		n := &c.Named
		n.BlockTokens, n.Capacity = d.between(1, 3*smallestBlock), d.between(1, 40)
		n.MaxTokens, n.MaxBlocks = pick(d, 0, d.between(4, 20)*smallestBlock), pick(d, 0, d.between(1, 8))
	}
	return c, requests
}

// filter draws a filter's parameters, with limits near what the small clusters reach.
func (d *generator) filter(c *Config, name string) Plugin {
	few := func() float64 { return float64(d.between(1, 5)) }
	headroom := pick(d, 0, 0, 0.5)
	p := Plugin{Name: name, Numbers: map[string]float64{}, Words: map[string]string{}}
	switch name {
	case "utilization-filter":
		for range d.between(1, 2) {
			of := pick(d, "active-requests", "running-requests", "waiting-queue", "kv-cache-utilization")
			if p.Numbers[of] = few() - 1; of == "kv-cache-utilization" {
				p.Numbers[of] = d.Float64()
			}
		}
		p.Words["fallbackOnEmpty"] = pick(d, "true", "false")
	case "endpoint-attribute-filter":
		p.Numbers["value"] = few() - 1
		p.Words = map[string]string{"fallbackOnEmpty": pick(d, "true", "false"),
			"operator": pick(d, "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Equal",
				"NotEqual"),
			"attribute": pick(d, attributes...)}
	case "prefix-cache-affinity-filter":
		p.Numbers = map[string]float64{"affinityThreshold": pick(d, 0, 0.3, 0.5, 0.8, 1),
			"explorationProbability": pick(d, 0, 0, 0.3), "maxTTFTPenaltyMs": pick(d, 0, 1, 10.0),
			"peakPrefillThroughput": pick(d, 1000, 10000.0)}
	case "session-affinity-filter":
		return d.sessionPlugin(c, name)
	case "utilization-detector":
		p.Numbers = map[string]float64{"queueDepthThreshold": few(), "kvCacheUtilThreshold": pick(d, 0.3, 0.6, 1),
			"headroom":                  headroom,
			"metricsStalenessThreshold": max(1, float64(pick(d, 1, c.SnapshotUS/2, 1e6))) / 1e6}
	case "concurrency-detector":
		p.Numbers = map[string]float64{"maxConcurrency": few(), "headroom": headroom,
			"maxTokenConcurrency": float64(d.between(1, 4*c.BlockSize*c.usable()))}
		p.Words["concurrencyMode"] = pick(d, "requests", "tokens", "hybrid")
	}
	return p
}

// scorer draws a scorer's parameters.
func (d *generator) scorer(c *Config, name string) Plugin {
	few := func() float64 { return float64(d.between(1, 5)) }
	p := Plugin{Name: name, Weight: pick(d, 0.5, 1, 2, 3)}
	switch name {
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
		s := d.sessionPlugin(c, name)
		p.Numbers, p.Words = s.Numbers, s.Words
	case "endpoint-attribute-scorer":
		low := few() - 1
		p.Numbers = map[string]float64{"min": low, "max": low + few()}
		p.Words = map[string]string{"attributeKey": pick(d, attributes...),
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
