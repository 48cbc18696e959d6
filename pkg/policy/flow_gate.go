package policy

import (
	"math"

	"blis/pkg/registry"
)

// GateConfig says when requests may leave a Flow.
type GateConfig struct {
	// Detector measures saturation; without one it is the mean over the replicas of max(queue/5, KV
	// usage/0.8), in which requests sent since the last report count as queued.
	Detector *Spec
	// UsageLimit gives each priority a saturation from which on its requests wait; without one that is
	// Threshold for all.
	UsageLimit *Spec
	Threshold  float64
}

// Gate decides when requests may leave a Flow. A detector and a usage limit have the names, parameters
// and defaults of llm-d-router v0.10.0 (pkg/epp/framework/plugins/flowcontrol).
type Gate struct {
	detector saturationDetector // nil: the default
	limit    usageLimit
	ceilings []float64
}

// saturationDetector measures how busy the replicas are; 1 is saturated.
type saturationDetector interface {
	Needs() Needs
	saturation(*View) float64
}

// usageLimit sets the ceilings of bands, which are in order of priority, highest first.
type usageLimit interface {
	set(saturation float64, bands []band, ceilings []float64)
	clone() usageLimit
}

type gatePart[T any] struct {
	params []Param
	build  func(*builder, values) T
}

// detectors are the saturation detectors of flow control.
var detectors = registry.Table[gatePart[saturationDetector]]{
	{Name: "utilization-detector", Doc: "mean of queue depth and KV usage relative to limits, as last reported",
		Value: gatePart[saturationDetector]{utilizationParams, func(b *builder, v values) saturationDetector {
			return newUtilizationDetector(b, v).(utilizationDetector)
		}}},
	{Name: "concurrency-detector", Doc: "requests or prompt tokens in flight relative to limits",
		Value: gatePart[saturationDetector]{concurrencyParams, func(b *builder, v values) saturationDetector {
			return newConcurrencyDetector(b, v).(concurrencyDetector)
		}}},
}

var usageLimits = registry.Table[gatePart[usageLimit]]{
	{Name: "static-usage-limit-policy", Doc: "the same saturation for all priorities",
		Value: gatePart[usageLimit]{[]Param{{Name: "threshold", Kind: Number, Max: 1e6, Search: [2]float64{0.5, 2},
			Default: 1.0, Doc: "saturation from which on requests wait"}},
			func(_ *builder, v values) usageLimit { return staticLimit(v.number("threshold")) }}},
	{Name: "priority-holdback-policy", Doc: "lower saturations for lower priorities",
		Value: gatePart[usageLimit]{holdbackParams, newHoldback}},
	{Name: "soft-reflective-ceiling-policy",
		Doc:   "all for the highest priority; lower ones pass less often as the saturation grows",
		Value: gatePart[usageLimit]{nil, func(*builder, values) usageLimit { return new(softCeiling) }}},
}

// NewGate builds a gate. Errors are *Error, with paths from the flow control on.
func NewGate(c GateConfig) (g *Gate, unused []Unused, err error) {
	defer recoverError(&err)
	b := &builder{}
	g = &Gate{limit: staticLimit(c.Threshold)}
	if c.Detector != nil {
		g.detector = buildPart(b, c.Detector, "detector", "saturation detector", detectors)
	}
	if c.UsageLimit != nil {
		g.limit = buildPart(b, c.UsageLimit, "usage_limit", "usage limit policy", usageLimits)
	}
	return g, b.unused, nil
}

func buildPart[T any](b *builder, s *Spec, path, what string, t registry.Table[gatePart[T]]) T {
	b.path = path
	part, err := t.Get(what, s.Type)
	if err != nil {
		b.fail("type", "%v", err)
	}
	b.allowOnly(s, "params")
	v := b.params(s, part.params)
	if _, ok := v["concurrencyMode"]; ok {
		b.markUnusedNamed(v, part.params, "only filters have headroom", "headroom")
		switch v.choice("concurrencyMode") {
		case modeRequests:
			b.markUnusedNamed(v, part.params, "the mode is requests", "maxTokenConcurrency")
		case modeTokens:
			b.markUnusedNamed(v, part.params, "the mode is tokens", "maxConcurrency")
		}
	}
	return part.build(b, v)
}

// Complete fills in the defaults of the parameters.
func (c *GateConfig) Complete() {
	if c.Detector != nil {
		completePart(c.Detector, detectors)
	}
	if c.UsageLimit != nil {
		completePart(c.UsageLimit, usageLimits)
	}
}

func completePart[T any](s *Spec, t registry.Table[gatePart[T]]) {
	if part, err := t.Get("", s.Type); err == nil {
		completeParams(s, part.params)
	}
}

// Needs returns what the gate reads, and the tenant, which the queue does.
func (g *Gate) Needs() Needs {
	if g.detector == nil {
		return NeedQueueDepth | needKVUtil | NeedTenant
	}
	return g.detector.Needs() | NeedTenant
}

