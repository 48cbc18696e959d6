package calibrate

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/mat"
)

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
	if f.solution.x[atAlpha3] < leastErrors*f.errorOf(f.solution, atAlpha3) {
		f.solution, *f.problem = was, bare // in one step it paid, and where that leads it does not
	}
	return nil
}

// leastErrors is how many standard errors alpha[3] must be.
const leastErrors = 2
