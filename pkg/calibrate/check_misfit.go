package calibrate

import "math"

// maxError is the error of held-out data in % above which a fit is unusable.
const maxError = 20

func checkMisfit(r *report) {
	f := &r.fit
	if f.method == "" {
		return
	}
	base := f.value[beta0]
	if r.Host != nil {
		base -= r.Host.US
	}
	if base <= 0 && f.table == nil {
		r.setup.warnf("beta[0] is 0, but each step takes time to read the weights: do not use these coefficients; " +
			"check what was recorded")
	}
	if s := r.StepScore; s != nil && s.MedianAbsError > maxError {
		r.setup.warnf("%s: the median error is %.2g %%: the model does not fit", s.Data, s.MedianAbsError)
	}
	for _, s := range r.Scores {
		for _, m := range s.Metrics {
			if m.Metric == "e2e.mean" && math.Abs(m.Percent) > maxError {
				r.setup.warnf("%s: the error of mean E2E is %+.3g %%: do not use the coefficients for it; "+
					"check the engine settings", s.Data, m.Percent)
			}
		}
	}
}
