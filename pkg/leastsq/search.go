// Package leastsq solves small robust least-squares problems: linear ones with non-negative
// coefficients, and nonlinear ones whose residuals come from a noisy simulation. It also
// estimates the uncertainty of solutions and reports which coefficients are identifiable.
package leastsq

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"blis/pkg/stat"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Parameter is one number to fit.
type Parameter struct {
	Min, Max float64
	// Step is the increment of finite differences: large enough that its effect exceeds the
	// noise of the simulation. The search adapts it, up to MaxStep.
	Step, MaxStep float64
	// Prior is the mean of a prior, PriorSD its standard deviation; 0 means no prior.
	Prior, PriorSD float64
}

// Problem is a nonlinear least-squares problem with Huber's loss. The methods do not change
// it, but for the steps of its parameters.
type Problem struct {
	// Residuals of the data at some parameters; NaN where there is none.
	Residuals func(ctx context.Context, x []float64) ([]float64, error)
	// Kind of each residual: those of one kind have one scale.
	Kind []int
	// Weight of each residual among those of its kind.
	Weight     []float64
	Parameters []Parameter
	// Scale of each kind; nil: a search estimates it at its start.
	Scale []float64
	// Kinds is their number. Kinds that are equal modulo Pool are of one quantity: they share
	// a scale where one has too few residuals.
	Kinds, Pool int
}

// Solution is where a search ended.
type Solution struct {
	X     []float64
	Loss  float64
	Scale []float64 // of each kind of residual
	// MCError is how the noise of the simulation moves X: the sum of squares is a variance.
	MCError  [][]float64
	r        []float64  // residuals at X
	jacobian *mat.Dense // of r
	weights  []float64  // robust, of each residual
	// box is where a response surface was measured: the inverse of the axes of a box about X; nil if it is none.
	box *mat.Dense
}

// minScale is the smallest scale of residuals: 0.1 %.
const minScale = 0.001

// begin evaluates a solution at its X, where a search starts.
func (p *Problem) begin(ctx context.Context, s *Solution) (err error) {
	if s.r, err = p.Residuals(ctx, s.X); err != nil {
		return err
	}
	if s.Scale = p.Scale; s.Scale == nil {
		s.Scale = p.NoiseScale(s)
	}
	p.setWeights(s)
	return nil
}

// startLambda is the damping of a search's first round, and tries the number of dampings that a round tries.
const (
	startLambda = 0.01
	tries       = 5
)

// round is one of a search by the method of Levenberg and Marquardt with Huber's weights, which returns
// the damping of the next. It moves the solution if it finds a better one.
func (p *Problem) round(ctx context.Context, s *Solution, lambda float64) (better bool, next float64, err error) {
	if s.jacobian, err = p.derive(ctx, s.X, 0); err != nil {
		return false, lambda, err
	}
	p.setWeights(s)
	p.fitSteps(s)
	s.Loss = p.loss(s, s.X, s.r)
	h, g := p.normal(s, true)
	for n, left := 1, tries; left > 0; n = min(left, runtime.GOMAXPROCS(0)) { // idle processors try the next λ, too
		points := make([][]float64, n)
		for i, l := 0, lambda; i < n; i, l = i+1, min(l*5, 1e6) {
			points[i] = p.move(s.X, h, g, l)
		}
		all, err := p.evaluate(ctx, points)
		if err != nil {
			return false, lambda, err
		}
		for i, x := range points {
			if l := p.loss(s, x, all[i]); l < s.Loss {
				s.X, s.r, s.Loss = x, all[i], l
				p.setWeights(s)
				return true, max(lambda/5, 1e-6), nil
			}
			lambda = min(lambda*5, 1e6)
		}
		left -= n
	}
	return false, lambda, nil
}

// minIncrements is the number of differences of neighbors that a kind's own scale needs.
const minIncrements = 3

// trimmedMean is the mean of the smaller three quarters of the absolute values of a standard
// normal distribution: outliers are in the rest, and for a few numbers it is more precise
// than a median.
const trimmedMean = 0.5147

// NoiseScale estimates the scale of each kind of a solution's residuals from differences of
// neighbors: a bias that they share does not count. It is 0 where there are no neighbors.
func (p *Problem) NoiseScale(s *Solution) []float64 {
	increments, pooled := make([][]float64, p.Kinds), make([][]float64, p.Pool)
	last := slices.Repeat([]float64{math.NaN()}, p.Kinds)
	for i, r := range s.r {
		k := p.Kind[i]
		if math.IsNaN(r) {
			continue
		}
		if !math.IsNaN(last[k]) {
			d := math.Abs(r - last[k])
			increments[k], pooled[k%p.Pool] = append(increments[k], d), append(pooled[k%p.Pool], d)
		}
		last[k] = r
	}
	scale := make([]float64, p.Kinds)
	for k, own := range increments {
		if len(own) < minIncrements {
			own = pooled[k%p.Pool]
		}
		if len(own) == 0 {
			continue
		}
		slices.Sort(own)
		scale[k] = max(minScale, stat.Mean(own[:(3*len(own)+3)/4])/trimmedMean/math.Sqrt2)
	}
	return scale
}

// setWeights sets the robust weights at the residuals.
func (p *Problem) setWeights(s *Solution) {
	s.weights = make([]float64, len(s.r))
	for i, r := range s.r {
		if scale := s.Scale[p.Kind[i]]; !math.IsNaN(r) && scale != 0 {
			s.weights[i] = p.Weight[i] * min(1, huberK/max(math.Abs(r)/scale, 1e-12))
		}
	}
}

