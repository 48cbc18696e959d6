package calibrate

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"
)

// flat is residuals as a linear function of parameters: r at x, and what they change
// by.
type flat struct {
	x, r     []float64
	jacobian *mat.Dense
}

// plane is drawn through the residuals at all corners of a box around x, whose axes are
// columns. What a simulation makes of single requests is chance, which changes with the
// least change of a coefficient: a search from point to point stops in the first hollow,
// and the mean over corners does not see it.
func (p *problem) plane(ctx context.Context, x []float64, axes *mat.Dense) (*flat, error) {
	n := len(x)
	center := slices.Clone(x)
	for k, q := range p.parameters {
		half := mat.Norm(axes.RowView(k).T(), math.Inf(1)) // all corners are within bounds
		center[k] = min(max(center[k], q.least+half), q.most-half)
	}
	corners := make([][]float64, 1<<min(n, wholeAxes))
	errs := make([]error, len(corners))
	slots := make(chan bool, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for c := range corners {
		wait.Go(func() {
			slots <- true
			defer func() { <-slots }()
			x := slices.Clone(center)
			for k := range x {
				for axis := range n {
					x[k] += sign(c, axis) * axes.At(k, axis)
				}
				x[k] = min(max(x[k], p.parameters[k].least), p.parameters[k].most)
			}
			corners[c], errs[c] = p.residuals(ctx, x)
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	rows := len(corners[0])
	out := &flat{x: center, r: make([]float64, rows), jacobian: mat.NewDense(rows, n, nil)}
	along := mat.NewDense(rows, n, nil)
	for i := range out.r {
		for c := range corners {
			out.r[i] += corners[c][i] / float64(len(corners))
		}
		for axis := range n {
			change := 0.0
			for c := range corners {
				change += sign(c, axis) * corners[c][i] / float64(len(corners))
			}
			if !math.IsNaN(change) {
				along.Set(i, axis, change)
			}
		}
	}
	var inverse mat.Dense
	if err := inverse.Inverse(axes); err != nil {
		return nil, fmt.Errorf("calibrate: axes of a box: %w", err)
	}
	out.jacobian.Mul(along, &inverse)
	return out, nil
}

// wholeAxes is of how many axes all corners are played. Of one more it is half of them:
// those on whose sides the product is 1, which tell each axis from the others (a 2⁵⁻¹
// factorial design of resolution V).
const wholeAxes = 4

// sign says on which side of the box's middle a corner lies.
func sign(corner, k int) float64 {
	if k == wholeAxes {
		return 1 - 2*float64(bits.OnesCount(uint(corner))%2)
	}
	return 2*float64(corner>>k&1) - 1
}

// axes are those of a box: the principal axes of the normal matrix of the data, each so
// long that residuals change by as much as they scatter, on the average. Along shorter
// ones chance would be taken for an effect, also where parameters that stand for each
// other change together, and longer ones see what is not linear.
func (p *problem) axes(s *solution) *mat.Dense {
	n := len(s.x)
	h, weight := p.bare(s)
	axes := mat.NewDense(n, n, nil)
	scaled := mat.NewSymDense(n, nil)
	unit := make([]float64, n)
	for i := range n {
		unit[i] = p.parameters[i].longest
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
		for i := range n {
			axes.Set(i, i, unit[i])
		}
		return axes
	}
	eigen.VectorsTo(&vectors)
	for axis, v := range eigen.Values(nil) {
		length := 1 / math.Sqrt(max(v, 1e-12))
		for i := range n {
			if part := math.Abs(vectors.At(i, axis)) * unit[i]; part > 0 {
				length = min(length, p.parameters[i].longest/part)
			}
		}
		for i := range n {
			axes.Set(i, axis, length*vectors.At(i, axis)*unit[i])
		}
	}
	return axes
}

// bare is the normal matrix of the data without priors, and the sum of their weights.
func (p *problem) bare(s *solution) (h *mat.SymDense, weight float64) {
	q := *p
	q.parameters = make([]parameter, len(p.parameters))
	h, _ = q.normal(s, always)
	for i, w := range s.weights {
		if !math.IsNaN(s.r[i]) {
			weight += w
		}
	}
	return h, weight
}

// at are the residuals that a plane has elsewhere.
func (l *flat) at(x []float64) []float64 {
	r := slices.Clone(l.r)
	for i := range r {
		for k := range x {
			r[i] += l.jacobian.At(i, k) * (x[k] - l.x[k])
		}
	}
	return r
}

// meanOf is the mean of planes.
func meanOf(planes []*flat) *flat {
	n := float64(len(planes))
	rows, columns := planes[0].jacobian.Dims()
	mean := &flat{x: make([]float64, columns), r: make([]float64, rows), jacobian: mat.NewDense(rows, columns, nil)}
	for _, l := range planes {
		for k, v := range l.x {
			mean.x[k] += v / n
		}
		mean.jacobian.Add(mean.jacobian, l.jacobian)
	}
	mean.jacobian.Scale(1/n, mean.jacobian)
	for _, l := range planes {
		for i, v := range l.at(mean.x) {
			mean.r[i] += v / n
		}
	}
	return mean
}

// lowest is where the loss of a plane is least, with the spreads given.
func (p *problem) lowest(l *flat, spread []float64) *solution {
	s := &solution{x: slices.Clone(l.x), r: l.r, jacobian: l.jacobian, spread: spread}
	for range 10 { // robust weights settle
		p.weigh(s)
		s.x = p.step(s, 0)
		s.r = l.at(s.x)
	}
	p.weigh(s)
	s.loss = p.loss(s, s.x, s.r)
	return s
}

// apart is how far the minima of planes lie from that of their mean, so scaled that the
// sum of their squares is a variance of the latter: what a simulation's chance leaves open.
func (p *problem) apart(planes []*flat, mean *solution) (moves [][]float64) {
	n := float64(len(planes))
	for _, l := range planes {
		end := p.lowest(l, mean.spread).x
		for k := range end {
			end[k] = (end[k] - mean.x[k]) / math.Sqrt(n*(n-1))
		}
		moves = append(moves, end)
	}
	return moves
}

// surface moves to the minimum of a plane around x.
func (p *problem) surface(ctx context.Context, s *solution) (*solution, *flat, error) {
	l, err := p.plane(ctx, s.x, p.axes(s))
	if err != nil {
		return nil, nil, err
	}
	return p.lowest(l, s.spread), l, nil
}

// fitSteps makes steps so long that residuals change by as much as they scatter, on the
// average. They at most double, for what a short step sees is chance.
func (p *problem) fitSteps(s *solution) {
	h, weight := p.bare(s)
	for k := range p.parameters {
		q := &p.parameters[k]
		fits := math.Sqrt(weight / max(h.At(k, k), math.SmallestNonzeroFloat64))
		q.step = min(max(fits, q.step/2), 2*q.step, q.longest)
	}
}
