package policy

import (
	"math"
	"slices"
)

// Trace records how a router comes to a choice. All methods except Reset do nothing on nil.
type Trace struct {
	// Scores are the candidates' scores in the policy's own unit, NaN where it gave none. Lower ones
	// are better if LowerIsBetter. Filtered candidates were not considered.
	Scores        []float64
	LowerIsBetter bool
	Filtered      []bool
	// Scorers names the terms of the scores; Terms holds, scorer by scorer, each candidate's term
	// between 0 and 1.
	Scorers []string
	Terms   []float64
	// Most is how many of the best candidates are needed, of equal ones those with the lowest indexes; 0: all. A router
	// that recorded only these and the chosen one lists them in Best, which is else nil.
	Most int
	Best []int32

	scores []float64 // scratch
	best   []int32   // that of Best
}

// Reset empties the trace for n candidates.
func (t *Trace) Reset(n int) {
	t.scores = slices.Grow(t.scores[:0], n)[:n]
	for i := range t.scores {
		t.scores[i] = math.NaN()
	}
	t.Scores, t.LowerIsBetter, t.Scorers, t.Terms, t.Best = nil, false, nil, t.Terms[:0], nil
	t.Filtered = slices.Grow(t.Filtered[:0], n)[:n]
	clear(t.Filtered)
}

// recordScore records a candidate's score.
func (t *Trace) recordScore(candidate int, score float64) {
	if t != nil {
		t.Scores = t.scores
		t.Scores[candidate] = score
	}
}

// RecordLoad records a candidate's load; lower is better.
func (t *Trace) RecordLoad(candidate int, load float64) {
	if t != nil {
		t.LowerIsBetter = true
		t.recordScore(candidate, load)
	}
}

// recordTotals records the scores of all candidates.
func (t *Trace) recordTotals(scores []float64) {
	if t != nil {
		t.Scores = t.scores
		copy(t.Scores, scores)
	}
}

// recordTerm records all candidates' scores by one scorer, between 0 and 1.
func (t *Trace) recordTerm(scores []float64) {
	if t != nil {
		t.Terms = append(t.Terms, scores...)
	}
}

// recordScorers records the names of the scorers.
func (t *Trace) recordScorers(scorers []string) {
	if t != nil {
		t.Scorers = scorers
	}
}

// recordFiltered records that a candidate was excluded.
func (t *Trace) recordFiltered(candidate int) {
	if t != nil {
		t.Filtered[candidate] = true
	}
}

// expand rewrites a trace of the candidates at the given indexes as a trace of all n candidates.
func (t *Trace) expand(indexes []int, n int) {
	if t == nil || len(indexes) == n {
		return
	}
	kept := len(indexes)
	narrow := slices.Clone(t.Terms)
	t.Terms = slices.Grow(t.Terms[:0], n*len(t.Scorers))[:n*len(t.Scorers)]
	clear(t.Terms)
	for k := range t.Scorers {
		for i, at := range indexes {
			t.Terms[k*n+at] = narrow[k*kept+i]
		}
	}
	if t.Scores != nil {
		for i := kept - 1; i >= 0; i-- {
			if at := indexes[i]; at != i {
				t.Scores[at], t.Scores[i] = t.Scores[i], math.NaN()
			}
		}
	}
}

// recordBest begins the record of the best candidates, those in best and the chosen one.
func (t *Trace) recordBest(best []int32, chosen int) {
	t.best = append(t.best[:0], best...)
	if !slices.Contains(best, int32(chosen)) {
		t.best = append(t.best, int32(chosen))
	}
	t.Best = t.best
}
