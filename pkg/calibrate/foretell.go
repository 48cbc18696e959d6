package calibrate

import "slices"

// folds are the stretches of a recording that are foretold, each from the rest.
const folds = 5

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
