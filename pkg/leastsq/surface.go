package leastsq

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

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
	for range surfaceRamps {
		if err == nil {
			s, err = p.fitSurface(ctx, s)
		}
		if err != nil {
			return nil, err
		}
		s = p.Relinearize(s)
	}
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
		end := p.Relinearize(model).X
		for k := range end {
			end[k] = (end[k] - s.X[k]) / math.Sqrt(n*(n-1))
		}
		s.MCError = append(s.MCError, end)
	}
	return s, nil
}

// fitSurface fits a response surface, which is linear, to the residuals at all corners of a
// box around a solution. The noise of a simulation changes with the least change of a
// parameter: a search from point to point stops in a local minimum, and the mean over
// corners does not.
func (p *Problem) fitSurface(ctx context.Context, s *Solution) (*Solution, error) {
	n, axes := len(s.X), p.axes(s)
	center := slices.Clone(s.X)
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
	out := &Solution{X: center, Scale: s.Scale, r: make([]float64, rows), jacobian: mat.NewDense(rows, n, nil)}
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

// axes are those of a box, as columns: the principal axes of the normal matrix of the data,
// each so long that residuals change by as much as they scatter, on average. Along shorter
// ones noise would be taken for an effect, also where collinear parameters change together;
// along longer ones residuals are not linear.
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

// at are the residuals that the response surface of a solution predicts elsewhere.
func (s *Solution) at(x []float64) []float64 {
	r := slices.Clone(s.r)
	for i := range r {
		for k := range x {
			r[i] += s.jacobian.At(i, k) * (x[k] - s.X[k])
		}
	}
	return r
}

// meanModel is the mean of response surfaces.
func meanModel(models []*Solution) *Solution {
	n := float64(len(models))
	rows, columns := models[0].jacobian.Dims()
	mean := &Solution{X: make([]float64, columns), Scale: models[0].Scale, r: make([]float64, rows),
		jacobian: mat.NewDense(rows, columns, nil)}
	for _, s := range models {
		for k, v := range s.X {
			mean.X[k] += v / n
		}
		mean.jacobian.Add(mean.jacobian, s.jacobian)
	}
	mean.jacobian.Scale(1/n, mean.jacobian)
	for _, s := range models {
		for i, v := range s.at(mean.X) {
			mean.r[i] += v / n
		}
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
