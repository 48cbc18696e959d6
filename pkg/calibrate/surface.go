package calibrate

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"
)

// surface moves x to the minimum of a plane through the residuals at all corners of
// a box around it, of by steps to either side, and returns it with the plane. What a
// simulation makes of single requests is chance, which changes with the least change
// of a coefficient: a search from point to point stops in the first hollow, and the
// mean over corners does not see it.
func (p *problem) surface(ctx context.Context, s *solution, by float64) (*solution, error) {
	n := len(s.x)
	center, half := slices.Clone(s.x), make([]float64, n)
	for k, q := range p.parameters {
		half[k] = q.step * by
		center[k] = min(max(center[k], q.least+half[k]), q.most-half[k])
	}
	corners := make([][]float64, 1<<n)
	errs := make([]error, len(corners))
	slots := make(chan bool, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for c := range corners {
		wait.Go(func() {
			slots <- true
			defer func() { <-slots }()
			x := slices.Clone(center)
			for k := range x {
				x[k] += sign(c, k) * half[k]
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
	next := &solution{x: center, spread: s.spread, r: make([]float64, len(s.r)), jacobian: mat.NewDense(len(s.r), n, nil)}
	for i := range next.r {
		for c := range corners {
			next.r[i] += corners[c][i] / float64(len(corners))
		}
		for k := range n {
			slope := 0.0
			for c := range corners {
				slope += sign(c, k) * corners[c][i]
			}
			if slope /= float64(len(corners)) * half[k]; !math.IsNaN(slope) {
				next.jacobian.Set(i, k, slope)
			}
		}
	}
	p.weigh(next)
	to := p.step(next, 0)
	for i := range next.r {
		for k := range n {
			next.r[i] += next.jacobian.At(i, k) * (to[k] - center[k])
		}
	}
	next.x = to
	p.weigh(next)
	next.loss = p.loss(next, next.x, next.r)
	return next, nil
}

// sign says on which side of the box's middle a corner lies.
func sign(corner, k int) float64 {
	if corner>>k&1 == 1 {
		return 1
	}
	return -1
}
