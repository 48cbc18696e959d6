package calibrate

import (
	"context"
	"math"
	"slices"
	"sync"

	"blis/pkg/stat"

	"gonum.org/v1/gonum/mat"
)

// parameter is one number that is fitted.
type parameter struct {
	name        string
	least, most float64
	// step is what it is changed by to see what that does: enough to stand out
	// from the chance of single requests. The search fits it; it is at most longest.
	step, longest float64
	// A prior of this mean and standard deviation; spread 0 is none.
	prior, spread float64
}

// problem is a nonlinear least-squares problem whose function is a simulation.
type problem struct {
	// residuals of the data at some parameters, in units of ratio.
	residuals func(ctx context.Context, x []float64) ([]float64, error)
	// kind of each residual: those of one kind have one spread, found by the fit. It
	// counts features of runs, run by run.
	kind func(i int) int
	// spread of each kind; nil: it is found at the start of the search.
	spread []float64
	kinds  int
	// worth of each residual beside others of its kind.
	worth      func(i int) float64
	parameters []parameter
}

// solution is where the search ended.
type solution struct {
	x        []float64
	loss     float64
	r        []float64  // residuals at x
	jacobian *mat.Dense // of r
	spread   []float64  // of each kind of residual
	weights  []float64  // robust, of each residual
	// wander is how a simulation's chance moves x: the sum of its squares is a variance.
	wander [][]float64
}

// leastSpread is the least that residuals are believed to scatter: 0.1 %.
const leastSpread = 0.001

// search minimizes from a start by Levenberg and Marquardt's method with robust
// weights (Huber's, of residuals over their kind's spread).
func (p *problem) search(ctx context.Context, x []float64, rounds int) (*solution, error) {
	s := &solution{x: slices.Clone(x)}
	var err error
	if s.r, err = p.residuals(ctx, s.x); err != nil {
		return nil, err
	}
	if s.spread = p.spread; s.spread == nil {
		s.spread = p.scatter(s.r)
	}
	p.weigh(s)
	lambda, idle := 0.01, 0
	for range rounds {
		if s.jacobian, err = p.derive(ctx, s.x, s.r); err != nil {
			return nil, err
		}
		p.weigh(s)
		p.fitSteps(s)
		s.loss = p.loss(s, s.x, s.r)
		better := false
		was := s.loss
		for range 5 {
			next := p.step(s, lambda)
			r, err := p.residuals(ctx, next)
			if err != nil {
				return nil, err
			}
			if l := p.loss(s, next, r); l < s.loss {
				s.x, s.r, s.loss, better = next, r, l, true
				lambda = max(lambda/5, 1e-6)
				break
			}
			lambda = min(lambda*5, 1e6)
		}
		if was-s.loss >= 1e-3*was {
			idle = 0
		} else if idle++; idle == 2 || !better {
			break
		}
	}
	return s, nil
}

// leastJumps is of how many pairs of neighbours a kind's spread can be told; of fewer
// it is that of the same feature in all runs.
const leastJumps = 3

// meanOfSmall is the mean of the smaller three quarters of the sizes of numbers that are
// normally distributed, in standard deviations: what stalls is in the rest, and of a few
// numbers it is told better than a median.
const meanOfSmall = 0.5147

// scatter is the spread of each kind, from what neighbours differ by: a bias that
// neighbours share is none. It is 0 of a feature that no run has of neighbours.
func (p *problem) scatter(r []float64) []float64 {
	jumps, last := make([][]float64, p.kinds), make([]float64, p.kinds)
	for k := range last {
		last[k] = math.NaN()
	}
	var pooled [features][]float64
	for i, r := range r {
		k := p.kind(i)
		if math.IsNaN(r) {
			continue
		}
		if !math.IsNaN(last[k]) {
			jump := math.Abs(r - last[k])
			jumps[k], pooled[k%features] = append(jumps[k], jump), append(pooled[k%features], jump)
		}
		last[k] = r
	}
	spread := make([]float64, p.kinds)
	for k, own := range jumps {
		if len(own) < leastJumps {
			own = pooled[k%features]
		}
		if len(own) > 0 {
			slices.Sort(own)
			spread[k] = max(leastSpread, stat.Mean(own[:(3*len(own)+3)/4])/meanOfSmall/math.Sqrt2)
		}
	}
	return spread
}

// weigh sets the robust weights.
func (p *problem) weigh(s *solution) {
	s.weights = make([]float64, len(s.r))
	for i, r := range s.r {
		if math.IsNaN(r) || s.spread[p.kind(i)] == 0 {
			continue
		}
		z := math.Abs(r) / s.spread[p.kind(i)]
		s.weights[i] = p.worth(i) * min(1, huber/max(z, 1e-12))
	}
}

