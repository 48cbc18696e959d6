package calibrate

import (
	"cmp"
	"math"
	"slices"

	"blis/pkg/recording"
	"blis/pkg/stat"
)

// maxKindError is the mean error of a model on the steps of a kind, as a fraction, above which
// it is a warning, and maxLongError that on the longest tenth of them.
const (
	maxKindError = 0.1
	maxLongError = 0.2
)

// checkStepKinds finds kinds of steps with large errors, which errors over all steps hide.
func checkStepKinds(r *report) {
	if r.stepModel == nil {
		return
	}
	for k, kind := range stepKinds {
		own := slices.DeleteFunc(slices.Clone(r.setup.steps), func(x recording.Step) bool {
			return kindOf(x) != k || x.PrefillContext > 0
		})
		if len(own) < 4 {
			continue
		}
		slices.SortStableFunc(own, func(a, b recording.Step) int { return cmp.Compare(a.US, b.US) })
		errors := stepErrors(own, r.stepModel)
		longest := errors[len(errors)-max(1, len(errors)/10):]
		all, end := stat.Mean(errors), stat.Mean(longest)
		if math.Abs(all) > maxKindError || math.Abs(end) > maxLongError {
			r.setup.warnf("%d steps of %s have a mean error of %+.2g %%, the longest %d of %+.2g %%: "+
				"do not use the model for them", len(own), kind, 100*all, len(longest), 100*end)
		}
	}
}
