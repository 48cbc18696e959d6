package policy

import (
	"slices"

	"blis/pkg/registry"
)

// llmdPlugin is a plugin of a profile. What build returns is a llmdFilter, a scorer, a picker or several
// of these; a producer returns nil.
type llmdPlugin struct {
	kind   string // the extension points, for lists
	params []Param
	build  func(*builder, values) any
}

// llmdPlugins are the plugins of profiles, with the names, parameters and defaults of llm-d-router
// v0.10.0.
func llmdPlugins() registry.Table[llmdPlugin] {
	return slices.Concat(llmdFilters(), llmdScorers(), llmdPickers(), llmdProducers())
}

// unused returns the names of parameters without effect, and the reasons.
func (p *llmdPlugin) unused(v values) (all []Unused) {
	given := func(name string) bool {
		return slices.ContainsFunc(p.params, func(q Param) bool { return q.Name == name })
	}
	switch {
	case given("strategy") && v.choice("strategy") == strategyHeader:
		all = append(all,
			Unused{"evictionTtlSeconds evictionSweepSeconds", "only the strategy session_id binds sessions"})
	case given("matchLengthWeight") && v.number("matchLengthWeight") == 0:
		all = append(all, Unused{"matchLengthScaleTokens", "matchLengthWeight is 0"})
	case given("normalization") && v.choice("normalization") == adaptiveRange:
		all = append(all, Unused{"min max", "the normalization is adaptiveRange"})
	case given("concurrencyMode") && v.choice("concurrencyMode") == modeRequests:
		all = append(all, Unused{"maxTokenConcurrency", "the mode is requests"})
	case given("concurrencyMode") && v.choice("concurrencyMode") == modeTokens:
		all = append(all, Unused{"maxConcurrency", "the mode is tokens"})
	case given("maxTTFTPenaltyMs") && v.number("maxTTFTPenaltyMs") == 0:
		all = append(all, Unused{"peakPrefillThroughput", "maxTTFTPenaltyMs is 0"})
	case given("autoTune"):
		if v.flag("autoTune") {
			all = append(all, Unused{"blockSizeTokens lruCapacityPerServer", "autoTune takes them from the engines"})
		}
		if v.number("maxPrefixTokensToMatch") > 0 {
			all = append(all, Unused{"maxPrefixBlocksToMatch", "maxPrefixTokensToMatch is above 0"})
		}
	}
	return all
}

func llmdFilters() registry.Table[llmdPlugin] {
	filter := func(build func(*builder, values) any, params ...Param) llmdPlugin {
		return llmdPlugin{"filter", params, build}
	}
	return registry.Table[llmdPlugin]{
		{Name: "utilization-filter", Doc: "keeps replicas of which no metric is above its limit",
			Value: filter(newUtilizationFilter, Param{Name: "conditions", Kind: Table, Keys: "metric", Max: 1e9,
				Search: [2]float64{0, 100}, Default: map[string]float64{},
				Doc: "highest values, at least one: active-requests, running-requests, waiting-queue, " +
					"kv-cache-utilization (0..1)"}, fallbackParam)},
		{Name: "endpoint-attribute-filter", Doc: "keeps replicas whose attribute compares with a value as asked",
			Value: filter(newAttributeFilter, attributeParam("attribute"),
				Param{Name: "operator", Kind: Choose, Choices: operators.Names(), Default: "LessThanOrEqual",
					Doc: "comparison of the attribute with value"},
				Param{Name: "value", Kind: Number, Min: -1e9, Max: 1e9, Search: [2]float64{0, 100}, Default: 0.0,
					Doc: "value to compare with"}, fallbackParam)},
		{Name: "prefix-cache-affinity-filter",
			Doc: "keeps replicas that were sent most of the prompt, unless they are too busy",
			Value: filter(newCacheAffinityFilter,
				share("affinityThreshold", 0.8, "share of the prompt's blocks from which on a replica is kept"),
				share("explorationProbability", 0, "how often all replicas are kept"),
				Param{Name: "maxTTFTPenaltyMs", Kind: Number, Unit: "ms", Max: 1e9, Search: [2]float64{0, 3e4},
					Default: 18000.0, Doc: "how much longer their TTFT may be than that of others; 0 is any"},
				Param{Name: "ttftSource", Kind: Choose, Choices: []string{"prefillThroughput"},
					Default: "prefillThroughput", Doc: "where TTFT comes from: the tokens of unfinished prefills"},
				Param{Name: "peakPrefillThroughput", Kind: Number, Unit: "tokens/s", Min: 1, Max: 1e9,
					Search: [2]float64{1e3, 1e5}, Default: 15928.0, Doc: "speed of prefills"})},
		{Name: "session-affinity-filter", Doc: "keeps only the replica of the session, if it has one",
			Value: filter(newPinFilter, sessionParams...)},
		{Name: "utilization-detector", Doc: "keeps replicas below limits of queue depth and KV usage, else all",
			Value: filter(newUtilizationDetector, utilizationParams...)},
		{Name: "concurrency-detector", Doc: "keeps replicas below a limit of requests or tokens in flight",
			Value: filter(newConcurrencyDetector, concurrencyParams...)},
	}
}

