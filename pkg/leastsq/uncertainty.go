package leastsq

import (
	"context"
	"math"
	"slices"

	"blis/pkg/stat"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Jackknife is how the parameters of a solution change without each of n groups of
// residuals, on the solution's response surface and reweighted, so scaled that the sum of
// squares is a variance. Influences go beyond bounds: one at a bound would be cut short.
//
// A jackknife with Student's distribution is reliable for few groups, where bootstrap
// samples of residuals are not (MacKinnon, Nielsen and Webb, Cluster-robust inference,
// Journal of Econometrics 232, 2023).
func (p *Problem) Jackknife(s *Solution, group []int, n int) [][]float64 {
	q := *p
	q.Parameters = slices.Clone(p.Parameters)
	for k := range q.Parameters {
		q.Parameters[k].Min, q.Parameters[k].Max = math.Inf(-1), math.Inf(1)
	}
	return jackknife(q.Relinearize(s).X, n, func(left int) []float64 {
		q.Weight = without(p.Weight, group, left)
		return q.Relinearize(s).X
	})
}

// jackknife is how estimates change without each of n groups, scaled.
func jackknife(all []float64, n int, estimate func(left int) []float64) (influences [][]float64) {
	for left := range n {
		influences = append(influences, scaledChange(estimate(left), all, math.Sqrt(float64(n-1)/float64(n))))
	}
	return influences
}

// scaledChange is x less another estimate, times a factor.
func scaledChange(x, other []float64, factor float64) []float64 {
	change := floats.SubTo(make([]float64, len(x)), x, other)
	floats.Scale(factor, change)
	return change
}

// without is weights with those of one group at 0.
func without(weights []float64, group []int, left int) []float64 {
	out := slices.Clone(weights)
	for i, g := range group {
		if g == left {
			out[i] = 0
		}
	}
	return out
}

// Rescale sets the scales of a solution's residuals.
func (p *Problem) Rescale(s *Solution, scale []float64) {
	s.Scale = scale
	p.setWeights(s)
}

// CrossValidate is the loss of all folds of residuals, each predicted by one step of Gauss
// and Newton on the others.
func (p *Problem) CrossValidate(s *Solution, fold []int, folds int) float64 {
	predicted := make([]float64, len(s.r))
	for k := range folds {
		others := *s
		others.weights = without(s.weights, fold, k)
		r := s.at(p.GaussNewton(&others))
		for i := range r {
			if fold[i] == k {
				predicted[i] = r[i]
			}
		}
	}
	return p.huberLoss(s, predicted)
}

// Extend is the problem and its solution with one more parameter, at 0.
func (p *Problem) Extend(ctx context.Context, s *Solution, q Parameter) (*Problem, *Solution, error) {
	more, at := *p, *s
	more.Parameters = append(slices.Clone(p.Parameters), q)
	at.X, at.box = append(slices.Clone(s.X), 0), nil
	column, err := more.derive(ctx, at.X, len(s.X))
	if err != nil {
		return nil, nil, err
	}
	at.jacobian = new(mat.Dense)
	at.jacobian.Augment(s.jacobian, column)
	return &more, &at, nil
}

// GaussNewton is where one step of Gauss and Newton leads from a solution.
func (p *Problem) GaussNewton(s *Solution) []float64 {
	h, g := p.normal(s, true)
	return p.move(s.X, h, g, 0)
}

// Conditional is how the parameters of a solution move where one of them is moved by 1 and
// the others follow the data.
func (p *Problem) Conditional(s *Solution, fixed int) []float64 {
	h, _ := p.normal(s, true)
	out := make([]float64, len(s.X))
	out[fixed] = 1
	var covariance mat.Dense
	if covariance.Inverse(h) != nil {
		return out // the others are not identifiable: they stay
	}
	for k := range out {
		out[k] = covariance.At(k, fixed) / covariance.At(fixed, fixed)
	}
	return out
}

// Identify reports what the data identify at a solution, of coefficients c that give the
// parameters T·c. T is square.
func (p *Problem) Identify(s *Solution, names []string, t [][]float64) Identifiability {
	at := *s
	at.jacobian = new(mat.Dense)
	at.jacobian.Mul(s.jacobian, mat.NewDense(len(t), len(t), slices.Concat(t...)))
	h, _ := p.normal(&at, false)
	return identify(names, h)
}

// huberK is where Huber's function turns from a square to a line, in standard deviations:
// 95 % as efficient as squares where errors are normal.
const huberK = 1.345

// madToSigma is the standard deviation of a normal distribution over the median of its
// absolute values.
const madToSigma = 1.4826

// Scale is a robust standard deviation about zero: 1.4826 times MedianAbs.
func Scale(errors []float64) float64 { return madToSigma * MedianAbs(errors) }

// MedianAbs is the median of the absolute values; 0 of none. NaNs are left out.
func MedianAbs(errors []float64) float64 {
	size := make([]float64, 0, len(errors))
	for _, e := range errors {
		if !math.IsNaN(e) {
			size = append(size, math.Abs(e))
		}
	}
	if len(size) == 0 {
		return 0
	}
	slices.Sort(size)
	return size[len(size)/2]
}

// TQuantile is the half-width of an interval of the level in standard errors, estimated
// with the given degrees of freedom; infinite degrees are a normal distribution's.
func TQuantile(degrees, level float64) float64 {
	if math.IsInf(degrees, 1) {
		return distuv.UnitNormal.Quantile((1 + level) / 2)
	}
	return distuv.StudentsT{Sigma: 1, Nu: max(1, degrees)}.Quantile((1 + level) / 2)
}

// StandardError is that of a parameter, from jackknife influences: the root of the sum of
// their squares.
func StandardError(influences [][]float64, parameter int) float64 {
	var column []float64
	for _, m := range influences {
		column = append(column, m[parameter])
	}
	return floats.Norm(column, 2)
}

// minSlopePoints is the fewest points that Slope fits a line to.
const minSlopePoints = 50

// Slope is that of a line through points, by least squares without outliers: points whose y is more
// than three robust standard deviations from the median. ok is false if there are too few points, or
// all at one x.
func Slope(x, y []float64, level float64) (slope float64, ci stat.Interval, ok bool) {
	if len(x) < minSlopePoints {
		return 0, ci, false
	}
	errors, weights := slices.Clone(y), make([]float64, len(y))
	floats.AddConst(-slices.Sorted(slices.Values(y))[len(y)/2], errors)
	limit := 3 * Scale(errors)
	for i, e := range errors {
		if math.Abs(e) <= limit {
			weights[i] = 1
		}
	}
	xx, yy := gonum.Variance(x, weights), gonum.Variance(errors, weights)
	xy := gonum.Covariance(x, errors, weights)
	slope = xy / xx
	half := TQuantile(math.Inf(1), level) * math.Sqrt(max(0, yy-slope*xy)/(floats.Sum(weights)-2)/xx)
	return slope, stat.Interval{Lo: slope - half, Hi: slope + half, Level: level}, xx > 1e-6
}
