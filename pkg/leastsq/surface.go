package leastsq

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// A solution is the mean of minSurfaces surfaces or more: of as many as it takes until the noise of the simulation
// is maxNoise of the standard error of each parameter, and of maxSurfaces at most. A search approaches it on up to
// maxApproach surfaces.
const (
	maxApproach = 5
	minSurfaces = 3
	maxSurfaces = 6
	maxNoise    = 0.3
)

// Explore searches from x for some rounds, and approaches the minimum on response surfaces.
// The losses of points it ends at can be compared. It returns the best solution so far, which may
// be nil, once the response surface of that explains a point of the search: both lead to one minimum.
func (p *Problem) Explore(ctx context.Context, x []float64, rounds int, best *Solution) (*Solution, error) {
	s := &Solution{X: slices.Clone(x)}
	if err := p.begin(ctx, s); err != nil {
		return nil, err
	}
	lambda, better := startLambda, true
	for i := 0; ; i++ {
		if best != nil && p.explains(best, s) {
			return best, nil
		}
		if i == rounds || !better {
			return p.Approach(ctx, s)
		}
		var err error
		if better, lambda, err = p.round(ctx, s, lambda); err != nil {
			return nil, err
		}
	}
}

// explains reports whether the response surface of a solution predicts the residuals at a point
// within their scatter, or 80 % of how they change on the way there.
func (p *Problem) explains(surface, point *Solution) bool {
	predicted := surface.at(point.X)
	unexplained, all, n := 0.0, 0.0, 0.0
	for i, r := range point.r {
		scale := surface.Scale[p.Kind[i]]
		if math.IsNaN(r-predicted[i]) || scale == 0 {
			continue
		}
		d, change := (r-predicted[i])/scale, (r-surface.r[i])/scale
		unexplained, all, n = unexplained+p.Weight[i]*d*d, all+p.Weight[i]*change*change, n+p.Weight[i]
	}
	return unexplained <= max(n, 0.2*0.2*all)
}

// Approach moves to the minima of response surfaces until one is near the previous.
func (p *Problem) Approach(ctx context.Context, s *Solution) (*Solution, error) {
	for range maxApproach {
		surface, err := p.fitSurface(ctx, s, false)
		if err != nil {
			return nil, err
		}
		next := p.Relinearize(surface)
		near := surface.isNear(next.X, s.X)
		if s = next; near {
			break
		}
	}
	return s, nil
}

// Covers reports whether a point is as near to a solution as the points where its response surface was measured.
func (s *Solution) Covers(x []float64) bool { return s.isNear(x, s.X) }

// isNear reports whether two points differ by at most the half of the box where a response surface was measured.
func (s *Solution) isNear(x, other []float64) bool {
	var along mat.VecDense
	along.MulVec(s.box, mat.NewVecDense(len(x), scaledChange(x, other, 1)))
	return mat.Norm(&along, math.Inf(1)) <= 1
}

// Polish is the minimum of the mean of response surfaces about a solution: points nearby with a lower
// loss are local minima of the simulation's noise. It sets the problem's scales.
func (p *Problem) Polish(ctx context.Context, s *Solution) (*Solution, error) {
	p.Scale = p.NoiseScale(s)
	at := *s
	at.Scale = p.Scale
	s = p.Relinearize(&at)
	var models []*Solution
	for n := 1; ; n++ {
		model, err := p.fitSurface(ctx, s, n%2 == 0)
		if err != nil {
			return nil, err
		}
		models = append(models, model)
		if s = p.Relinearize(model); n < minSurfaces {
			continue
		}
		mean := p.Relinearize(meanModel(models))
		// How far the minima of single surfaces lie from that of their mean.
		for _, model := range models {
			mean.MCError = append(mean.MCError,
				scaledChange(p.Relinearize(model).X, mean.X, 1/math.Sqrt(float64(n*(n-1)))))
		}
		if n == maxSurfaces || p.isPrecise(mean) {
			return mean, nil
		}
	}
}

// isPrecise reports whether the noise of the simulation hardly matters compared with the scatter of the data.
func (p *Problem) isPrecise(s *Solution) bool {
	h, _ := p.normal(s, true)
	var covariance mat.Dense
	if covariance.Inverse(h) != nil {
		return false
	}
	for k := range s.X {
		if StandardError(s.MCError, k) > maxNoise*math.Sqrt(covariance.At(k, k)) {
			return false
		}
	}
	return true
}

