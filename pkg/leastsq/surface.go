package leastsq

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// linearModel is a linear response surface: residuals r at x, and their Jacobian.
type linearModel struct {
	x, r     []float64
	jacobian *mat.Dense
}

// A search ends with this number of surfaces; the first few only approach the minimum.
const (
	surfaces     = 7
	surfaceRamps = 3
)

// Explore searches from x for some rounds, and approaches the minimum on response surfaces.
// The losses of points it ends at can be compared.
func (p *Problem) Explore(ctx context.Context, x []float64, rounds int) (*Solution, error) {
	s, err := p.Search(ctx, x, rounds)
	for range surfaceRamps {
		if err == nil {
			s, _, err = p.surface(ctx, s)
		}
	}
	if err != nil {
		return nil, err
	}
	s.Loss = p.loss(s, s.X, s.r)
	return s, nil
}

// Polish searches from x until nothing is better, and then on response surfaces. The
// solution is the minimum of the mean of the last surfaces: points nearby with a lower
// loss are local minima of the simulation's noise. It sets the problem's scales.
func (p *Problem) Polish(ctx context.Context, x []float64, rounds int) (*Solution, error) {
	s, err := p.Search(ctx, x, rounds)
	if err != nil {
		return nil, err
	}
	var models []*linearModel
	for i := range surfaces {
		next, l, err := p.surface(ctx, s)
		if err != nil {
			return nil, err
		}
		if s = next; i+1 == surfaceRamps {
			s.Scale = p.NoiseScale(s)
			p.Scale = s.Scale
		}
		if i >= surfaceRamps {
			models = append(models, l)
		}
	}
	s = p.minimum(meanModel(models), s.Scale)
	// How far the minima of single surfaces lie from that of their mean.
	n := float64(len(models))
	for _, l := range models {
		end := p.minimum(l, s.Scale).X
		for k := range end {
			end[k] = (end[k] - s.X[k]) / math.Sqrt(n*(n-1))
		}
		s.MCError = append(s.MCError, end)
	}
	return s, nil
}

// Relinearize is the minimum of the response surface of a solution for changed priors.
func (p *Problem) Relinearize(s *Solution) *Solution {
	return p.minimum(&linearModel{s.X, s.r, s.jacobian}, s.Scale)
}

// surface moves to the minimum of a response surface around a solution.
func (p *Problem) surface(ctx context.Context, s *Solution) (*Solution, *linearModel, error) {
	l, err := p.fitSurface(ctx, s.X, p.axes(s))
	if err != nil {
		return nil, nil, err
	}
	return p.minimum(l, s.Scale), l, nil
}

// fitSurface fits a linear model to the residuals at all corners of a box around x, whose
// axes are columns. The noise of a simulation changes with the least change of a parameter:
// a search from point to point stops in a local minimum, and the mean over corners does not.
func (p *Problem) fitSurface(ctx context.Context, x []float64, axes *mat.Dense) (*linearModel, error) {
	n := len(x)
	center := slices.Clone(x)
	for k, q := range p.Parameters {
		half := mat.Norm(axes.RowView(k).T(), math.Inf(1)) // all corners are within bounds
		center[k] = min(max(center[k], q.Min+half), q.Max-half)
	}
	points := make([][]float64, 1<<min(n, fullFactorial))
	for c := range points {
		points[c] = slices.Clone(center)
		for k, q := range p.Parameters {
			for axis := range n {
				points[c][k] += sign(c, axis) * axes.At(k, axis)
			}
			points[c][k] = min(max(points[c][k], q.Min), q.Max)
		}
	}
	corners, err := p.evaluate(ctx, points)
	if err != nil {
		return nil, err
	}
	rows, count := len(corners[0]), float64(len(corners))
	out := &linearModel{x: center, r: make([]float64, rows), jacobian: mat.NewDense(rows, n, nil)}
	along := mat.NewDense(rows, n, nil)
	for i := range out.r {
		for c := range corners {
			out.r[i] += corners[c][i] / count
		}
		for axis := range n {
			change := 0.0
			for c := range corners {
				change += sign(c, axis) * corners[c][i] / count
			}
			if !math.IsNaN(change) {
				along.Set(i, axis, change)
			}
		}
	}
	var inverse mat.Dense
	if err := inverse.Inverse(axes); err != nil {
		return nil, fmt.Errorf("leastsq: axes of a box: %w", err)
	}
	out.jacobian.Mul(along, &inverse)
	return out, nil
}

