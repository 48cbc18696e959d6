package calibrate

import (
	"context"
	"math"
	"slices"

	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

// slopePriorError is the relative standard deviation of a roofline's time per sequence.
const slopePriorError = 0.2

// slopeData is what the data say of β2, its standard error, the deviation of step times from
// a line as a fraction of a step, and the time of a step at the mean batch in µs.
type slopeData struct{ beta2, err, nonlinearity, step float64 }

// slope is the estimate of β2, the weight of the data in it, and the standard error that
// nonlinear step times leave.
type slope struct{ beta2, dataWeight, nonlinearity float64 }

// estimateSlope weights the data's β2 and the prior by their variances. What looks like a
// slope over batches of similar sizes may be one kernel replacing another, and not continue
// beyond. Where the data contradict the prior, its variance is the likeliest one, so that
// precise data win (empirical Bayes).
func estimateSlope(p coefficients, d slopeData, l load) slope {
	// As of a line through two points, one standard deviation to either side.
	nonlinearity := d.step * d.nonlinearity / math.Sqrt2 / max(l.sd, 1e-9)
	data := d.err*d.err + nonlinearity*nonlinearity
	physics := slopePriorError * (p[beta2] + p[beta3]*l.context)
	diff := d.beta2 - p[beta2]
	variance := max(physics*physics, diff*diff-data)
	weight := variance / (variance + data)
	return slope{p[beta2] + weight*diff, weight, nonlinearity * math.Sqrt(weight)}
}

// weightSlope fixes beta[2] at its estimate and fits the rest again.
func (f *simFit) weightSlope(ctx context.Context) error {
	f.dataOnly = f.solution
	x := slices.Clone(f.solution.X)
	nonlinearity, err := f.nonlinearity(ctx)
	if err != nil {
		return err
	}
	influences, _ := f.influences(f.problem, f.dataOnly)
	stdErr := leastsq.StandardError(influences, atBeta2)
	f.slope = estimateSlope(f.prior, slopeData{beta2: x[atBeta2], err: stdErr, nonlinearity: nonlinearity,
		step: x[atStep] + f.prior[beta3]*f.load.sequences*f.load.context}, f.load)
	q := &f.problem.Parameters[atBeta2]
	q.Prior, q.PriorSD = f.slope.beta2, max(0.01, f.slope.beta2/1000)
	if math.Abs(f.slope.beta2-x[atBeta2]) <= max(q.Step, 2*stdErr) {
		f.solution = f.problem.Relinearize(f.dataOnly) // the response surface extends that far
	} else {
		x[atBeta2] = f.slope.beta2
		if f.solution, err = f.problem.Polish(ctx, x, 3); err != nil {
			return err
		}
	}
	f.value = f.coefficientsAt(f.solution.X)
	return nil
}

// nonlinearity is how far the TPOT of single requests deviates from a simulation with the
// data's coefficients, as a fraction. Part is noise and part kernels tuned for some batch
// sizes; nothing separates them, so it counts for both.
func (f *simFit) nonlinearity(ctx context.Context) (float64, error) {
	all, _, err := f.simulate(ctx, f.coefficientsAt(f.dataOnly.X))
	if err != nil {
		return 0, err
	}
	var errors []float64
	for k, r := range f.replays {
		for i, t := range r.measured {
			if n := r.requests[i].OutputTokens; r.fitted[i] {
				errors = append(errors, math.Log(all[k][i].tpot(n)/t.tpot(n)))
			}
		}
	}
	return leastsq.Scale(errors), nil
}

// A short run is divided into this many segments for the jackknife, a long one into segments
// of this many blocks: where requests queue, neighboring blocks have similar errors.
const (
	runSegments   = 5
	segmentBlocks = 6
)

// segments number the jackknife's segment of each residual.
func (f *simFit) segments() (of []int, n int) {
	for _, r := range f.replays {
		blocks := len(r.blocks)
		own := min(blocks, max(runSegments, blocks/segmentBlocks))
		for i := range features * blocks {
			of = append(of, n+i/features*own/blocks)
		}
		n += own
	}
	return of, n
}

// influences are those of segments on a solution of the data alone, followed by those of the
// simulation's noise, and the number of segments.
func (f *simFit) influences(p *leastsq.Problem, s *leastsq.Solution) (all [][]float64, segments int) {
	free := *p
	free.Parameters = slices.Clone(p.Parameters)
	free.Parameters[atBeta2].PriorSD = 0
	group, n := f.segments()
	return append(free.Jackknife(s, group, n), s.MCError...), n
}

// intervals are confidence intervals of all coefficients by the data alone, about the data's
// solution, and their uncertainty, about the solution: with the prior, and with how far step
// times deviate from a line.
func (f *simFit) intervals() (data, uncertainty intervals) {
	influences, n := f.influences(f.problem, f.dataOnly)
	t := leastsq.TQuantile(float64(n-1), level)
	along := f.problem.Conditional(f.dataOnly, atBeta2)
	weighted := make([][]float64, len(influences))
	for i, m := range influences {
		for k, v := range m {
			weighted[i] = append(weighted[i], v+along[k]*(f.slope.dataWeight-1)*m[atBeta2])
		}
	}
	line := slices.Clone(along)
	for k := range line {
		line[k] *= f.slope.nonlinearity
	}
	dataOnly := f.coefficientsAt(f.dataOnly.X)
	own, wide, nonlinear := f.variance(influences...), f.variance(weighted...), f.variance(line)
	for k := range names {
		data[k] = positiveInterval(dataOnly[k], t*math.Sqrt(own[k]))
		uncertainty[k] = positiveInterval(f.value[k], math.Sqrt(t*t*wide[k]+zLevel*zLevel*nonlinear[k]))
	}
	return data, uncertainty
}

// positiveInterval is an interval of a coefficient that cannot be negative.
func positiveInterval(middle, half float64) stat.Interval {
	return stat.Interval{Lo: max(0, middle-half), Hi: middle + half, Level: level}
}

// variance is the sums of squares of the changes of coefficients where parameters change.
func (f *simFit) variance(parameters ...[]float64) (sum coefficients) {
	for _, x := range parameters {
		for k, d := range f.changes(x) {
			sum[k] += d * d
		}
	}
	return sum
}
