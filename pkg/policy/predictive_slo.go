package policy

import "slices"

var predictiveSLOParams = []Param{
	{Name: "avg_step_us", Kind: Number, Unit: "µs", Min: 0, Max: 1e9, Search: [2]float64{5000, 20000}, Default: auto, Auto: true, Doc: "that each request in a queue makes the next one wait; auto is the replica's own mean step"},
	{Name: "budget_ms", Kind: Table, Unit: "ms", Keys: "SLO class or tier", Min: 0, Max: 1e9, Search: [2]float64{50, 1000}, Default: map[string]float64{Critical: 100, Standard: 250, Sheddable: 500},
		Doc: "for the first token, of a class or else of its tier; without one, every request is in time"},
	{Name: "headroom", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{0.5, 2}, Default: 1.0, Doc: "by which every budget is multiplied"},
	{Name: "standard_tolerance", Kind: Number, Min: 1, Max: 1e6, Search: [2]float64{1, 4}, Default: 2.0, Doc: "by which the standard tier's budget is multiplied beside"},
}

// predictiveSLO admits a request if the best replica would give it its first
// token within the budget: the wait is the queue's length times a step, then
// comes the prompt without what the router believes to be cached there. The
// critical tier is always admitted, the standard one up to its tolerance.
type predictiveSLO struct {
	reads
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
	return predictiveSLO{reads(NeedRequest | NeedQueueDepth | NeedShadow | NeedEstimate), v.number("avg_step_us"), v.number("headroom"), v.number("standard_tolerance"), v.table("budget_ms")}
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
	return upTo("best estimated TTFT in us", v.BestTTFTUS(p.stepUS), limit)
}

func (p predictiveSLO) Clone() Admitter { return p }
