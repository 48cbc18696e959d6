package policy

import "math"

// priorities are the priority policies. Higher is more urgent.
func priorities() table[Prioritizer] {
	type kind = policyKind[Prioritizer]
	return table[Prioritizer]{
		{Name: "constant", Doc: "priority 0 for all requests", Value: kind{build: newConstant}},
		{Name: "slo-based", Doc: "the priority of the request's SLO class",
			Value: kind{params: sloBasedParams, build: newSLOBased}},
		{Name: "request-priority", Doc: "the negated priority that the request asks for, as vLLM's X-Vllm-Priority",
			Value: kind{build: newRequestPriority}},
		{Name: "tenant-priority", Doc: "a priority for each tenant",
			Value: kind{params: tenantPriorityParams, build: newTenantPriority}},
		{Name: "deadline-aware", Doc: "1e6 / ms left to the deadline or the TTFT target; hint slack_ms",
			Value: kind{build: newDeadlineAware}},
		{Name: "expression", Doc: "CEL: priority is a number; hints are numbers by name",
			Value: kind{composed: true, build: newPriorityExpression}},
		{Name: "starlark", Doc: "program in Starlark: priority(…) and hint_NAME(…) return numbers",
			Value: kind{composed: true, build: newPriorityProgram}},
		{Name: "tree", Doc: "decision tree (root) whose leaves are numbers, or policies without hints",
			Value: kind{composed: true, build: newPriorityTree}},
		{Name: "inverted-slo", Doc: "the negated priority of the SLO class",
			Value: kind{pathological: true, build: newInvertedSLO}},
	}
}

// noHints is embedded by priority policies that give no hints.
type noHints struct{ noNeeds }

func (noHints) Hints() []string { return nil }

type constant struct{ noHints }

func newConstant(*builder, *Spec) Prioritizer { return constant{} }

func (constant) Priority(*View, *[MaxHints]float64) (float64, string) { return 0, "" }
func (c constant) Clone() Prioritizer                                 { return c }

// IsConstant reports whether p gives every request priority 0.
func IsConstant(p Prioritizer) bool {
	_, ok := p.(constant)
	return ok
}

const defaultScore = "default_score"

var sloBasedParams = []Param{
	{Name: "scores", Kind: Table, Keys: "SLO class", Min: -1e9, Max: 1e9, Search: [2]float64{0, 100},
		Default: map[string]float64{}, Doc: "priority of each SLO class; REALTIME_score is that of the class REALTIME"},
	{Name: defaultScore, Kind: Number, Min: -1e9, Max: 1e9, Search: [2]float64{0, 100}, Default: auto, Auto: true,
		Doc: "priority of classes without a score; auto: their own priority"},
}

type sloBased struct {
	noHints
	scores map[string]float64
	other  float64 // NaN: the class's own priority
}

func newSLOBased(b *builder, s *Spec) Prioritizer {
	v := b.params(s, sloBasedParams)
	p := sloBased{scores: v.table("scores"), other: v.number(defaultScore)}
	b.classes = append(b.classes, sortedKeys(p.scores)...)
	return p
}

func (sloBased) Needs() Needs { return NeedRequest }

func (p sloBased) Priority(v *View, _ *[MaxHints]float64) (float64, string) {
	if score, ok := p.scores[v.Request.Class]; ok {
		return score, ""
	}
	if p.other == p.other {
		return p.other, ""
	}
	return v.Request.Priority, ""
}
func (p sloBased) Clone() Prioritizer { return p }

type requestPriority struct{ needs }

func newRequestPriority(*builder, *Spec) Prioritizer { return requestPriority{needs(NeedRequest)} }

func (requestPriority) Hints() []string { return nil }

// 0 - x avoids -0, which would be written differently from 0.
func (requestPriority) Priority(v *View, _ *[MaxHints]float64) (float64, string) {
	return 0 - v.Request.Requested, ""
}
func (r requestPriority) Clone() Prioritizer { return r }

type invertedSLO struct{ noHints }

func newInvertedSLO(*builder, *Spec) Prioritizer { return invertedSLO{} }

func (invertedSLO) Needs() Needs { return NeedRequest }

// 0 - x avoids -0, which would be written differently from 0.
func (invertedSLO) Priority(v *View, _ *[MaxHints]float64) (float64, string) {
	return 0 - v.Request.Priority, ""
}
func (i invertedSLO) Clone() Prioritizer { return i }

var tenantPriorityParams = []Param{
	{Name: "map", Kind: Table, Keys: "tenant", Min: -1e9, Max: 1e9, Search: [2]float64{0, 100},
		Default: map[string]float64{}, Doc: "priority of each tenant's requests; 0 for other tenants"},
}

type tenantPriority struct {
	noHints
	byTenant map[string]float64
}

func newTenantPriority(b *builder, s *Spec) Prioritizer {
	return tenantPriority{byTenant: b.params(s, tenantPriorityParams).table("map")}
}

func (tenantPriority) Needs() Needs { return NeedRequest }

func (t tenantPriority) Priority(v *View, _ *[MaxHints]float64) (float64, string) {
	return t.byTenant[v.Request.Tenant], ""
}

func (t tenantPriority) Clone() Prioritizer { return t }

// deadlineAware raises the priority as the deadline approaches or, without one, the TTFT target of
// the SLO class. A request with neither has priority 0.
type deadlineAware struct{ needs }

func newDeadlineAware(*builder, *Spec) Prioritizer { return deadlineAware{needs(NeedRequest)} }

func (deadlineAware) Hints() []string { return []string{"slack_ms"} }

func (deadlineAware) Priority(v *View, hints *[MaxHints]float64) (float64, string) {
	slack := math.Inf(1)
	if r := v.Request; r.DeadlineUS >= 0 {
		slack = float64(r.DeadlineUS-v.NowUS) / 1000
	} else if r.TTFTTargetMS > 0 {
		slack = r.TTFTTargetMS - float64(v.NowUS-r.ArrivalUS)/1000
	}
	hints[0] = slack
	return 1e6 / max(1, slack), ""
}

func (d deadlineAware) Clone() Prioritizer { return d }
