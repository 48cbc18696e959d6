package fitness

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/registry"
)

// Aggregates say how the scores of scenarios, each in [0, 1), become one. share is
// the share of them that cvar looks at.
var Aggregates = registry.Table[func(scores []float64, share float64) float64]{
	{Name: "mean", Doc: "their mean", Value: func(x []float64, _ float64) float64 { return mean(x) }},
	{Name: "geo", Doc: "their geometric mean", Value: func(x []float64, _ float64) float64 {
		return wgeo(slices.Repeat([]float64{1}, len(x)), x)
	}},
	{Name: "worst", Doc: "the least of them", Value: func(x []float64, _ float64) float64 { return worst(x) }},
	{Name: "cvar", Doc: "the mean of the worst share (cvar_share, 0.25)", Value: cvar},
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// cvar is the mean of the worst share of x, of which one counts in part where the
// share is no whole number of them; at least the worst one counts.
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

// Scenario is the fitness of one run, and what the run is called.
type Scenario struct {
	Name string
	*Result
}

// HeldOut reports whether a scenario is scored without counting.
func (f *Fitness) HeldOut(scenario string) bool { return slices.Contains(f.Holdout, scenario) }

// CheckHoldout says which scenario is held out that there is not, or that none is
// left.
func (f *Fitness) CheckHoldout(scenarios []string) error {
	for i, h := range f.Holdout {
		if !slices.Contains(scenarios, h) {
			return f.fault(fmt.Sprintf("holdout[%d]", i), 0, 0, "%s", registry.Unknown("scenario", h, scenarios))
		}
	}
	if !slices.ContainsFunc(scenarios, func(s string) bool { return !f.HeldOut(s) }) {
		return f.fault("holdout", 0, 0, "no scenario is left that counts")
	}
	return nil
}

// Combine makes one result of those of several scenarios, of which those that are
// held out count for nothing. There must be one that counts.
//
// A gate passes where it does in all scenarios; its distance is their mean, its
// detail that of the worst. Objectives and features are means, absent where one
// is; so are the values of terms.
func (f *Fitness) Combine(all []Scenario) *Result {
	counted := slices.DeleteFunc(slices.Clone(all), func(s Scenario) bool { return f.HeldOut(s.Name) })
	if len(counted) == 1 {
		return counted[0].Result
	}
	of, _ := Aggregates.Get("aggregate", f.Aggregate)
	pick := func(value func(*Result) float64) []float64 {
		var x []float64
		for _, s := range counted {
			x = append(x, value(s.Result))
		}
		return x
	}
	aggregate := func(value func(*Result) float64) float64 { return bounded(of(pick(value), f.CVaRShare)) }
	first := counted[0].Result
	r := &Result{Value: aggregate(func(r *Result) float64 { return r.Value }), Gates: []Gate{}, Terms: []Term{}, Warnings: []string{}}
	for i := range first.Gates {
		r.Gates = append(r.Gates, combineGates(counted, i))
	}
	for i, t := range first.Terms {
		t.Value = mean(pick(func(r *Result) float64 { return r.Terms[i].Value }))
		t.ideally = max(aggregate(func(r *Result) float64 { return r.Terms[i].ideally }), r.Value)
		t.Lost = final(t.ideally) - final(r.Value)
		r.Terms = append(r.Terms, t)
	}
	r.Objectives = combineValues(counted, func(r *Result) []Value { return r.Objectives })
	r.Features = combineValues(counted, func(r *Result) []Value { return r.Features })
	for _, s := range counted {
		for _, w := range s.Warnings {
			r.Warnings = append(r.Warnings, s.Name+": "+w)
		}
	}
	r.Score = settle(r.Gates, r.Value)
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
		if how := x.Distance; !x.Passed && how > worst {
			worst, g.Detail = how, s.Name+": "+x.Detail
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