// fitSurface fits a response surface, which is linear, to the residuals at corners of a box around
// a solution. The noise of a simulation changes with the least change of a parameter: a search from
// point to point stops in a local minimum, and the mean over corners does not. Where the corners are
// only half of those of the box, it is the one half or the other.
func (p *Problem) fitSurface(ctx context.Context, s *Solution, other bool) (*Solution, error) {
	n, axes, signs := len(s.X), p.axes(s), design(len(s.X), other)
	center := slices.Clone(s.X)
	for k, q := range p.Parameters {
		half := mat.Norm(axes.RowView(k).T(), math.Inf(1)) // all corners are within bounds
		center[k] = min(max(center[k], q.Min+half), q.Max-half)
	}
	var offsets, along, inverse mat.Dense
	offsets.Mul(signs, axes.T())
	points := make([][]float64, signs.RawMatrix().Rows)
	for c := range points {
		points[c] = floats.AddTo(make([]float64, n), center, offsets.RawRowView(c))
		for k, q := range p.Parameters {
			points[c][k] = min(max(points[c][k], q.Min), q.Max)
		}
	}
	corners, err := p.evaluate(ctx, points)
	if err != nil {
		return nil, err
	}
	if err := inverse.Inverse(axes); err != nil {
		return nil, fmt.Errorf("leastsq: axes of a box: %w", err)
	}
	out := &Solution{X: center, Scale: s.Scale, r: make([]float64, len(corners[0])), jacobian: new(mat.Dense),
		box: &inverse}
	all := mat.NewDense(len(corners), len(out.r), slices.Concat(corners...))
	for i := range out.r {
		out.r[i] = mat.Sum(all.ColView(i)) / float64(len(corners))
	}
	along.Mul(all.T(), signs)
	out.jacobian.Mul(&along, &inverse)
	out.jacobian.Scale(1/float64(len(corners)), out.jacobian)
	out.jacobian.Apply(zeroIfNaN, out.jacobian)
	return out, nil
}

// fullFactorial is the number of axes of which all corners are evaluated. With more it is half of
// them: those whose signs have the product 1, or −1. Of four axes they separate each from products of
// two, of five from products of three (fractional factorial designs 2⁴⁻¹ and 2⁵⁻¹ of the resolutions IV
// and V).
const fullFactorial = 3

// design has for each corner, in rows, on which side of the box's center it lies along each axis.
func design(axes int, other bool) *mat.Dense {
	free, product := axes, 1.0
	if axes > fullFactorial {
		free--
	}
	if other {
		product = -1
	}
	signs := mat.NewDense(1<<free, axes, nil)
	for corner := range 1 << free {
		row := signs.RawRowView(corner)
		for axis := range free {
			row[axis] = 2*float64(corner>>axis&1) - 1
		}
		if free < axes {
			row[free] = product * floats.Prod(row[:free])
		}
	}
	return signs
}

// axes are those of a box, as columns: the principal axes of the normal matrix of the data,
// each so long that residuals change by as much as they scatter, on average. Along shorter
// ones noise would be taken for an effect, also where collinear parameters change together;
// along longer ones residuals are not linear.
func (p *Problem) axes(s *Solution) *mat.Dense {
	n := len(s.X)
	h, _ := p.normal(s, false)
	h.ScaleSym(1/floats.Sum(s.weights), h)
	unit := make([]float64, n)
	for i := range n {
		unit[i] = min(p.Parameters[i].MaxStep, 1/math.Sqrt(h.At(i, i)))
		for k := range i + 1 {
			h.SetSym(i, k, h.At(i, k)*unit[i]*unit[k])
		}
	}
	var eigen mat.EigenSym
	var axes mat.Dense
	if !eigen.Factorize(h, true) {
		return mat.DenseCopyOf(mat.NewDiagDense(n, unit))
	}
	eigen.VectorsTo(&axes)
	axes.Mul(mat.NewDiagDense(n, unit), &axes)
	for axis, v := range eigen.Values(nil) {
		length := 1 / math.Sqrt(max(v, 1e-12))
		for i, q := range p.Parameters {
			length = min(length, q.MaxStep/math.Abs(axes.At(i, axis)))
		}
		for i := range n {
			axes.Set(i, axis, length*axes.At(i, axis))
		}
	}
	return &axes
}

// at are the residuals that the response surface of a solution predicts elsewhere.
func (s *Solution) at(x []float64) []float64 {
	r := slices.Clone(s.r)
	d := scaledChange(x, s.X, 1)
	for i := range r {
		r[i] += floats.Dot(s.jacobian.RawRowView(i), d)
	}
	return r
}

// meanModel is the mean of response surfaces.
func meanModel(models []*Solution) *Solution {
	first, n := models[0], float64(len(models))
	mean := &Solution{X: make([]float64, len(first.X)), Scale: first.Scale, r: make([]float64, len(first.r)),
		box: first.box, jacobian: mat.NewDense(len(first.r), len(first.X), nil)}
	for _, s := range models {
		floats.AddScaled(mean.X, 1/n, s.X)
		mean.jacobian.Add(mean.jacobian, s.jacobian)
	}
	mean.jacobian.Scale(1/n, mean.jacobian)
	for _, s := range models {
		floats.AddScaled(mean.r, 1/n, s.at(mean.X))
	}
	return mean
}

// Relinearize is the minimum of the response surface of a solution, for the priors, weights
// and bounds of p.
func (p *Problem) Relinearize(surface *Solution) *Solution {
	s := &Solution{X: slices.Clone(surface.X), Scale: surface.Scale, r: surface.r, jacobian: surface.jacobian,
		box: surface.box}
	for range 10 { // robust weights converge
		p.setWeights(s)
		s.X = p.GaussNewton(s)
		s.r = surface.at(s.X)
	}
	p.setWeights(s)
	s.Loss = p.loss(s, s.X, s.r)
	return s
}