func llmdScorers() registry.Table[llmdPlugin] {
	weighted := func(build func(*builder, values) any, params ...Param) llmdPlugin {
		return llmdPlugin{"scorer", append([]Param{{Name: "weight", Kind: Number, Max: 1e6,
			Search: [2]float64{0, 5}, Default: 1.0, Doc: "weight of the score"}}, params...), build}
	}
	same := func(s scorer) func(*builder, values) any { return func(*builder, values) any { return s.clone() } }
	return registry.Table[llmdPlugin]{
		{Name: "queue-scorer", Doc: "1 for the shortest wait queue, 0 for the longest",
			Value: weighted(same(queueScore{}))},
		{Name: "kv-cache-utilization-scorer", Doc: "free share of the block cache", Value: weighted(same(kvScore{}))},
		{Name: "running-requests-size-scorer", Doc: "1 for the fewest running sequences, 0 for the most",
			Value: weighted(same(runningScore{}))},
		{Name: "prefix-cache-scorer", Doc: "share of the prompt's blocks that the router sent there before",
			Value: weighted(newBlockShareScore,
				share("matchLengthWeight", 0, "weight of the square of the matched tokens"),
				count("matchLengthScaleTokens", 8192, "tokens", "matched tokens from which on that is 1"))},
		{Name: "precise-prefix-cache-scorer",
			Doc:   "share of the prompt's full blocks in the replica's cache, as of the last snapshot",
			Value: weighted(same(preciseScore{}))},
		{Name: "load-aware-scorer", Doc: "0.5 for an empty queue, falling to 0 for threshold",
			Value: weighted(newQueueLimitScore, count("threshold", 128, "requests", "waiting requests"))},
		{Name: "active-request-scorer", Doc: "1 for an idle replica, falling to 0 for the most requests in flight",
			Value: weighted(newIdleScore, Param{Name: "idleThreshold", Kind: Number, Unit: "requests", Whole: true,
				Max: 1e6, Search: [2]float64{0, 10}, Default: 0.0,
				Doc: "requests in flight up to which a replica is idle"},
				share("maxBusyScore", 1, "highest score of a replica that is not idle"))},
		{Name: "token-load-scorer", Doc: "1 for no tokens to compute, falling to 0 for the threshold",
			Value: weighted(newTokenLoadScore, count("queueThresholdTokens", 4194304, "tokens",
				"tokens of prompts without a first token, including this one"))},
		{Name: "session-affinity-scorer", Doc: "1 for the replica of the session",
			Value: weighted(newPinScore, sessionParams...)},
		{Name: "no-hit-lru-scorer",
			Doc: "for a prompt without a cached prefix: highest for the replica that got such a prompt " +
				"least recently; else 0.5",
			Value: weighted(newColdScore, count("lruSize", 1024, "replicas", "replicas to remember"))},
		{Name: "lora-affinity-scorer",
			Doc: "1 for replicas with requests of the LoRA adapter, 0.8 for others with requests of fewer adapters " +
				"than half of max_loras, else 0",
			Value: weighted(same(adapterScore{}))},
		{Name: "endpoint-attribute-scorer", Doc: "an attribute, linearly from 0 to 1",
			Value: weighted(newAttributeScore, attributeParam("attributeKey"),
				Param{Name: "algorithm", Kind: Choose, Choices: []string{lowerIsBetter, higherIsBetter},
					Default: lowerIsBetter, Doc: "which end of the range scores 1"},
				Param{Name: "normalization", Kind: Choose, Choices: []string{adaptiveRange, fixedRange},
					Default: adaptiveRange, Doc: "the range: that of the candidates, or min to max"},
				Param{Name: "min", Kind: Number, Min: -1e9, Max: 1e9, Search: [2]float64{0, 1}, Default: 0.0,
					Doc: "start of the fixed range"},
				Param{Name: "max", Kind: Number, Min: -1e9, Max: 1e9, Search: [2]float64{1, 100}, Default: 1.0,
					Doc: "end of the fixed range"})},
	}
}

func llmdPickers() registry.Table[llmdPlugin] {
	one := func(name string) llmdPlugin {
		return llmdPlugin{"picker", nil, func(b *builder, _ values) any { return b.llmdPicker(name) }}
	}
	return registry.Table[llmdPlugin]{
		{Name: "max-score-picker", Doc: "a random one of those with the highest score (the default)",
			Value: one(pickMaxScore)},
		{Name: "random-picker", Doc: "any candidate", Value: one(pickRandom)},
		{Name: "weighted-random-picker", Doc: "a random candidate, with probabilities as the scores",
			Value: one(pickWeightedRandom)},
	}
}

