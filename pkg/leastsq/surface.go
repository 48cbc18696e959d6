package leastsq

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// A search ends with this number of surfaces; the first few only approach the minimum.
const (
	surfaces     = 7
	surfaceRamps = 3
)

// Explore searches from x for some rounds, and approaches the minimum on response surfaces.
// The losses of points it ends at can be compared.
func (p *Problem) Explore(ctx context.Context, x []float64, rounds int) (*Solution, error) {
	s, err := p.Search(ctx, x, rounds)
	for i := 0; i < surfaceRamps && err == nil; i++ {
		if s, err = p.fitSurface(ctx, s); err == nil {
			s = p.Relinearize(s)
		}
	}
	return s, err
}

// Polish searches from x until nothing is better, and then on response surfaces. The
// solution is the minimum of the mean of the last surfaces: points nearby with a lower
// loss are local minima of the simulation's noise. It sets the problem's scales.
func (p *Problem) Polish(ctx context.Context, x []float64, rounds int) (*Solution, error) {
	s, err := p.Search(ctx, x, rounds)
	if err != nil {
		return nil, err
	}
	var models []*Solution
	for i := range surfaces {
		if i == surfaceRamps {
			s.Scale = p.NoiseScale(s)
			p.Scale = s.Scale
		}
		model, err := p.fitSurface(ctx, s)
		if err != nil {
			return nil, err
		}
		if s = p.Relinearize(model); i >= surfaceRamps {
			models = append(models, model)
		}
	}
	s = p.Relinearize(meanModel(models))
	// How far the minima of single surfaces lie from that of their mean.
	n := float64(len(models))
	for _, model := range models {
		s.MCError = append(s.MCError, scaledChange(p.Relinearize(model).X, s.X, 1/math.Sqrt(n*(n-1))))
	}
	return s, nil
}

// fitSurface fits a response surface, which is linear, to the residuals at all corners of a
// box around a solution. The noise of a simulation changes with the least change of a
// parameter: a search from point to point stops in a local minimum, and the mean over
// corners does not.
func (p *Problem) fitSurface(ctx context.Context, s *Solution) (*Solution, error) {
	n, axes, signs := len(s.X), p.axes(s), design(len(s.X))
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
	out := &Solution{X: center, Scale: s.Scale, r: make([]float64, len(corners[0])), jacobian: new(mat.Dense)}
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

// fullFactorial is the number of axes of which all corners are evaluated. With one more it
// is half of them: those whose signs have the product 1, which separate each axis from the
// others (a 2⁵⁻¹ fractional factorial design of resolution V).
const fullFactorial = 4

// design has for each corner, in rows, on which side of the box's center it lies along each axis.
func design(axes int) *mat.Dense {
	signs := mat.NewDense(1<<min(axes, fullFactorial), axes, nil)
	signs.Apply(func(corner, axis int, _ float64) float64 {
		if axis == fullFactorial {
			return 1 - 2*float64(bits.OnesCount(uint(corner))%2)
		}
		return 2*float64(corner>>axis&1) - 1
	}, signs)
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
		jacobian: mat.NewDense(len(first.r), len(first.X), nil)}
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
	s := &Solution{X: slices.Clone(surface.X), Scale: surface.Scale, r: surface.r, jacobian: surface.jacobian}
	for range 10 { // robust weights converge
		p.setWeights(s)
		s.X = p.GaussNewton(s)
		s.r = surface.at(s.X)
	}
	p.setWeights(s)
	s.Loss = p.loss(s, s.X, s.r)
	return s
}