// loss is Huber's loss of residuals and the squares of the priors.
func (p *Problem) loss(s *Solution, x, r []float64) float64 {
	sum := p.huberLoss(s, r)
	for k, q := range p.Parameters {
		if q.PriorSD > 0 {
			z := (x[k] - q.Prior) / q.PriorSD
			sum += z * z
		}
	}
	return sum
}

func (p *Problem) huberLoss(s *Solution, r []float64) float64 {
	sum := 0.0
	for i, v := range r {
		if scale := s.Scale[p.Kind[i]]; !math.IsNaN(v) && scale != 0 {
			z := math.Abs(v) / scale
			z, beyond := min(z, huberK), max(0, z-huberK) // a square, and then a line
			sum += p.Weight[i] * (z*z + 2*huberK*beyond)
		}
	}
	return sum
}

// evaluate returns the residuals at points, evaluated concurrently.
func (p *Problem) evaluate(ctx context.Context, points [][]float64) ([][]float64, error) {
	all, errs := make([][]float64, len(points)), make([]error, len(points))
	slots := make(chan bool, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, x := range points {
		wait.Go(func() {
			slots <- true
			defer func() { <-slots }()
			all[i], errs[i] = p.Residuals(ctx, x)
		})
	}
	wait.Wait()
	return all, cmp.Or(errs...)
}

// derive is the Jacobian at x in the parameters from first on, by central differences where
// bounds allow.
func (p *Problem) derive(ctx context.Context, x []float64, first int) (*mat.Dense, error) {
	var points [][]float64
	for k := first; k < len(x); k++ {
		q := &p.Parameters[k]
		up, down := slices.Clone(x), slices.Clone(x)
		up[k], down[k] = min(q.Max, x[k]+q.Step), max(q.Min, x[k]-q.Step)
		points = append(points, up, down)
	}
	all, err := p.evaluate(ctx, points)
	if err != nil {
		return nil, err
	}
	j := mat.NewDense(len(all[0]), len(x)-first, nil)
	for c := range len(x) - first {
		j.SetCol(c, scaledChange(all[2*c], all[2*c+1], 1/(points[2*c][first+c]-points[2*c+1][first+c])))
	}
	j.Apply(zeroIfNaN, j)
	return j, nil
}

// zeroIfNaN makes 0 of the derivatives of missing residuals.
func zeroIfNaN(_, _ int, v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// normal makes the normal equations of weighted residuals, JᵀWJ and JᵀWr, with or without
// priors.
func (p *Problem) normal(s *Solution, priors bool) (*mat.SymDense, *mat.VecDense) {
	var j mat.Dense
	j.CloneFrom(s.jacobian)
	r := mat.NewVecDense(len(s.r), nil)
	for i, w := range s.weights {
		root := math.Sqrt(w)
		if w > 0 {
			root /= s.Scale[p.Kind[i]]
			r.SetVec(i, root*s.r[i])
		}
		floats.Scale(root, j.RawRowView(i))
	}
	h, g := mat.NewSymDense(len(s.X), nil), mat.NewVecDense(len(s.X), nil)
	h.SymOuterK(1, j.T())
	g.MulVec(j.T(), r)
	for k, q := range p.Parameters {
		if priors && q.PriorSD > 0 {
			h.SetSym(k, k, h.At(k, k)+1/(q.PriorSD*q.PriorSD))
			g.SetVec(k, g.AtVec(k)+(s.X[k]-q.Prior)/(q.PriorSD*q.PriorSD))
		}
	}
	return h, g
}

// move solves (H + λ·diag H)·d = −g and returns x + d. A parameter that meets a bound stays
// there, and the rest is solved again.
func (p *Problem) move(x []float64, h *mat.SymDense, g *mat.VecDense, lambda float64) []float64 {
	n := len(x)
	var b, d mat.VecDense
	b.ScaleVec(-1, g)
	a := mat.DenseCopyOf(h)
	for i := range n {
		a.Set(i, i, a.At(i, i)*(1+lambda)+1e-12)
	}
	fixed, next := make([]bool, n), slices.Clone(x)
	for again := true; again; {
		again = false
		if d.SolveVec(a, &b) != nil && d.Len() == 0 {
			return next
		}
		for i, q := range p.Parameters {
			if fixed[i] {
				continue
			}
			next[i] = x[i] + d.AtVec(i)
			if next[i] >= q.Min && next[i] <= q.Max {
				continue
			}
			if next[i] = min(max(next[i], q.Min), q.Max); math.IsNaN(next[i]) {
				next[i] = x[i]
			}
			fixed[i], again = true, true
			a.SetRow(i, make([]float64, n))
			a.Set(i, i, 1)
			b.SetVec(i, next[i]-x[i])
		}
	}
	return next
}

// fitSteps sets each step so that residuals change by as much as they scatter, on average.
// A step at most doubles: what a short one sees is noise.
func (p *Problem) fitSteps(s *Solution) {
	h, _ := p.normal(s, false)
	weight := floats.Sum(s.weights)
	for k := range p.Parameters {
		q := &p.Parameters[k]
		fits := math.Sqrt(weight / max(h.At(k, k), math.SmallestNonzeroFloat64))
		q.Step = min(max(fits, q.Step/2), 2*q.Step, q.MaxStep)
	}
}
