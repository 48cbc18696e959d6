package calibrate

import (
	"fmt"
	"math"
	"slices"
)

// way is a way to fit β to a regression over beta[0..3].
type way func(*regression) []float64

// isPhysics fits with beta[3] as given, isFree fits it, too.
func isPhysics(beta3 float64) way {
	return func(r *regression) []float64 { return append(r.without(3, beta3).fit(), beta3) }
}

func isFree(r *regression) []float64 { return r.fit() }

// leastHeld is how many rows must be held back for them to choose between two ways.
const leastHeld = 20

// ownFolds is in how many stretches the rows of a fit are left out one by one, where too
// few are held back.
const ownFolds = 5

// better reports whether a robust deviation of the errors of n rows is below another by
// more than 2 %, and than chance makes them differ.
func better(a, b float64, n int) bool {
	return a < (1-max(0.02, 1/math.Sqrt(float64(n))))*b
}

// foretold is a robust deviation of the errors of a way on rows that it did not see, and
// how many these are: those held back or, if they are few, each fold of the fit's own by a
// fit to the rest.
func (w way) foretold(all, held *regression) (float64, int) {
	if len(held.rows) > leastHeld {
		return deviation(held.errors(w(all))), len(held.rows)
	}
	last := slices.Max(all.blocks)
	var off []float64
	for k := range ownFolds {
		in := func(block int) bool { return block*ownFolds/(last+1) == k }
		out, rest := all.where(in), all.where(func(block int) bool { return !in(block) })
		if len(out.rows) > 0 && len(rest.rows) > 0 {
			off = append(off, out.errors(w(rest))...)
		}
	}
	return deviation(off), len(off)
}

// regress fits β to a regression over beta[0..3]. Beta[3] is what physics says of it,
// unless another foretells better what the fit has not seen. What is held back has a name,
// by which its score is told.
func (r *Report) regress(all, held *regression, p prior, name string) {
	f := &r.fit
	for k := beta0; k <= beta2; k++ {
		f.from[k] = "fitted"
	}
	f.from[beta3] = "physics: the bytes of a token's keys and values on one GPU over its memory's bandwidth"
	won := all.without(3, p.Beta[3])
	a, n := way(isFree).foretold(all, held)
	if b, _ := isPhysics(p.Beta[3]).foretold(all, held); better(a, b, n) {
		f.from[beta3] = fmt.Sprintf("fitted: it foretells what a fit did not see better than physics does (%.3g), with errors of %.2g %% instead of %.2g %%", p.Beta[3], 100*a, 100*b)
		won = all
	}
	if f.id = identify(won.names, won.normal()); len(f.id.Confounded) > 0 {
		won = r.fallBack(won, p)
	}
	x := won.fit()
	f.Beta[3], f.intervals[beta3] = p.Beta[3], Interval{p.Beta[3], p.Beta[3]}
	copy(f.Beta[:], x)
	copy(f.intervals[beta0:], won.intervals(x, r.setup.options.Seed))
	for k, value := range x {
		if value == 0 {
			f.from[beta0+k] = "0: fitted, it would be negative"
		}
	}
	if len(held.rows) > 0 {
		r.StepScore = stepScore(name, held.errors(f.Beta[:]))
	}
}

// fallBack is the regression that won with what the data cannot tell apart held to the
// prior.
func (r *Report) fallBack(won *regression, p prior) *regression {
	f := &r.fit
	for k, value := range p.Beta {
		if f.id.has(names[beta0+k]) && value > 0 {
			f.from[beta0+k] = fmt.Sprintf("the data and a roofline's %.4g together: the data alone cannot tell it from the others", value)
		}
	}
	return won.holding(f.id.Confounded, p)
}

// worstMisfit is what half of the steps or phases held back, or the mean E2E of requests, may
// be off by without a warning, in %.
const worstMisfit = 20

// warnMisfit warns of coefficients that are no good: steps that take no time of
// their own, and large errors on what was held back.
func (r *Report) warnMisfit() {
	f := &r.fit
	base := f.Beta[0]
	if r.Host != nil {
		base -= r.Host.US
	}
	if base <= 0 && f.table == nil {
		r.setup.warnf("beta[0] is 0, though no step takes less than reading the weights: other coefficients have its time, or the recording is not of what it is taken for; do not use these")
	}
	if s := r.StepScore; s != nil && s.Percent > worstMisfit {
		r.setup.warnf("%s: half of them are off by more than %.2g %%: the model does not fit", s.Data, s.Percent)
	}
	for _, s := range r.Scores {
		for _, m := range s.Metrics {
			if m.Metric == "e2e.mean" && math.Abs(m.Percent) > worstMisfit {
				r.setup.warnf("%s: the mean E2E is simulated %+.3g %% off: the coefficients are no good for it, or it was not played as it was", s.Data, m.Percent)
			}
		}
	}
}

// holding is the regression with more rows, that hold coefficients to a prior: each counts
// as measured by it, with the weight of a tenth of the rows' root. Where the data do
// tell, that is nothing, and little where they contradict it: errors are weighed robustly.
func (r *regression) holding(confounded []string, p prior) *regression {
	more := *r
	more.rows, more.times, more.scales, more.blocks = slices.Clone(r.rows), slices.Clone(r.times), slices.Clone(r.scales), slices.Clone(r.blocks)
	weight := math.Sqrt(float64(len(r.rows))) / 10
	for k, name := range r.names {
		if value := p.Beta[k]; slices.Contains(confounded, name) && value > 0 {
			row := make([]float64, len(r.names))
			row[k] = weight
			more.addIn(value, ofPrior, weight*value, row...)
		}
	}
	return &more
}

// without is the regression with the coefficient of a column given.
func (r *regression) without(column int, value float64) *regression {
	out := &regression{blocks: r.blocks, scales: r.scales}
	for k, n := range r.names {
		if k != column {
			out.names = append(out.names, n)
		}
	}
	for i, row := range r.rows {
		var rest []float64
		for k, v := range row {
			if k != column {
				rest = append(rest, v)
			}
		}
		out.rows = append(out.rows, rest)
		out.times = append(out.times, r.times[i]-value*row[column])
	}
	return out
}

// where is the regression of the rows of some blocks.
func (r *regression) where(in func(block int) bool) *regression {
	out := &regression{names: r.names}
	for i, row := range r.rows {
		if in(r.blocks[i]) {
			out.addIn(r.scales[i], r.blocks[i], r.times[i], row...)
		}
	}
	return out
}
