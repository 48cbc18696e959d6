package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/recording"
	"blis/pkg/stat"
)

// fitSteps fits β to measured steps: a line and, where the steps are a grid of batches as
// profilers measure, a table. Fitted to half of the steps, the one with the lower error on
// the other half is taken. alphaKnown: server spans give α.
func (r *report) fitSteps(alphaKnown bool) error {
	s := r.setup
	steps, gpuOnly, err := s.usableSteps()
	if err != nil {
		return err
	}
	fit, heldOut := halves(steps)
	n, context := 0.0, 0.0
	var sequences []float64
	for _, x := range steps {
		n, context, sequences = n+float64(x.Decode), context+float64(x.Context), append(sequences, float64(x.Decode))
	}
	r.fit.load = load{sequences: max(1, n/float64(len(steps))), context: context / max(1, n)}
	r.fit.load.lo, r.fit.load.hi = middle(sequences, 40)
	r.regress(stepRegression(fit), stepRegression(heldOut), s.prior(r.fit.load),
		fmt.Sprintf("%d of the %d steps", len(heldOut), len(steps)))
	for k := alpha0; k <= alpha2; k++ {
		r.fit.source[k] = "0: unknown, steps have no requests"
	}
	if !alphaKnown {
		s.warnf("alpha[0] and alpha[1] are not identifiable from step timings: they are 0, and simulated TTFT is too " +
			"short by them")
	}
	r.fit.method = fmt.Sprintf("non-negative regression with Huber weights on relative errors of %d steps; "+
		"the other %d are held out", len(fit), len(heldOut))
	if err := r.tryTable(steps, fit, heldOut); err != nil {
		return err
	}
	if r.stepModel, err = r.fit.shape.model(r.fit.value, r.fit.table); err == nil && gpuOnly {
		r.addHost()
	}
	return err
}

// minSteps is the fewest steps that a fit takes.
const minSteps = 10

// usableSteps are the steps that can be fitted to, and whether they are of GPUs alone.
func (s *setup) usableSteps() (steps []recording.Step, gpuOnly bool, err error) {
	unknown, continued := 0, 0
	for _, x := range s.steps {
		if x.Context == recording.Unknown {
			unknown++
			x.Context = 0
		}
		if gpuOnly = gpuOnly || x.GPUOnly; x.PrefillContext > 0 {
			continued++
			continue
		}
		steps = append(steps, x)
	}
	if len(steps) < minSteps {
		return nil, false, fmt.Errorf("only %d steps are of this setup: at least %d are needed", len(steps), minSteps)
	}
	if continued > 0 {
		s.warnf("%d steps that continue a chunked prompt are ignored: the model has no coefficient for them", continued)
	}
	if unknown > 0 {
		s.warnf("%d steps do not state their context: assumed to be 0", unknown)
	}
	return steps, gpuOnly, nil
}

// stepErrors are the relative errors of a model on steps.
func stepErrors(steps []recording.Step, m latency.Model) []float64 {
	errors := make([]float64, len(steps))
	for i, x := range steps {
		batch := latency.Batch{Prefill: x.Prefill, Decode: x.Decode, Context: max(0, x.Context)}
		errors[i] = float64(m.Step(batch))/x.US - 1
	}
	return errors
}

// tryTable takes a table of the steps instead of a line if one of the fitted half has lower
// errors on the held-out half.
func (r *report) tryTable(steps, fit, heldOut []recording.Step) error {
	t := tableOf(fit)
	if t == nil {
		return nil
	}
	m, err := shape{}.model(r.fit.value, t)
	if err != nil {
		return err
	}
	score := newStepScore(r.StepScore.Data, stepErrors(heldOut, m))
	if e, line := score.MedianAbsError, r.StepScore.MedianAbsError; e < line {
		r.setup.warnf("a table of steps is used: its median error on held-out steps is %.2g %%, that of beta is "+
			"%.2g %%", e, line)
		score.Data += fmt.Sprintf(", by a table of the other %d", len(fit))
		r.StepScore, r.fit.table = score, tableOf(steps)
		r.fit.method = fmt.Sprintf("a table of all %d steps, with linear interpolation; the median error of a table "+
			"of half of them on the other half is %.2g %%", len(steps), e)
	}
	return nil
}

