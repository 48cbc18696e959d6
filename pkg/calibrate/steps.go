package calibrate

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/recording"
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
	r.fit.load.lo, r.fit.load.hi = middle95(sequences)
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
	if r.stepModel, err = r.fit.model(r.fit.table); err == nil && gpuOnly {
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

// batchOf is the batch of a step.
func batchOf(x recording.Step) latency.Batch {
	return latency.Batch{Prefill: x.Prefill, Decode: x.Decode, Context: max(0, x.Context)}
}

// stepErrors are the relative errors of a model on steps.
func stepErrors(steps []recording.Step, m latency.Model) []float64 {
	errors := make([]float64, len(steps))
	for i, x := range steps {
		errors[i] = float64(m.Step(batchOf(x)))/x.US - 1
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
	m, err := r.fit.model(t)
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
	sorted := slices.Clone(steps)
	slices.SortStableFunc(sorted, func(a, b recording.Step) int {
		return cmp.Or(cmp.Compare(kindOf(a), kindOf(b)), cmp.Compare(a.Prefill, b.Prefill),
			cmp.Compare(a.Decode, b.Decode), cmp.Compare(a.Context, b.Context), cmp.Compare(a.US, b.US))
	})
	for i, n := 0, 0; i < len(sorted); i, n = i+1, n+1 {
		last := i+1 == len(sorted) || kindOf(sorted[i+1]) != kindOf(sorted[i])
		if n%2 == 0 || last {
			fit = append(fit, sorted[i])
		} else {
			heldOut = append(heldOut, sorted[i])
		}
		if last {
			n = -1
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
