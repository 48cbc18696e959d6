package fitness

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/registry"
	"blis/pkg/stat"
)

// Aggregates combine the scores of scenarios, each in [0, 1), into one. share is the share of the
// scenarios that cvar averages.
var Aggregates = registry.Table[func(scores []float64, share float64) float64]{
	{Name: "mean", Doc: "their mean", Value: func(x []float64, _ float64) float64 { return stat.Mean(x) }},
	{Name: "geo", Doc: "their geometric mean", Value: func(x []float64, _ float64) float64 {
		return wgeo(slices.Repeat([]float64{1}, len(x)), x)
	}},
	{Name: "worst", Doc: "the minimum", Value: func(x []float64, _ float64) float64 { return slices.Min(x) }},
	{Name: "cvar", Doc: "the mean of the worst share (cvar_share, 0.25)", Value: cvar},
}

// cvar is the mean of the worst share of x, at least of the worst one. Where the share is not an
// integer number of scenarios, the last one counts in part.
func cvar(x []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	left := max(share*float64(len(x)), 1)
	sum, all := 0.0, left
	for _, v := range sorted {
		take := min(left, 1)
		sum += float64(take * v)
		left -= take
	}
	return sum / all
}

// Scenario is the fitness of one run, and the name of the run.
type Scenario struct {
	Name string
	*Result
}

// HeldOut reports whether a scenario is held out: it is scored and does not count.
func (f *Fitness) HeldOut(scenario string) bool { return slices.Contains(f.Holdout, scenario) }

// CheckHoldout returns an error if a held-out scenario does not exist, or if all are held out.
func (f *Fitness) CheckHoldout(scenarios []string) error {
	for i, h := range f.Holdout {
		if !slices.Contains(scenarios, h) {
			return f.errorAt(fmt.Sprintf("holdout[%d]", i), 0, 0, "%s", registry.Unknown("scenario", h, scenarios))
		}
	}
	if !slices.ContainsFunc(scenarios, func(s string) bool { return !f.HeldOut(s) }) {
		return f.errorAt("holdout", 0, 0, "all scenarios are held out; at least one must count")
	}
	return nil
}

// Combine combines the results of several scenarios, without those that are held out. There must be
// one that counts.
//
// A gate passes if it passes in all scenarios; its distance is the mean, its detail that of the worst
// scenario. Objectives, features and the values of terms are means; one that is missing in a scenario
// is missing.
func (f *Fitness) Combine(all []Scenario) *Result {
	counted := slices.DeleteFunc(slices.Clone(all), func(s Scenario) bool { return f.HeldOut(s.Name) })
	if len(counted) == 1 {
		return counted[0].Result
	}
	combine, _ := Aggregates.Get("aggregate", f.Aggregate)
	pick := func(value func(*Result) float64) []float64 {
		var x []float64
		for _, s := range counted {
			x = append(x, value(s.Result))
		}
		return x
	}
	aggregate := func(value func(*Result) float64) float64 { return clampValue(combine(pick(value), f.CVaRShare)) }
	first := counted[0].Result
	r := &Result{Value: aggregate(func(r *Result) float64 { return r.Value }), Gates: []Gate{}, Terms: []Term{},
		Warnings: []string{}}
	for i := range first.Gates {
		r.Gates = append(r.Gates, combineGates(counted, i))
	}
	for i, t := range first.Terms {
		t.Value = stat.Mean(pick(func(r *Result) float64 { return r.Terms[i].Value }))
		t.idealValue = max(aggregate(func(r *Result) float64 { return r.Terms[i].idealValue }), r.Value)
		t.Lost = passedScore(t.idealValue) - passedScore(r.Value)
		r.Terms = append(r.Terms, t)
	}
	r.Objectives = combineValues(counted, func(r *Result) []Value { return r.Objectives })
	r.Features = combineValues(counted, func(r *Result) []Value { return r.Features })
	for _, s := range counted {
		for _, w := range s.Warnings {
			r.Warnings = append(r.Warnings, s.Name+": "+w)
		}
	}
	r.Score = gatedScore(r.Gates, r.Value)
	return r
}

func combineGates(all []Scenario, i int) Gate {
	g := all[0].Gates[i]
	g.Passed, g.Distance = true, 0
	worst := -1.0
	for _, s := range all {
		x := s.Gates[i]
		g.Passed = g.Passed && x.Passed
		g.Distance += x.Distance / float64(len(all))
		if !x.Passed && x.Distance > worst {
			worst, g.Detail = x.Distance, s.Name+": "+x.Detail
		}
	}
	return g
}

func combineValues(all []Scenario, of func(*Result) []Value) []Value {
	combined := []Value{}
	for i, v := range of(all[0].Result) {
		sum := 0.0
		for _, s := range all {
			if x := of(s.Result)[i].Value; x != nil {
				sum += *x / float64(len(all))
			} else {
				sum = math.NaN()
			}
		}
		if v.Value = &sum; !finite(sum) {
			v.Value = nil
		}
		combined = append(combined, v)
	}
	return combined
}
