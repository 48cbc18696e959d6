package calibrate

import (
	"cmp"
	"math"
	"slices"

	"blis/pkg/hardware"
	"blis/pkg/recording"
	"blis/pkg/stat"
)

// maxConflict is how many standard deviations the data and the prior may be apart.
const maxConflict = 2.5

func checkPrior(r *report, warnf warner) {
	s := &r.fit.slope
	if s.conflict <= maxConflict {
		return
	}
	warnf("beta[2] = %.4g us (data %.4g, roofline prior %.4g, %.2g standard errors apart; weight of data %.0f %%)",
		s.beta2, s.data, s.prior, s.conflict, 100*s.dataWeight)
}

// maxKindError is the mean error of a model on the steps of a kind, as a fraction, above which
// it is a warning, and maxLongError that on the longest tenth of them.
const (
	maxKindError = 0.1
	maxLongError = 0.2
)

// checkStepKinds finds kinds of steps with large errors, which errors over all steps hide.
func checkStepKinds(r *report, warnf warner) {
	if r.stepModel == nil {
		return
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
			warnf("%d steps of %s have a mean error of %+.2g %%, the longest %d of %+.2g %%: "+
				"do not use the model for them", len(own), kind, 100*all, len(longest), 100*end)
		}
	}
}

// maxError is the error of held-out data in % above which a fit is unusable.
const maxError = 20

func checkMisfit(r *report, warnf warner) {
	f := &r.fit
	if f.method == "" {
		return
	}
	base := f.Beta[0]
	if r.Host != nil {
		base -= r.Host.US
	}
	if base <= 0 && f.table == nil {
		warnf("beta[0] is 0, but each step takes time to read the weights: do not use these coefficients; " +
			"check what was recorded")
	}
	if s := r.StepScore; s != nil && s.MedianAbsError > maxError {
		warnf("%s: the median error is %.2g %%: the model does not fit", s.Data, s.MedianAbsError)
	}
	for _, s := range r.Scores {
		for _, m := range s.Metrics {
			if m.Metric == "e2e.mean" && math.Abs(m.Percent) > maxError {
				warnf("%s: the error of mean E2E is %+.3g %%: do not use the coefficients for it; "+
					"check the engine settings", s.Data, m.Percent)
			}
		}
	}
}

func checkWarmup(r *report, warnf warner) {
	for _, h := range r.holdouts {
		if h.simulated == nil {
			continue
		}
		if s := h.run.findStall(h.simulated, h.in); s.requests > 0 {
			warnf("%s; no model predicts that, and the errors include these seconds", s.text(h.name))
		}
	}
}

// checkNotHeldOut finds recordings that the evaluated coefficients were fitted to.
func checkNotHeldOut(r *report, warnf warner) {
	for _, f := range r.setup.files {
		if r.fit.method == "" && slices.ContainsFunc(r.Set.Recordings, func(of hardware.Recording) bool {
			in := func(name string) bool { return slices.Contains(of.Runs, name) }
			return of.Digest == f.Digest && (len(of.Runs) == 0 || slices.ContainsFunc(f.Names(), in))
		}) {
			warnf("%s: the coefficients were fitted to it, at least in part: its errors are not held out", f.Path)
		}
	}
}

func checkUncertain(r *report, warnf warner) {
	for _, s := range r.Scores {
		if s.StepUncertainty > 0 {
			warnf("%s: %s: use the uncertainty, not the number", s.Data, s.Why)
		}
	}
}
