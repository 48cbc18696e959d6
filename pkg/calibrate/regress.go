package calibrate

import (
	"fmt"
	"math"

	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

// minHeldOut is how many held-out rows it takes to choose an estimator; with fewer, the rows
// of the fit are cross-validated.
const minHeldOut = 20

// predictionError is a robust deviation of errors on rows that were not fitted, and their
// number.
func predictionError(all, heldOut *leastsq.Regression, fit func(*leastsq.Regression) []float64) (float64, int) {
	if heldOut.Len() > minHeldOut {
		return leastsq.Scale(heldOut.Errors(fit(all))), heldOut.Len()
	}
	var errors []float64
	for k := range folds {
		if fold, rest := all.Fold(k, folds); fold.Len() > 0 && rest.Len() > 0 {
			errors = append(errors, fold.Errors(fit(rest))...)
		}
	}
	return leastsq.Scale(errors), len(errors)
}

// negative describes a coefficient at its bound.
const negative = "0: the unconstrained fit is negative"

// regress fits β to a regression over beta[0..3]. Beta[3] is physics unless another value has
// a lower prediction error. heldOut is scored as data.
func (r *report) regress(all, heldOut *leastsq.Regression, p coefficients, data string) {
	f := &r.fit
	for k := beta0; k <= beta2; k++ {
		f.source[k] = "fitted"
	}
	f.source[beta3] = physicsBeta3
	fit := all.WithoutLast(p.Beta[3])
	free, n := predictionError(all, heldOut, (*leastsq.Regression).Fit)
	fixed, _ := predictionError(all, heldOut, func(rows *leastsq.Regression) []float64 {
		return append(rows.WithoutLast(p.Beta[3]).Fit(), p.Beta[3])
	})
	// Lower by more than 2 %, and than noise.
	if free < (1-max(0.02, 1/math.Sqrt(float64(n))))*fixed {
		f.source[beta3] = fmt.Sprintf("fitted: held-out errors are %.2g %% instead of %.2g %% with physics (%.3g)",
			100*free, 100*fixed, p.Beta[3])
		fit = all
	}
	if f.id = fit.Identify(); len(f.id.Not) > 0 {
		for k, value := range p.Beta {
			if f.id.Has(names[beta0+k]) && value > 0 {
				f.source[beta0+k] = fmt.Sprintf("data and roofline prior %.4g: not identifiable from data alone", value)
			}
		}
		fit = fit.WithPrior(f.id.Not, p.Beta[:])
	}
	x := fit.Fit()
	f.Beta[3], f.ci[beta3] = p.Beta[3], stat.Interval{Lo: p.Beta[3], Hi: p.Beta[3], Level: level}
	copy(f.Beta[:], x)
	copy(f.ci[beta0:], fit.Intervals(x, level))
	for k, value := range x {
		if value == 0 {
			f.source[beta0+k] = negative
		}
	}
	if heldOut.Len() > 0 {
		r.StepScore = newStepScore(data, heldOut.Errors(f.Beta[:]))
	}
}
