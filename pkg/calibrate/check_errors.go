package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/recording"
	"blis/pkg/stat"
)

func checkPrior(r *report) []string {
	if r.fit.disagrees == "" {
		return nil
	}
	return []string{r.fit.disagrees}
}

// maxKindError is the mean error of a model on the steps of a kind, as a fraction, above which
// it is a warning, and maxLongError that on the longest tenth of them.
const (
	maxKindError = 0.1
	maxLongError = 0.2
)

// checkStepKinds finds kinds of steps with large errors, which errors over all steps hide.
func checkStepKinds(r *report) (warnings []string) {
	if r.stepModel == nil {
		return nil
	}
	for k, kind := range stepKinds {
		var own []recording.Step
		for _, x := range r.setup.steps {
			if kindOf(x) == k && x.PrefillContext == 0 {
				own = append(own, x)
			}
		}
		if len(own) < 4 {
			continue
		}
		slices.SortStableFunc(own, func(a, b recording.Step) int { return cmp.Compare(a.US, b.US) })
		errors := stepErrors(own, r.stepModel)
		longest := errors[len(errors)-max(1, len(errors)/10):]
		all, end := stat.Mean(errors), stat.Mean(longest)
		if math.Abs(all) > maxKindError || math.Abs(end) > maxLongError {
			warnings = append(warnings, fmt.Sprintf("%d steps of %s have a mean error of %+.2g %%, the longest %d of %+.2g %%: "+
				"do not use the model for them", len(own), kind, 100*all, len(longest), 100*end))
		}
	}
	return warnings
}

// maxInconsistency is by how many points held-out errors of mean E2E on both sides of 0 may
// differ between recordings that are fitted together.
const maxInconsistency = 10

// checkInconsistent finds recordings of which one is simulated too slow and another too fast:
// no coefficients fit both.
func checkInconsistent(r *report) []string {
	lo, hi := math.Inf(1), math.Inf(-1)
	var texts []string
	for _, f := range r.setup.files {
		measured, simulated := 0.0, 0.0
		for _, h := range r.holdouts {
			for i, in := range h.in {
				if !in || h.simulated == nil || h.run.file != f {
					continue
				}
				if m, s := h.run.measured[i].e2e, h.simulated[i].e2e; !math.IsNaN(m) && !math.IsNaN(s) {
					measured, simulated = measured+m, simulated+s
				}
			}
		}
		if measured > 0 {
			percent := 100 * (simulated/measured - 1)
			lo, hi = min(lo, percent), max(hi, percent)
			texts = append(texts, fmt.Sprintf("%s by %+.1f %%", filepath.Base(f.Path), percent))
		}
	}
	if r.fit.method == "" || !(lo < 0 && hi > 0 && hi-lo > maxInconsistency) {
		return nil
	}
	return []string{fmt.Sprintf("recordings disagree: held-out mean E2E is off for %s; check that they are of one server with "+
		"the same settings", strings.Join(texts, ", "))}
}

// maxError is the error of held-out data in % above which a fit is unusable.
const maxError = 20

func checkMisfit(r *report) (warnings []string) {
	f := &r.fit
	if f.method == "" {
		return nil
	}
	base := f.Beta[0]
	if r.Host != nil {
		base -= r.Host.US
	}
	if base <= 0 && f.table == nil {
		warnings = append(warnings, "beta[0] is 0, but each step takes time to read the weights: do not use these "+
			"coefficients; check what was recorded")
	}
	if s := r.StepScore; s != nil && s.MedianAbsError > maxError {
		warnings = append(warnings, fmt.Sprintf("%s: the median error is %.2g %%: the model does not fit", s.Data, s.MedianAbsError))
	}
	for _, s := range r.Scores {
		for _, m := range s.Metrics {
			if m.Metric == "e2e.mean" && math.Abs(m.Percent) > maxError {
				warnings = append(warnings, fmt.Sprintf("%s: the error of mean E2E is %+.3g %%: do not use the coefficients for it; "+
					"check the engine settings", s.Data, m.Percent))
			}
		}
	}
	return warnings
}

func checkWarmup(r *report) (warnings []string) {
	for _, h := range r.holdouts {
		if h.simulated == nil {
			continue
		}
		if s := h.run.findStall(h.simulated, h.in); s.requests > 0 {
			warnings = append(warnings, s.text(h.name)+"; no model predicts that, and the errors include these seconds")
		}
	}
	return warnings
}

func checkNotHeldOut(r *report) (warnings []string) {
	for _, f := range r.setup.files {
		if r.fit.method == "" && fittedTo(r.Set, f) {
			warnings = append(warnings, fmt.Sprintf("%s: the coefficients were fitted to it, at least in part: "+
				"its errors do not measure accuracy", f.Path))
		}
	}
	return warnings
}

func checkUncertain(r *report) (warnings []string) {
	for _, s := range r.Scores {
		if s.StepUncertainty > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s: use the uncertainty, not the number", s.Data, s.Why))
		}
	}
	return warnings
}
