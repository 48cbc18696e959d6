package calibrate

import (
	"context"
	"slices"
)

// variedContexts is by what factor the middle 80 % of contexts differ where data may tell
// what they cost from what a sequence costs.
const variedContexts = 1.5

// doubtContext leaves beta[3] out where it foretells stretches of time that were held back
// worse than a line without it. Where contexts are alike it stays what physics says: such
// data cannot tell it from beta[2].
func (f *clientFit) doubtContext(ctx context.Context) error {
	each := f.prior.Beta[3] * f.load.context
	if each == 0 || !f.contextsVary() {
		return nil
	}
	p := f.prior
	p.Beta[2], p.Beta[3] = p.Beta[2]+each, 0
	without := posed(f.runs, p, f.load, f.before)
	without.problem.spread = f.problem.spread
	x := slices.Clone(f.solution.x)
	x[atLevel], x[atBeta2] = x[atLevel]+f.load.sequences*each, x[atBeta2]+each
	var err error
	if without.solution, err = without.settle(ctx, &solution{x: x}, 3); err != nil {
		return err
	}
	without.solution.spread = f.solution.spread // one scale for both
	without.problem.weigh(without.solution)
	was, is := f.problem.foretell(f.solution, f.foldOf()), without.problem.foretell(without.solution, f.foldOf())
	if is < was {
		f.prior, f.problem, f.solution = without.prior, without.problem, without.solution
	}
	return nil
}

// contextsVary reports whether contexts differ by variedContexts.
func (f *clientFit) contextsVary() bool {
	var all []float64
	for _, r := range f.runs {
		for i, q := range r.requests {
			if r.used[i] {
				all = append(all, float64(q.InputTokens)+float64(q.OutputTokens)/2)
			}
		}
	}
	slices.Sort(all)
	n := len(all)
	return n > 0 && all[n*9/10] > variedContexts*all[n/10]
}
