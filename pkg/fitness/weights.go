package fitness

import (
	"maps"
	"slices"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// weightedAttainment is m.goodput.ratio, or that of a reference, if classes have weights: each request and
// each call that was not issued counts with the weight of its class.
func (r *Run) weightedAttainment(name string, weights map[string]float64) (ratio float64, ok bool) {
	tree, path := splitName(name)
	if path != attainmentPath || len(weights) == 0 {
		return 0, false
	}
	met, all := 0.0, 0.0
	for _, c := range r.judgedClasses {
		w, given := weights[c.Name]
		if !given {
			w = 1
		}
		number := func(of string) float64 {
			x, _ := r.value(tree, metrics.SubPath("cls", c.Name)+".goodput."+of)
			return x
		}
		met += float64(w * number("met"))
		all += float64(w * (number("offered") + number("not_issued")))
	}
	return met / all, all > 0
}

const attainmentPath = "goodput.ratio"

// checkWeights returns an error for weights that are wrong for every run.
func (f *Fitness) checkWeights() error {
	for _, class := range slices.Sorted(maps.Keys(f.Weights)) {
		w := f.Weights[class]
		if !(w >= 0) || !finite(w) {
			return f.errorAt("weights."+class, 0, 0, "must be at least 0, is %v", w)
		}
	}
	return nil
}

// checkWeightedClasses returns an error for a weight of a class that the run does not have or that has no
// targets.
func (f *Fitness) checkWeightedClasses(r *Run) error {
	for _, class := range slices.Sorted(maps.Keys(f.Weights)) {
		if err := r.checkKeys(ownTree + "." + metrics.SubPath("cls", class)); err != nil {
			return f.errorAt("weights."+class, 0, 0, "%s", err)
		}
		judged := func(c stream.SLOClass) bool { return c.Name == class && c.Targets != (stream.Targets{}) }
		if !slices.ContainsFunc(r.judgedClasses, judged) {
			return f.errorAt("weights."+class, 0, 0,
				"the class has no targets, so its weight has no effect; give it targets under slo")
		}
	}
	counts := func(c stream.SLOClass) bool {
		w, given := f.Weights[c.Name]
		return c.Targets != (stream.Targets{}) && (!given || w > 0)
	}
	if len(f.Weights) > 0 && !slices.ContainsFunc(r.judgedClasses, counts) {
		return f.errorAt("weights", 0, 0, "all classes with targets have the weight 0")
	}
	return nil
}