// loss is the misfit and the priors' squares.
func (p *problem) loss(s *solution, x, r []float64) float64 {
	sum := p.misfit(s, r)
	for k, q := range p.parameters {
		if q.spread > 0 {
			z := (x[k] - q.prior) / q.spread
			sum += z * z
		}
	}
	return sum
}

// misfit is the sum of Huber's function over residuals.
func (p *problem) misfit(s *solution, r []float64) float64 {
	sum := 0.0
	for i, v := range r {
		scale := s.spread[p.kind(i)]
		if math.IsNaN(v) || scale == 0 {
			continue
		}
		z := math.Abs(v) / scale
		if z > huber {
			sum += p.worth(i) * huber * (2*z - huber)
		} else {
			sum += p.worth(i) * z * z
		}
	}
	return sum
}

// derive is the Jacobian. The columns are evaluated at the same time; the result does not
// depend on that.
func (p *problem) derive(ctx context.Context, x, r []float64) (*mat.Dense, error) {
	j := mat.NewDense(len(r), len(x), nil)
	errs := make([]error, len(x))
	var wait sync.WaitGroup
	for k := range x {
		wait.Go(func() {
			var column []float64
			if column, errs[k] = p.effect(ctx, x, k); errs[k] == nil {
				j.SetCol(k, column)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return j, nil
}

// effect is the Jacobian's column of one parameter, by central differences where bounds
// allow.
func (p *problem) effect(ctx context.Context, x []float64, k int) ([]float64, error) {
	q := &p.parameters[k]
	up, down := slices.Clone(x), slices.Clone(x)
	up[k], down[k] = min(q.most, x[k]+q.step), max(q.least, x[k]-q.step)
	a, err := p.residuals(ctx, up)
	if err != nil {
		return nil, err
	}
	b, err := p.residuals(ctx, down)
	if err != nil {
		return nil, err
	}
	for i := range a {
		if a[i] = (a[i] - b[i]) / (up[k] - down[k]); math.IsNaN(a[i]) {
			a[i] = 0
		}
	}
	return a, nil
}

// normal makes the normal equations of weighted residuals: JᵀWJ and JᵀWr, with
// priors.
func (p *problem) normal(s *solution, times func(i int) float64) (*mat.SymDense, *mat.VecDense) {
	n := len(s.x)
	h, g := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	row := make([]float64, n)
	for i, r := range s.r {
		w := s.weights[i] * times(i)
		if w == 0 || math.IsNaN(r) {
			continue
		}
		scale := s.spread[p.kind(i)]
		w /= scale * scale
		mat.Row(row, i, s.jacobian)
		for a := range n {
			g.SetVec(a, g.AtVec(a)+w*row[a]*r)
			for b := a; b < n; b++ {
				h.SetSym(a, b, h.At(a, b)+w*row[a]*row[b])
			}
		}
	}
	for k, q := range p.parameters {
		if q.spread > 0 {
			h.SetSym(k, k, h.At(k, k)+1/(q.spread*q.spread))
			g.SetVec(k, g.AtVec(k)+(s.x[k]-q.prior)/(q.spread*q.spread))
		}
	}
	return h, g
}

func always(int) float64 { return 1 }

// step is the next try.
func (p *problem) step(s *solution, lambda float64) []float64 {
	h, g := p.normal(s, always)
	return p.move(s.x, h, g, lambda)
}

// move solves (H + λ·diag H)·d = −g and goes there, within the bounds: what meets
// one stays there, and the rest is solved again.
func (p *problem) move(x []float64, h *mat.SymDense, g *mat.VecDense, lambda float64) []float64 {
	n := len(x)
	fixed := make([]bool, n)
	next := slices.Clone(x)
	for range n + 1 {
		a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
		for i := range n {
			if fixed[i] {
				a.Set(i, i, 1)
				b.SetVec(i, next[i]-x[i])
				continue
			}
			b.SetVec(i, -g.AtVec(i))
			for k := range n {
				a.Set(i, k, h.At(i, k))
			}
			a.Set(i, i, a.At(i, i)*(1+lambda)+1e-12)
		}
		var d mat.VecDense
		if d.SolveVec(a, b) != nil && d.Len() == 0 {
			return next
		}
		again := false
		for i := range n {
			v := x[i] + d.AtVec(i)
			if q := &p.parameters[i]; !fixed[i] && (v < q.least || v > q.most || math.IsNaN(v)) {
				fixed[i], again = true, true
				next[i] = min(max(v, q.least), q.most)
				if math.IsNaN(v) {
					next[i] = x[i]
				}
			} else if !fixed[i] {
				next[i] = v
			}
		}
		if !again {
			break
		}
	}
	return next
}