// fullFactorial is the number of axes of which all corners are evaluated. With one more it
// is half of them: those whose signs have the product 1, which separate each axis from the
// others (a 2⁵⁻¹ fractional factorial design of resolution V).
const fullFactorial = 4

// sign is the side of the box's center on which a corner lies.
func sign(corner, k int) float64 {
	if k == fullFactorial {
		return 1 - 2*float64(bits.OnesCount(uint(corner))%2)
	}
	return 2*float64(corner>>k&1) - 1
}

// axes are those of a box: the principal axes of the normal matrix of the data, each so long
// that residuals change by as much as they scatter, on average. Along shorter ones noise
// would be taken for an effect, also where collinear parameters change together; along
// longer ones residuals are not linear.
func (p *Problem) axes(s *Solution) *mat.Dense {
	n := len(s.X)
	h, weight := p.information(s)
	axes := mat.NewDense(n, n, nil)
	scaled := mat.NewSymDense(n, nil)
	unit := make([]float64, n)
	for i := range n {
		unit[i] = p.Parameters[i].MaxStep
		if v := h.At(i, i); v > 0 {
			unit[i] = min(unit[i], math.Sqrt(weight/v))
		}
	}
	for i := range n {
		for k := i; k < n; k++ {
			scaled.SetSym(i, k, h.At(i, k)*unit[i]*unit[k]/weight)
		}
	}
	var eigen mat.EigenSym
	var vectors mat.Dense
	if !eigen.Factorize(scaled, true) {
		return mat.DenseCopyOf(mat.NewDiagDense(n, unit))
	}
	eigen.VectorsTo(&vectors)
	for axis, v := range eigen.Values(nil) {
		length := 1 / math.Sqrt(max(v, 1e-12))
		for i := range n {
			if part := math.Abs(vectors.At(i, axis)) * unit[i]; part > 0 {
				length = min(length, p.Parameters[i].MaxStep/part)
			}
		}
		for i := range n {
			axes.Set(i, axis, length*vectors.At(i, axis)*unit[i])
		}
	}
	return axes
}

// at are the residuals that the model predicts elsewhere.
func (l *linearModel) at(x []float64) []float64 {
	r := slices.Clone(l.r)
	for i := range r {
		for k := range x {
			r[i] += l.jacobian.At(i, k) * (x[k] - l.x[k])
		}
	}
	return r
}

// meanModel is the mean of linear models.
func meanModel(models []*linearModel) *linearModel {
	n := float64(len(models))
	rows, columns := models[0].jacobian.Dims()
	mean := &linearModel{make([]float64, columns), make([]float64, rows), mat.NewDense(rows, columns, nil)}
	for _, l := range models {
		for k, v := range l.x {
			mean.x[k] += v / n
		}
		mean.jacobian.Add(mean.jacobian, l.jacobian)
	}
	mean.jacobian.Scale(1/n, mean.jacobian)
	for _, l := range models {
		for i, v := range l.at(mean.x) {
			mean.r[i] += v / n
		}
	}
	return mean
}

// minimum is where the loss of a linear model is lowest, with the given scales.
func (p *Problem) minimum(l *linearModel, scale []float64) *Solution {
	s := &Solution{X: slices.Clone(l.x), r: l.r, jacobian: l.jacobian, Scale: scale}
	for range 10 { // robust weights converge
		p.setWeights(s)
		h, g := p.normal(s, true, nil)
		s.X = p.move(s.X, h, g, 0)
		s.r = l.at(s.X)
	}
	p.setWeights(s)
	s.Loss = p.loss(s, s.X, s.r)
	return s
}