// Saturation returns the saturation of the replicas. unread are requests that were sent to a replica
// and are not in the queue that it reported; a detector ignores them, as llm-d's do.
func (g *Gate) Saturation(v *View, unread func(*Replica) int32) float64 {
	if g.detector == nil {
		return v.SaturationWith(unread)
	}
	return g.detector.saturation(v)
}

// limits returns the saturation of each band from which on its requests wait.
func (g *Gate) limits(saturation float64, bands []band) []float64 {
	for len(g.ceilings) < len(bands) {
		g.ceilings = append(g.ceilings, 0)
	}
	ceilings := g.ceilings[:len(bands)]
	g.limit.set(saturation, bands, ceilings)
	return ceilings
}

// Clone returns an independent copy.
func (g *Gate) Clone() *Gate { return &Gate{detector: g.detector, limit: g.limit.clone()} }

func (d utilizationDetector) saturation(v *View) float64 {
	sum := 0.0
	for i := range v.Replicas {
		if r := &v.Replicas[i]; d.isStale(v, r) {
			sum++
		} else {
			sum += max(float64(r.QueueDepth)/d.queue, r.KVUtil/d.kv)
		}
	}
	return sum / float64(len(v.Replicas))
}

func (d concurrencyDetector) saturation(v *View) float64 {
	requests, tokens, largest := int64(0), int64(0), 0.0
	for i := range v.Replicas {
		r := &v.Replicas[i]
		requests, tokens = requests+int64(r.Inflight), tokens+r.Stats.PrefillTokens
		largest += max(float64(r.Inflight)/d.requests, float64(r.Stats.PrefillTokens)/d.tokens)
	}
	n := float64(len(v.Replicas))
	switch d.mode {
	case modeTokens:
		return float64(tokens) / (d.tokens * n)
	case modeHybrid:
		return largest / n
	}
	return float64(requests) / (d.requests * n)
}

// staticLimit is static-usage-limit-policy (usagelimits/usagelimitpolicy.go).
type staticLimit float64

func (l staticLimit) clone() usageLimit { return l }
func (l staticLimit) set(_ float64, _ []band, ceilings []float64) {
	for i := range ceilings {
		ceilings[i] = float64(l)
	}
}

// holdback is priority-holdback-policy (usagelimits/priorityholdback): ceilings from highest for the
// highest priority down to lowest, in equal steps or in proportion to the priorities.
type holdback struct {
	lowest, highest float64
	byValue         bool
}

var holdbackParams = []Param{
	{Name: "shape", Kind: Choose, Choices: []string{"linear"}, Default: "linear", Doc: "how the ceilings fall"},
	{Name: "domain", Kind: Choose, Choices: []string{"rank", "value"}, Default: "rank",
		Doc: "what they follow: the ranks of the priorities, or the priorities"},
	{Name: "minCeiling", Kind: Number, Max: 1, Search: [2]float64{0, 1}, Default: 0.0,
		Doc: "saturation from which on the lowest priority waits, with 0 for ever; llm-d has no default"},
	{Name: "maxCeiling", Kind: Number, Min: 1e-6, Max: 1, Search: [2]float64{0.5, 1}, Default: 1.0,
		Doc: "that of the highest"},
}

func newHoldback(b *builder, v values) usageLimit {
	h := holdback{v.number("minCeiling"), v.number("maxCeiling"), v.choice("domain") == "value"}
	if h.lowest >= h.highest {
		b.fail("params.minCeiling", "must be below maxCeiling (%g), is %g", h.highest, h.lowest)
	}
	return h
}

func (h holdback) clone() usageLimit { return h }
func (h holdback) set(_ float64, bands []band, ceilings []float64) {
	last := len(bands) - 1
	for i := range bands {
		switch {
		case last == 0:
			ceilings[i] = h.highest
		case h.byValue:
			share := (bands[i].priority - bands[last].priority) / (bands[0].priority - bands[last].priority)
			ceilings[i] = h.lowest + float64(share*(h.highest-h.lowest))
		default:
			ceilings[i] = h.highest - float64(i)*(h.highest-h.lowest)/float64(last)
		}
	}
}

// softCeiling is soft-reflective-ceiling-policy (usagelimits/softreflectiveceiling): the highest
// priority passes up to 1. A lower one passes while the saturation s is below 1 - s x its rank from 0
// to 1; above that in one of round(s / (1 - s)) decisions, and never from 1 on.
type softCeiling struct{ decisions int64 }

func (c *softCeiling) clone() usageLimit { return &softCeiling{c.decisions} }

func (c *softCeiling) set(s float64, bands []band, ceilings []float64) {
	ceilings[0] = 1
	if len(bands) == 1 {
		return
	}
	open := false
	if s >= 1-s && s < 1 {
		c.decisions++
		open = c.decisions%int64(max(1, math.Round(s/(1-s+1e-9)))) == 0
	}
	for i := 1; i < len(bands); i++ {
		ceilings[i] = 0
		if reflective := 1 - float64(i)*s/float64(len(bands)-1); s < reflective || s < 1 && open {
			ceilings[i] = 1
		}
	}
}