func llmdProducers() registry.Table[llmdPlugin] {
	most := func(name string, by float64, unit, doc string) Param {
		p := count(name, by, unit, doc)
		p.Min = 0
		return p
	}
	return registry.Table[llmdPlugin]{
		{Name: "approx-prefix-cache-producer", Doc: "the router's index of prompts sent to each replica",
			Value: llmdPlugin{"producer", []Param{
				{Name: "autoTune", Kind: Flag, Default: true,
					Doc: "take block size and capacity from the engines' caches"},
				count("blockSizeTokens", 16, "tokens", "block size without autoTune; at least 64 is used"),
				most("maxPrefixTokensToMatch", 131072, "tokens",
					"how much of a prompt is matched; 0: maxPrefixBlocksToMatch says it"),
				most("maxPrefixBlocksToMatch", 2048, "blocks", "how much of a prompt is matched; 0 is all"),
				count("lruCapacityPerServer", ShadowBlocks, "blocks",
					"blocks remembered for a replica without autoTune"),
			}, newBlockIndexConfig}},
	}
}

// newBlockIndexConfig configures the block index of the whole plane.
func newBlockIndexConfig(b *builder, v values) any {
	c := BlockIndexConfig{v.flag("autoTune"), int(v.number("blockSizeTokens")), int(v.number("maxPrefixTokensToMatch")),
		int(v.number("maxPrefixBlocksToMatch")), int(v.number("lruCapacityPerServer"))}
	if b.index != nil && *b.index != c {
		b.fail("", "all profiles share one index, which another producer configures otherwise")
	}
	b.index = &c
	return nil
}

// defaultBlockIndex is the index without a producer in the profile.
func defaultBlockIndex() BlockIndexConfig {
	return BlockIndexConfig{AutoTune: true, BlockTokens: 16, MaxTokens: 131072, MaxBlocks: 2048, Capacity: ShadowBlocks}
}

var fallbackParam = Param{Name: "fallbackOnEmpty", Kind: Flag, Default: false,
	Doc: "keep all replicas if none passes"}

var sessionParams = []Param{
	{Name: "strategy", Kind: Choose, Choices: []string{strategyHeader, strategySessionID}, Default: strategyHeader,
		Doc: "the replica of the session's last request, or the one to which its first request bound it"},
	{Name: "evictionTtlSeconds", Kind: Number, Unit: "s", Min: 1e-6, Max: 1e9, Search: [2]float64{10, 3600},
		Default: 300.0, Doc: "how long an idle session stays bound"},
	{Name: "evictionSweepSeconds", Kind: Number, Unit: "s", Min: 1e-6, Max: 1e9, Search: [2]float64{1, 60},
		Default: 10.0, Doc: "how often idle sessions are looked for"},
}

var utilizationParams = []Param{
	count("queueDepthThreshold", 5, "requests", "queue depth that saturates a replica"),
	{Name: "kvCacheUtilThreshold", Kind: Number, Min: 1e-6, Max: 1, Search: [2]float64{0.5, 1}, Default: 0.8,
		Doc: "KV usage that saturates a replica"},
	{Name: "metricsStalenessThreshold", Kind: Number, Unit: "s", Min: 1e-6, Max: 1e6, Search: [2]float64{0.05, 1},
		Default: 0.2, Doc: "age from which on what a replica reported counts as saturated"},
	headroomParam,
}

var concurrencyParams = []Param{
	{Name: "concurrencyMode", Kind: Choose, Choices: []string{modeRequests, modeTokens, modeHybrid},
		Default: modeRequests, Doc: "what is limited"},
	count("maxConcurrency", 100, "requests", "requests in flight that saturate a replica"),
	count("maxTokenConcurrency", 1e6, "tokens", "tokens of prompts without a first token that saturate a replica"),
	headroomParam,
}

var headroomParam = Param{Name: "headroom", Kind: Number, Max: 1e3, Search: [2]float64{0, 1}, Default: 0.0,
	Doc: "share of the limits by which a filter exceeds them"}

func attributeParam(name string) Param {
	return Param{Name: name, Kind: Choose, Choices: attributes.Names(), Default: "queue_depth",
		Doc: "the reported number"}
}

// share is a parameter between 0 and 1.
func share(name string, by float64, doc string) Param {
	return Param{Name: name, Kind: Number, Max: 1, Search: [2]float64{0, 1}, Default: by, Doc: doc}
}

// count is a positive integer parameter.
func count(name string, by float64, unit, doc string) Param {
	return Param{Name: name, Kind: Number, Unit: unit, Whole: true, Min: 1, Max: 1e9, Search: [2]float64{1, 4 * by},
		Default: by, Doc: doc}
}
