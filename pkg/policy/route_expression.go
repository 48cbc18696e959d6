package policy

import (
	"math"

	"blis/pkg/expr"
)

// routeExpression chooses the highest score among the candidates that pass the filter, or among all
// if none passes, which counts as a failure of the filter. If an expression fails for any
// candidate, it falls back to least-loaded.
type routeExpression struct {
	scope         candidate
	filter, score *formula[candidate] // filter may be nil
	fallback      loadMetric
	ties          ties
	passed        []bool
	scores        []float64
}

func newRouteExpression(b *builder, s *Spec) Router {
	b.allowOnly(s, "score", "filter", "params")
	b.requireText(s.Score, "score", "replica.prefix_match - 0.1 * replica.queue_depth")
	score := newFormula(b, "score", s.Score, candidateSignals(), expr.Number)
	var filter *formula[candidate]
	if s.Filter != "" {
		filter = newFormula(b, "filter", s.Filter, candidateSignals(), expr.Flag)
	}
	return newScoredRoute(b, s, score, filter)
}

// newScoredRoute makes a policy of a score and a filter, which may be nil.
func newScoredRoute(b *builder, s *Spec, score, filter *formula[candidate]) Router {
	return &routeExpression{score: score, filter: filter, ties: b.ties(b.params(s, tieParams)),
		passed: make([]bool, b.env.Candidates), scores: make([]float64, b.env.Candidates)}
}

func (e *routeExpression) Route(v *View) Choice {
	e.scope.View = v
	filtered, ok := e.applyFilter(v)
	if !ok {
		return e.fallbackChoice(v)
	}
	best := Choice{Candidate: -1, Score: math.Inf(-1), Reason: "highest score", Rule: e.score.rule.Path}
	n := 0
	for i := range v.Replicas {
		if filtered && !e.passed[i] {
			v.Trace.recordFiltered(i)
			continue
		}
		e.scope.replica = &v.Replicas[i]
		x, ok := e.score.number(&e.scope)
		if !ok {
			return e.fallbackChoice(v)
		}
		v.Trace.recordScore(i, x)
		if e.scores[i] = x; best.Candidate < 0 || x > best.Score {
			best.Candidate, best.Score, n = i, x, 0
		}
		if x == best.Score {
			n++
		}
	}
	e.ties.settle(&best, v, n,
		func(i int) bool { return e.scores[i] == best.Score && (!filtered || e.passed[i]) })
	return best
}

// fallbackChoice is the choice when an expression fails.
func (e *routeExpression) fallbackChoice(v *View) Choice {
	c := e.fallback.leastLoaded(v, &e.ties)
	c.Reason, c.Rule = "an expression failed: least load", e.score.rule.Path
	return c
}

// applyFilter evaluates the filter. filtered says whether any candidate passed, ok whether the
// filter could be evaluated.
func (e *routeExpression) applyFilter(v *View) (filtered, ok bool) {
	if e.filter == nil {
		return false, true
	}
	for i := range v.Replicas {
		e.scope.replica = &v.Replicas[i]
		if e.passed[i], ok = e.filter.flag(&e.scope); !ok {
			return false, false
		}
		filtered = filtered || e.passed[i]
	}
	if !filtered {
		e.filter.rule.Failed++
	}
	return filtered, true
}

func (e *routeExpression) Needs() Needs {
	n := e.score.needs
	if e.filter != nil {
		n |= e.filter.needs
	}
	return n
}

func (e *routeExpression) Rules() []*Rule {
	if e.filter == nil {
		return []*Rule{e.score.rule}
	}
	return []*Rule{e.filter.rule, e.score.rule}
}

func (e *routeExpression) Clone() Router {
	return &routeExpression{filter: e.filter.clone(), score: e.score.clone(), fallback: e.fallback,
		ties: e.ties, passed: make([]bool, len(e.passed)), scores: make([]float64, len(e.scores))}
}
