package policy

import (
	"math"
	"slices"
)

// The filters of llm-d-router v0.10.0 (pkg/epp/framework/plugins/scheduling/filter).

// fallback says whether a filter that drops all candidates keeps all instead.
type fallback bool

func (f fallback) restore(keep []bool) {
	if bool(f) && !slices.Contains(keep, true) {
		for i := range keep {
			keep[i] = true
		}
	}
}

// utilizationMetrics are the metrics of utilization-filter.
var utilizationMetrics = map[string]attribute{
	"active-requests":      {0, func(r *Replica) float64 { return float64(r.Inflight) }},
	"running-requests":     {NeedRunning, func(r *Replica) float64 { return float64(r.Running) }},
	"waiting-queue":        {NeedQueueDepth, func(r *Replica) float64 { return float64(r.QueueDepth) }},
	"kv-cache-utilization": {needKVUtil, func(r *Replica) float64 { return r.KVUtil }},
}

// utilizationFilter is utilization-filter (utilization/filter.go): it keeps the candidates of which
// no metric is above its limit.
type utilizationFilter struct {
	needs
	limits []metricLimit
	fallback
}

type metricLimit struct {
	of    func(*Replica) float64
	limit float64
}

func newUtilizationFilter(b *builder, v values) any {
	f := &utilizationFilter{fallback: fallback(v.flag("fallbackOnEmpty"))}
	conditions := v.table("conditions")
	names := sortedKeys(conditions)
	b.checkKeys("params.conditions", names, "metric", sortedKeys(utilizationMetrics))
	if len(names) == 0 {
		b.fail("params.conditions", "needs the highest value of at least one of %s",
			join(sortedKeys(utilizationMetrics)))
	}
	for _, name := range names {
		if name == "kv-cache-utilization" && conditions[name] > 1 {
			b.fail("params.conditions."+name, "is a share, at most 1, but is %g", conditions[name])
		}
		m := utilizationMetrics[name]
		f.limits, f.needs = append(f.limits, metricLimit{m.of, conditions[name]}), f.needs|needs(m.needs)
	}
	return f
}

func (f *utilizationFilter) cloneFilter() llmdFilter { return f }
func (f *utilizationFilter) filter(v *View, keep []bool) {
	for i := range v.Replicas {
		for _, l := range f.limits {
			keep[i] = keep[i] && l.of(&v.Replicas[i]) <= l.limit
		}
	}
	f.restore(keep)
}

// cacheAffinityFilter is prefix-cache-affinity-filter (prefixcacheaffinity/plugin.go): it keeps the
// candidates of which the router's index has at least threshold of the prompt's blocks, if there are
// any. If they are too busy, it keeps all: when the lowest time to first token of these candidates is
// more than penaltyMS above that of the others. That time is the tokens of prompts sent there
// without a first token, divided by the throughput of prefills.
type cacheAffinityFilter struct {
	threshold, exploration, penaltyMS, tokensPerS float64
	draws                                         draws
}

func newCacheAffinityFilter(b *builder, v values) any {
	return &cacheAffinityFilter{v.number("affinityThreshold"), v.number("explorationProbability"),
		v.number("maxTTFTPenaltyMs"), v.number("peakPrefillThroughput"), b.draws()}
}

func (*cacheAffinityFilter) Needs() Needs { return NeedBlockIndex | NeedPrefillTokens }

func (f *cacheAffinityFilter) cloneFilter() llmdFilter {
	c := *f
	return &c
}

// explores reports whether the filter keeps all candidates of this decision, to try them.
func (f *cacheAffinityFilter) explores(v *View) bool {
	r := f.draws.of(v.Draw)
	return f.exploration > 0 && r.float() < f.exploration
}

func (f *cacheAffinityFilter) filter(v *View, keep []bool) {
	if len(keep) == 1 || f.threshold <= 0 || f.explores(v) {
		return
	}
	sticky, others := math.Inf(1), math.Inf(1) // lowest TTFT
	for i := range v.Replicas {
		stats := v.Replicas[i].Stats
		ttft := float64(stats.PrefillTokens) / f.tokensPerS * 1000
		if keep[i] = stats.Prefix.share() >= f.threshold; keep[i] {
			sticky = min(sticky, ttft)
		} else {
			others = min(others, ttft)
		}
	}
	if math.IsInf(sticky, 1) || f.penaltyMS > 0 && sticky-others > f.penaltyMS {
		for i := range keep {
			keep[i] = true
		}
	}
}
