package reference

import (
	"math"
	"slices"
)

// keep returns the replicas that pass a filter.
func (d *llmdChoice) keep(k int, p Plugin, all []int) []int {
	passes, restores := func(int) bool { return true }, p.says("fallbackOnEmpty", "true")
	switch p.Name {
	case "utilization-filter":
		passes = func(i int) bool {
			for name, limit := range p.Numbers {
				if d.attribute(name, i) > limit {
					return false
				}
			}
			return true
		}
	case "endpoint-attribute-filter":
		passes = func(i int) bool {
			return compared(d.attribute(p.Words["attribute"], i), p.Words["operator"], p.Numbers["value"])
		}
	case "session-affinity-filter":
		home := d.pinned(k, p)
		d.sticky[k] = slices.Contains(all, home)
		passes = func(i int) bool { return i == home || !d.sticky[k] }
	case "prefix-cache-affinity-filter":
		passes = d.sticksToPrefix(p, all)
	case "utilization-detector":
		passes, restores = func(i int) bool { return !d.saturated(p, i) }, true
	case "concurrency-detector":
		passes = func(i int) bool { return d.concurrent(p, i) }
	}
	var kept []int
	for _, i := range all {
		if passes(i) {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 && restores {
		return all
	}
	return kept
}

func compared(x float64, operator string, limit float64) bool {
	switch operator {
	case "LessThan":
		return x < limit
	case "LessThanOrEqual":
		return x <= limit
	case "GreaterThan":
		return x > limit
	case "GreaterThanOrEqual":
		return x >= limit
	case "Equal":
		return x == limit
	}
	return x != limit
}

// sticksToPrefix is prefix-cache-affinity-filter. It keeps the replicas with most of the prompt, if there are any,
// unless all of them would take too much longer than the best other one, or to explore.
func (d *llmdChoice) sticksToPrefix(p Plugin, all []int) func(int) bool {
	everything := func(int) bool { return true }
	threshold, stream := p.Numbers["affinityThreshold"], numberStream(p.Seed).forRequest(d.position)
	has := func(i int) bool { return d.fraction(i) >= threshold }
	if threshold == 0 || stream.unit() < p.Numbers["explorationProbability"] {
		return everything
	}
	sticky, other := math.Inf(1), math.Inf(1)
	for _, i := range all {
		ms := float64(d.prefill[i]) / p.Numbers["peakPrefillThroughput"] * 1000
		if has(i) {
			sticky = min(sticky, ms)
		} else {
			other = min(other, ms)
		}
	}
	penalty := p.Numbers["maxTTFTPenaltyMs"]
	if !slices.ContainsFunc(all, has) || penalty > 0 && sticky-other > penalty {
		return everything
	}
	return has
}

// reportAge is the age of what replicas reported last. They report after the other events of an instant.
func (r *router) reportAge() int64 {
	every := r.config.SnapshotUS
	switch {
	case every == 0:
		return 0
	case r.settled:
		return r.now % every
	}
	return r.now - max(0, r.now-1)/every*every
}

// saturated is what utilization-detector drops: a long queue, a full cache, or numbers that are too old.
func (d *llmdChoice) saturated(p Plugin, i int) bool {
	more := 1 + p.Numbers["headroom"]
	return d.reportAge() > seconds(p, "metricsStalenessThreshold") ||
		float64(d.queued[i]) >= p.Numbers["queueDepthThreshold"]*more ||
		d.usage[i] >= p.Numbers["kvCacheUtilThreshold"]*more
}

// concurrent reports whether a replica is below the limits of concurrency-detector.
func (d *llmdChoice) concurrent(p Plugin, i int) bool {
	more := 1 + p.Numbers["headroom"]
	requests := d.inflight[i] < int(p.Numbers["maxConcurrency"]*more)
	tokens := d.prefill[i] < int(p.Numbers["maxTokenConcurrency"]*more)
	switch p.Words["concurrencyMode"] {
	case "requests":
		return requests
	case "tokens":
		return tokens
	}
	return requests && tokens
}

// score is what a scorer gives a replica, one of those that passed the filters.
func (d *llmdChoice) score(k int, p Plugin, all []int, i int) float64 {
	switch p.Name {
	case "queue-scorer":
		return fewest(all, i, func(i int) int { return d.queued[i] })
	case "running-requests-size-scorer":
		return fewest(all, i, func(i int) int { return d.running[i] })
	case "kv-cache-utilization-scorer":
		return 1 - d.usage[i]
	case "prefix-cache-scorer":
		weight := p.Numbers["matchLengthWeight"]
		tokens := min(1, float64(d.matches[i])*float64(d.size)/p.Numbers["matchLengthScaleTokens"])
		return float64(weight*float64(tokens*tokens)) + float64((1-weight)*d.fraction(i))
	case "precise-prefix-cache-scorer":
		if d.cached[i] == 0 {
			return 0
		}
		return float64(d.cached[i]) / float64(d.q.Input/d.config.BlockSize)
	case "load-aware-scorer":
		most := p.Numbers["threshold"]
		return 0.5 * (1 - min(most, float64(d.queued[i]))/most)
	case "active-request-scorer":
		return d.idle(p, all, i)
	case "token-load-scorer":
		most := p.Numbers["queueThresholdTokens"]
		return 1 - min(most, float64(d.prefill[i]+d.uncached(i)))/most
	case "session-affinity-scorer":
		home := d.pinned(k, p)
		if d.sticky[k] = slices.Contains(all, home); i == home {
			return 1
		}
		return 0
	case "no-hit-lru-scorer":
		return d.leastRecent(k, all, i)
	case "lora-affinity-scorer":
		switch {
		case d.adapters[i][d.q.Adapter]:
			return 1
		case len(d.adapters[i])+len(d.adapters[i]) < d.config.LoRA.Max: // running and waiting ones are the same
			return 0.8
		}
		return 0
	case "endpoint-attribute-scorer":
		return d.normalized(p, all, i)
	}
	panic("reference: unknown plugin " + p.Name)
}

// fewest is 1 for the lowest count and 0 for the highest.
func fewest(all []int, i int, count func(int) int) float64 {
	var counts []int
	for _, k := range all {
		counts = append(counts, count(k))
	}
	return queueDepthScore(counts, slices.Index(all, i))
}

// idle is active-request-scorer: 1 for few requests in flight, else by how far they are below the most.
func (d *llmdChoice) idle(p Plugin, all []int, i int) float64 {
	most := 0
	for _, k := range all {
		most = max(most, d.inflight[k])
	}
	if d.inflight[i] <= int(p.Numbers["idleThreshold"]) {
		return 1
	}
	return float64(most-d.inflight[i]) / float64(most) * p.Numbers["maxBusyScore"]
}

// leastRecent is no-hit-lru-scorer: prompts without a prefix anywhere go first to replicas that had none, in order,
// then to the one whose last one is the oldest.
func (d *llmdChoice) leastRecent(k int, all []int, i int) float64 {
	d.isCold[k] = !slices.ContainsFunc(all, func(i int) bool { return d.matches[i] > 0 })
	order := d.state.cold[k]
	unused := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return slices.Contains(order, i) })
	switch last := float64(len(all) - 1); {
	case !d.isCold[k]:
		return 0.5
	case len(all) == 1:
		return 1
	case slices.Contains(unused, i):
		return 1 - float64(slices.Index(unused, i))/last
	default:
		return max(0, 1-float64(len(unused)+slices.Index(order, i))/last)
	}
}

// normalized is endpoint-attribute-scorer: where a number lies in a range.
func (d *llmdChoice) normalized(p Plugin, all []int, i int) float64 {
	var numbers []float64
	for _, k := range all {
		numbers = append(numbers, d.attribute(p.Words["attributeKey"], k))
	}
	low, high := slices.Min(numbers), slices.Max(numbers)
	if p.says("normalization", "fixedRange") {
		low, high = p.Numbers["min"], p.Numbers["max"]
	}
	if low == high {
		return 1
	}
	x := max(0, min(1, (d.attribute(p.Words["attributeKey"], i)-low)/(high-low)))
	if p.says("algorithm", "linear_lower_is_better") {
		return 1 - x
	}
	return x
}
