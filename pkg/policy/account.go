package policy

import (
	"math"
	"slices"
)

// Account is how a router comes to a choice, for whoever keeps it.
type Account struct {
	// Scores are the candidates' in the policy's own unit, NaN where it gave none.
	// Lower ones are better if Lower. Filtered ones were not considered.
	Scores   []float64
	Lower    bool
	Filtered []bool
	// Scorers are the terms of the scores; Terms has, scorer by scorer, what each
	// candidate got from it, between 0 and 1.
	Scorers []string
	Terms   []float64

	scores []float64 // scratch
}

// Begin makes an empty account of n candidates.
func (a *Account) Begin(n int) {
	a.scores = slices.Grow(a.scores[:0], n)[:n]
	for i := range a.scores {
		a.scores[i] = math.NaN()
	}
	a.Scores, a.Lower, a.Scorers, a.Terms = nil, false, nil, a.Terms[:0]
	a.Filtered = slices.Grow(a.Filtered[:0], n)[:n]
	clear(a.Filtered)
}

// score notes a candidate's score. Nobody need keep the account.
func (a *Account) score(candidate int, score float64) {
	if a != nil {
		a.Scores = a.scores
		a.Scores[candidate] = score
	}
}

// Load notes a candidate's load: the lower the better.
func (a *Account) Load(candidate int, load float64) {
	if a != nil {
		a.Lower = true
		a.score(candidate, load)
	}
}

// total notes the scores of all candidates.
func (a *Account) total(scores []float64) {
	if a != nil {
		a.Scores = a.scores
		copy(a.Scores, scores)
	}
}

// term notes what one scorer gave.
func (a *Account) term(scores []float64) {
	if a != nil {
		for _, x := range scores {
			a.Terms = append(a.Terms, min(max(x, 0), 1))
		}
	}
}

// terms notes whose they are.
func (a *Account) terms(scorers []string) {
	if a != nil {
		a.Scorers = scorers
	}
}

// filtered notes that a candidate was left out.
func (a *Account) filtered(candidate int) {
	if a != nil {
		a.Filtered[candidate] = true
	}
}

// spread moves the account of those at the given places of n candidates to where
// they are among all.
func (a *Account) spread(places []int, n int) {
	if a == nil || len(places) == n {
		return
	}
	left := len(places)
	narrow := slices.Clone(a.Terms)
	a.Terms = slices.Grow(a.Terms[:0], n*len(a.Scorers))[:n*len(a.Scorers)]
	clear(a.Terms)
	for k := range a.Scorers {
		for i, at := range places {
			a.Terms[k*n+at] = narrow[k*left+i]
		}
	}
	if a.Scores != nil {
		for i := left - 1; i >= 0; i-- {
			if at := places[i]; at != i {
				a.Scores[at], a.Scores[i] = a.Scores[i], math.NaN()
			}
		}
	}
}
