package calibrate

import (
	"context"
	"math"
	"slices"
)

// slopeSpread is how wrong a roofline's time of a further sequence may be, as a part.
const slopeSpread = 0.2

// slopeData are what the data say of β2, the standard deviation of that by their
// scatter, how far step times lie off a line as a part of a step, and a step at the mean
// batch, in µs.
type slopeData struct{ told, scatter, uneven, step float64 }

// slope is what is believed of β2: how much of it is the data's, the rest is the
// prior's; what step times that lie off a line leave open of it, as a standard deviation;
// and by how many standard deviations of both the data contradict the prior.
type slope struct{ beta2, trust, uneven, conflict float64 }

// slope weighs what the data say of β2 and the prior by their variances. What looks like
// a slope over batches of like sizes may be one kernel giving way to the next, and does
// not go on beyond. Where the data contradict the prior by more than both are in doubt,
// the prior is as wrong as that shows it to be: of all its variances the one under which
// that is likeliest, so that data that tell it well win (empirical Bayes).
func (p *prior) slope(d slopeData, l load) slope {
	// As of a line through two points, one standard deviation to either side.
	uneven := d.step * d.uneven / math.Sqrt2 / max(l.scatter, 1e-9)
	data := d.scatter*d.scatter + uneven*uneven
	physics := slopeSpread * (p.Beta[2] + p.Beta[3]*l.context)
	off := d.told - p.Beta[2]
	variance := max(physics*physics, off*off-data)
	trust := variance / (variance + data)
	return slope{p.Beta[2] + trust*off, trust, uneven * math.Sqrt(trust), math.Abs(off) / math.Sqrt(physics*physics+data)}
}

// weighSlope holds beta[2] to what is believed of it, and fits the rest again.
func (f *clientFit) weighSlope(ctx context.Context) error {
	f.told = f.solution
	uneven, err := f.unevenness(ctx)
	if err != nil {
		return err
	}
	scatter := f.errorOf(f.told, atBeta2)
	f.slope = f.prior.slope(slopeData{
		told: f.told.x[atBeta2], scatter: scatter, uneven: uneven,
		step: f.told.x[atLevel] + f.prior.Beta[3]*f.load.sequences*f.load.context,
	}, f.load)
	x := slices.Clone(f.told.x)
	x[atBeta2] = f.slope.beta2
	q := &f.problem.parameters[atBeta2]
	q.prior, q.spread = f.slope.beta2, max(0.01, f.slope.beta2/1000)
	if math.Abs(f.slope.beta2-f.told.x[atBeta2]) <= max(q.step, 2*scatter) {
		// Planes reach so far: intervals are drawn on them, too.
		f.solution = f.problem.lowest(&flat{f.told.x, f.told.r, f.told.jacobian}, f.told.spread)
	} else if f.solution, err = f.settle(ctx, &solution{x: x}, 3); err != nil {
		return err
	}
	f.Coefficients = f.coefficients(f.solution.x)
	return nil
}

// unevenness is how far the token times of single requests are off what they are by
// the data's coefficients, as a part of them. What of it is chance and what kernels, which
// are made for some sizes of batches, nothing tells: it counts for both.
func (f *clientFit) unevenness(ctx context.Context) (float64, error) {
	c := f.coefficients(f.told.x)
	m, err := c.model()
	if err != nil {
		return 0, err
	}
	var off []float64
	for _, r := range f.runs {
		simulated, err := r.play(ctx, m)
		if err != nil {
			return 0, err
		}
		for i, s := range r.measured {
			if n := r.requests[i].OutputTokens; r.used[i] {
				off = append(off, math.Log(simulated[i].tpot(n)/s.tpot(n)))
			}
		}
	}
	return deviation(off), nil
}
