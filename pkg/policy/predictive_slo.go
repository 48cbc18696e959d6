package policy

import "slices"

var predictiveSLOParams = []Param{
	{Name: "avg_step_us", Kind: Number, Unit: "µs", Min: 0, Max: 1e9, Search: [2]float64{5000, 20000}, Default: auto,
		Auto: true, Doc: "wait per queued request; auto is the replica's mean step time"},
	{Name: "budget_ms", Kind: Table, Unit: "ms", Keys: "SLO class or tier", Min: 0, Max: 1e9,
		Search: [2]float64{50, 1000}, Default: map[string]float64{Critical: 100, Standard: 250, Sheddable: 500},
		Doc: "TTFT budget of a class or else of its tier; without a budget every request is admitted"},
	{Name: "headroom", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{0.5, 2}, Default: 1.0,
		Doc: "factor on every budget"},
	{Name: "standard_tolerance", Kind: Number, Min: 1, Max: 1e6, Search: [2]float64{1, 4}, Default: 2.0,
		Doc: "additional factor on the budget of the standard tier"},
}

// predictiveSLO admits a request if the best replica is estimated to return its first token within
// the budget. The estimate is queue depth times a step, plus the time of the prompt tokens that the
// router does not expect to be cached. The critical tier is always admitted, the standard tier up
// to its tolerance.
type predictiveSLO struct {
	needs
	stepUS, headroom, tolerance float64
	budgets                     map[string]float64
}

func newPredictiveSLO(b *builder, s *Spec) Admitter {
	v := b.params(s, predictiveSLOParams)
	for _, key := range sortedKeys(v.table("budget_ms")) {
		if !slices.Contains(tiers, key) {
			b.classes = append(b.classes, key)
		}
	}
	return predictiveSLO{needs(NeedRequest | NeedQueueDepth | NeedShadow | NeedEstimate), v.number("avg_step_us"),
		v.number("headroom"), v.number("standard_tolerance"), v.table("budget_ms")}
}

func (p predictiveSLO) Admit(v *View) Verdict {
	r := v.Request
	if r.Tier == Critical {
		return exempt("critical tier")
	}
	budget, ok := p.budgets[r.Class]
	if !ok {
		if budget, ok = p.budgets[r.Tier]; !ok {
			return exempt("no budget")
		}
	}
	limit := 1000 * budget * p.headroom
	if r.Tier == Standard {
		limit *= p.tolerance
	}
	return admitUpTo("best estimated TTFT in us", v.BestTTFTUS(p.stepUS), limit)
}

func (p predictiveSLO) Clone() Admitter { return p }
