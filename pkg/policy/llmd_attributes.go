package policy

import "blis/pkg/registry"

// attribute is a number that replicas report, which endpoint-attribute-scorer and
// endpoint-attribute-filter read. llm-d gives them the metrics of the model server that it is
// configured to scrape; here they are the signals.
type attribute struct {
	needs Needs
	of    func(*Replica) float64
}

var attributes = registry.Table[attribute]{
	{Name: "queue_depth", Doc: "waiting requests",
		Value: attribute{NeedQueueDepth, func(r *Replica) float64 { return float64(r.QueueDepth) }}},
	{Name: "running", Doc: "sequences in the batch",
		Value: attribute{NeedRunning, func(r *Replica) float64 { return float64(r.Running) }}},
	{Name: "kv_util", Doc: "share of KV blocks in use",
		Value: attribute{needKVUtil, func(r *Replica) float64 { return r.KVUtil }}},
	{Name: "free_blocks", Doc: "free KV blocks",
		Value: attribute{needKVUtil, func(r *Replica) float64 { return float64(r.FreeBlocks) }}},
	{Name: "hit_rate", Doc: "share of prompt tokens found in the cache",
		Value: attribute{NeedHitRate, func(r *Replica) float64 { return r.Stats.HitRate }}},
	{Name: "recent_ttft_ms", Doc: "mean time to first token",
		Value: attribute{NeedRecentTTFT, func(r *Replica) float64 { return r.Stats.RecentTTFTMS }}},
	{Name: "recent_tpot_ms", Doc: "mean time per output token",
		Value: attribute{NeedRecentTPOT, func(r *Replica) float64 { return r.Stats.RecentTPOTMS }}},
	{Name: "est_wait_ms", Doc: "queue depth x mean step time",
		Value: attribute{NeedEstWait, func(r *Replica) float64 { return r.Stats.EstWaitMS }}},
	{Name: "kv_util_cpu", Doc: "share of the blocks of the KV tier cpu in use",
		Value: attribute{NeedTier, func(r *Replica) float64 { return r.Stats.KVUtilCPU }}},
	{Name: "loading", Doc: "requests that load from KV tiers",
		Value: attribute{NeedTier, func(r *Replica) float64 { return float64(r.Stats.Loading) }}},
}

// attributeNamed returns an attribute that a parameter names.
func attributeNamed(name string) attribute {
	a, err := attributes.Get("attribute", name)
	if err != nil {
		panic("policy: " + err.Error()) // the parameter's choices are the table's names
	}
	return a
}

const (
	lowerIsBetter  = "linear_lower_is_better"
	higherIsBetter = "linear_higher_is_better"
	adaptiveRange  = "adaptiveRange"
	fixedRange     = "fixedRange"
)

// attributeScore is endpoint-attribute-scorer (v0.10.0, scorer/endpointattribute): an attribute,
// linearly from 0 to 1 within a fixed range or that of the candidates; all 1 if these are equal.
type attributeScore struct {
	attribute
	lowest, highest float64 // of the fixed range
	fixed, lower    bool
}

func newAttributeScore(b *builder, v values) any {
	s := attributeScore{attributeNamed(v.choice("attributeKey")), v.number("min"), v.number("max"),
		v.choice("normalization") == fixedRange, v.choice("algorithm") == lowerIsBetter}
	if s.fixed && s.lowest >= s.highest {
		b.fail("params.max", "must be above min (%g), is %g", s.lowest, s.highest)
	}
	return s
}

func (s attributeScore) Needs() Needs  { return s.needs }
func (s attributeScore) clone() scorer { return s }
func (s attributeScore) score(v *View, scores []float64) {
	low, high := s.lowest, s.highest
	if !s.fixed {
		low, high = s.of(&v.Replicas[0]), s.of(&v.Replicas[0])
		for i := range v.Replicas {
			x := s.of(&v.Replicas[i])
			low, high = min(low, x), max(high, x)
		}
	}
	for i := range v.Replicas {
		if low == high {
			scores[i] = 1
			continue
		}
		x := min(max((s.of(&v.Replicas[i])-low)/(high-low), 0), 1)
		if s.lower {
			x = 1 - x
		}
		scores[i] = x
	}
}

// operators are the comparisons of endpoint-attribute-filter.
var operators = registry.Table[func(x, limit float64) bool]{
	{Name: "LessThan", Value: func(x, limit float64) bool { return x < limit }},
	{Name: "LessThanOrEqual", Value: func(x, limit float64) bool { return x <= limit }},
	{Name: "GreaterThan", Value: func(x, limit float64) bool { return x > limit }},
	{Name: "GreaterThanOrEqual", Value: func(x, limit float64) bool { return x >= limit }},
	{Name: "Equal", Value: func(x, limit float64) bool { return x == limit }},
	{Name: "NotEqual", Value: func(x, limit float64) bool { return x != limit }},
}

// attributeFilter is endpoint-attribute-filter (v0.10.0, filter/endpointattribute): it keeps the
// candidates whose attribute compares with a threshold as asked. No attribute is ever missing.
type attributeFilter struct {
	attribute
	passes    func(x, limit float64) bool
	threshold float64
	fallback
}

func newAttributeFilter(_ *builder, v values) any {
	passes, err := operators.Get("operator", v.choice("operator"))
	if err != nil {
		panic("policy: " + err.Error()) // the parameter's choices are the table's names
	}
	return attributeFilter{attributeNamed(v.choice("attribute")), passes, v.number("value"),
		fallback(v.flag("fallbackOnEmpty"))}
}

func (f attributeFilter) Needs() Needs            { return f.needs }
func (f attributeFilter) cloneFilter() llmdFilter { return f }
func (f attributeFilter) filter(v *View, keep []bool) {
	for i := range v.Replicas {
		keep[i] = f.passes(f.of(&v.Replicas[i]), f.threshold)
	}
	f.restore(keep)
}
