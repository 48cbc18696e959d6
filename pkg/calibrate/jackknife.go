package calibrate

import (
	"math"
	"slices"

	"blis/pkg/stat"

	"gonum.org/v1/gonum/mat"
)

// intervals are those of all coefficients: of the data alone, about where these lead, and
// with what step times may be off a line (doubts), about the solution.
//
// The data's scatter is that of a jackknife: where the solution goes on the plane that it
// is the minimum of, weighed anew, without each stretch of blocks of time. What few
// stretches leave open is neither lost by their bending the solution towards themselves,
// as it is where residuals are drawn from, nor by their number, for which there is
// Student's distribution (MacKinnon, Nielsen and Webb, Cluster-robust inference, Journal
// of Econometrics 232, 2023). A fit anew would play thousands of runs, and end at the
// same place but for what is not linear.
func (f *clientFit) intervals() (data, doubts []Interval) {
	moves := f.moves(f.told)
	t := stat.TQuantile(max(1, len(moves)-1), level)
	moves = append(moves, f.told.wander...)
	along := f.problem.along(f.told, atBeta2)
	var off []float64 // a line, in standard deviations
	believed := make([][]float64, len(moves))
	for _, v := range along {
		off = append(off, v*f.slope.uneven)
	}
	for i, m := range moves {
		for k, v := range m {
			believed[i] = append(believed[i], v+along[k]*(f.slope.trust-1)*m[atBeta2])
		}
	}
	z := stat.TQuantile(math.MaxInt32, level)
	told := f.coefficients(f.told.x)
	for k := range names {
		own, wide, line := f.squares(k, moves...), f.squares(k, believed...), f.squares(k, off)
		data = append(data, about(told.list()[k], t*math.Sqrt(own)))
		doubts = append(doubts, about(f.list()[k], math.Sqrt(t*t*wide+z*z*line)))
	}
	return data, doubts
}

// about is an interval of coefficients that cannot be negative.
func about(middle, half float64) Interval {
	return Interval{max(0, middle-half), middle + half}
}

// squares is the sum of squares of how much a coefficient changes where parameters move.
func (f *clientFit) squares(coefficient int, moves ...[]float64) float64 {
	sum := 0.0
	for _, m := range moves {
		d := 0.0
		switch coefficient {
		case alpha0:
			d = m[atAlpha0]
		case alpha3:
			if len(m) > atAlpha3 {
				d = m[atAlpha3]
			}
		case beta0:
			d = m[atLevel] - f.load.sequences*m[atBeta2]
		case beta1:
			d = m[atBeta1]
		case beta2:
			d = m[atBeta2]
		}
		sum += d * d
	}
	return sum
}

// moves are how the parameters of a solution change without each stretch of blocks, so
// scaled that the sum of their squares is a variance. They go beyond bounds: at one they
// would be cut, and the interval with them.
func (f *clientFit) moves(s *solution) [][]float64 {
	p := *f.problem
	p.parameters = slices.Clone(p.parameters)
	for k := range p.parameters {
		p.parameters[k].least, p.parameters[k].most = math.Inf(-1), math.Inf(1)
	}
	p.parameters[atBeta2].spread = 0 // as told by the data
	here := &flat{s.x, s.r, s.jacobian}
	all := p.lowest(here, s.spread).x
	stretch, n := f.stretches()
	var moves [][]float64
	for left := range n {
		p.worth = func(i int) float64 {
			if stretch[i/features] == left {
				return 0
			}
			return f.problem.worth(i)
		}
		m := p.lowest(here, s.spread).x
		for k := range m {
			m[k] = (m[k] - all[k]) * math.Sqrt(float64(n-1)/float64(n))
		}
		moves = append(moves, m)
	}
	return moves
}

// errorOf is the standard error of a parameter of a solution.
func (f *clientFit) errorOf(s *solution, parameter int) float64 {
	return deviationOf(append(f.moves(s), s.wander...), parameter)
}

// deviationOf is the standard error of a parameter, from moves of it.
func deviationOf(moves [][]float64, parameter int) float64 {
	sum := 0.0
	for _, m := range moves {
		sum += m[parameter] * m[parameter]
	}
	return math.Sqrt(sum)
}

// A short run has so many stretches, as few and as long as a scatter can be told of: what
// one block missed its neighbours miss by too, several of them where requests queue. A
// long run's have so many blocks.
const (
	stretchesOfRun = 5
	longestStretch = 6
)

// stretches number for each block the stretch of neighbours that it is in.
func (f *clientFit) stretches() (of []int, n int) {
	for _, r := range f.runs {
		blocks := len(r.blocks)
		own := min(blocks, max(stretchesOfRun, blocks/longestStretch))
		for i := range blocks {
			of = append(of, n+i*own/blocks)
		}
		n += own
	}
	return of, n
}

// along is how the parameters move where one of them is moved by 1 and the others
// follow as the data want.
func (p *problem) along(s *solution, fixed int) []float64 {
	h, _ := p.normal(s, always)
	n := len(s.x)
	a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		for k := range n {
			if i != fixed && k != fixed {
				a.Set(i, k, h.At(i, k))
			}
		}
		b.SetVec(i, -h.At(i, fixed))
	}
	a.Set(fixed, fixed, 1)
	b.SetVec(fixed, 1)
	var d mat.VecDense
	out := make([]float64, n)
	if d.SolveVec(a, b) != nil {
		out[fixed] = 1 // the others are not told: they stay
		return out
	}
	for i := range n {
		out[i] = d.AtVec(i)
	}
	return out
}