// tableOf makes a table of steps; nil if they are no grid.
func tableOf(steps []recording.Step) *latency.Table {
	var measured []latency.MeasuredStep
	for _, x := range steps {
		s := latency.MeasuredStep{Prefill: x.Prefill, Decode: x.Decode, Context: x.Context, US: x.US}
		measured = append(measured, s)
	}
	return latency.TableOf(measured)
}

// stepKinds are the kinds of steps by what they compute.
var stepKinds = []string{"decode", "prefill", "both"}

// kindOf is the index of a step's kind in stepKinds.
func kindOf(x recording.Step) int {
	switch {
	case x.Prefill == 0:
		return 0
	case x.Decode == 0:
		return 1
	}
	return 2
}

// halves divides steps of each kind, in order of size, alternately, whatever their order in
// the file. The smallest and the largest are in the first half: the second is interpolated.
func halves(steps []recording.Step) (fit, heldOut []recording.Step) {
	for kind := range stepKinds {
		own := slices.DeleteFunc(slices.Clone(steps), func(x recording.Step) bool { return kindOf(x) != kind })
		slices.SortStableFunc(own, func(a, b recording.Step) int {
			return cmp.Or(cmp.Compare(a.Prefill, b.Prefill), cmp.Compare(a.Decode, b.Decode),
				cmp.Compare(a.Context, b.Context), cmp.Compare(a.US, b.US))
		})
		for i, x := range own {
			if i%2 == 0 || i == len(own)-1 {
				fit = append(fit, x)
			} else {
				heldOut = append(heldOut, x)
			}
		}
	}
	return fit, heldOut
}

// stepRegression is that of sorted steps; blocks take them in turn, so that each has steps of
// all kinds and sizes.
func stepRegression(steps []recording.Step) *leastsq.Regression {
	r := &leastsq.Regression{Names: names[beta0:]}
	for i, x := range steps {
		r.Add(i%min(spanBlocks, len(steps)), x.US, 1, float64(x.Prefill), float64(x.Decode), float64(x.Context))
	}
	return r
}

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
	fit := all.WithoutLast(p[beta3])
	free, n := predictionError(all, heldOut, (*leastsq.Regression).Fit)
	fixed, _ := predictionError(all, heldOut, func(rows *leastsq.Regression) []float64 {
		return append(rows.WithoutLast(p[beta3]).Fit(), p[beta3])
	})
	// Lower by more than 2 %, and than noise.
	if free < (1-max(0.02, 1/math.Sqrt(float64(n))))*fixed {
		f.source[beta3] = fmt.Sprintf("fitted: held-out errors are %.2g %% instead of %.2g %% with physics (%.3g)",
			100*free, 100*fixed, p[beta3])
		fit = all
	}
	if f.id = fit.Identify(); len(f.id.Not) > 0 {
		for k, value := range p[beta0:] {
			if f.id.Has(names[beta0+k]) && value > 0 {
				f.source[beta0+k] = fmt.Sprintf("data and roofline prior %.4g: not identifiable from data alone", value)
			}
		}
		fit = fit.WithPrior(f.id.Not, p[beta0:])
	}
	x := fit.Fit()
	f.value[beta3], f.ci[beta3] = p[beta3], stat.Interval{Lo: p[beta3], Hi: p[beta3], Level: level}
	copy(f.value[beta0:], x)
	copy(f.ci[beta0:], fit.Intervals(x, level))
	copy(f.uncertainty[beta0:], f.ci[beta0:])
	for k, value := range x {
		if value == 0 {
			f.source[beta0+k] = negative
		}
	}
	if heldOut.Len() > 0 {
		r.StepScore = newStepScore(data, heldOut.Errors(f.value[beta0:]))
	}
}
