package calibrate

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// folds are the parts of a recording that alpha[3] must foretell, each from the rest.
const folds = 5

// earn adds alpha[3], a frontend's time for each sequence that decodes, to the search
// where it pays: where it foretells stretches of time that were held back clearly better
// than the other coefficients do without it. A stretch is foretold by one step of Gauss
// and Newton on the others. It goes again where the search that follows does not find it
// clear of 0.
func (f *clientFit) earn(ctx context.Context) error {
	p := *f.problem
	p.parameters = append(slices.Clone(p.parameters), parameter{name: names[alpha3], most: 1e6, step: 10, longest: f.solution.x[atLevel] / max(1, f.load.sequences)})
	s := *f.solution
	s.x = append(slices.Clone(s.x), 0)
	column, err := p.effect(ctx, s.x, atAlpha3)
	if err != nil {
		return err
	}
	s.jacobian = mat.DenseCopyOf(s.jacobian.Grow(0, 1))
	s.jacobian.SetCol(atAlpha3, column)
	with := p.foretell(&s, f.foldOf())
	p.parameters[atAlpha3].most = 0
	without := p.foretell(&s, f.foldOf())
	if !clearer(without, with, len(s.r)) {
		return nil
	}
	p.parameters[atAlpha3].most = 1e6
	was, bare := f.solution, *f.problem
	f.problem.parameters = p.parameters
	s.x = p.step(&s, 0)
	if f.solution, err = f.settle(ctx, &s, 3); err != nil {
		return err
	}
	if f.solution.x[atAlpha3] < leastErrors*deviationOf(append(f.moves(f.solution), f.solution.wander...), atAlpha3) {
		f.solution, *f.problem = was, bare // in one step it paid, and where that leads it does not
	}
	return nil
}

// leastErrors is how many standard errors alpha[3] must be.
const leastErrors = 2

// deviationOf is the standard error of a parameter, from moves of it.
func deviationOf(moves [][]float64, parameter int) float64 {
	sum := 0.0
	for _, m := range moves {
		sum += m[parameter] * m[parameter]
	}
	return math.Sqrt(sum)
}

// foldOf says for each residual which stretch of its run it is in.
func (f *clientFit) foldOf() (of []int) {
	for _, r := range f.runs {
		for i := range r.blocks {
			for range features {
				of = append(of, i*folds/len(r.blocks))
			}
		}
	}
	return of
}

// foretell is the loss of all folds, each where the others lead.
func (p *problem) foretell(s *solution, fold []int) float64 {
	sum := 0.0
	for k := range folds {
		h, g := p.normal(s, func(i int) float64 {
			if fold[i] == k {
				return 0
			}
			return 1
		})
		to := p.move(s.x, h, g, 0)
		r := slices.Clone(s.r)
		for i := range r {
			for k := range to {
				r[i] += s.jacobian.At(i, k) * (to[k] - s.x[k])
			}
			if fold[i] != k {
				r[i] = 0
			}
		}
		sum += p.misfit(s, r)
	}
	return sum
}
