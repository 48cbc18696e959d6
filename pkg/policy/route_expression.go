package policy

import (
	"math"

	"blis/pkg/expr"
)

// routeExpression takes the highest score among the candidates for which the
// filter is true, or among all if it is true for none, which counts as a failure
// of the filter. Where an expression fails for any candidate, the decision is
// least-loaded's.
type routeExpression struct {
	scope         candidate
	filter, score *formula[candidate] // filter may be nil
	fallback      load
	kept          []bool
}

func newRouteExpression(b *builder, s *Spec) Router {
	b.refuse(s, "score", "filter")
	b.want(s.Score, "score", "replica.prefix_match - 0.1 * replica.queue_depth")
	r := &routeExpression{score: formulaAt(b, "score", s.Score, candidateSignals(), expr.Number), kept: make([]bool, b.env.Replicas)}
	if s.Filter != "" {
		r.filter = formulaAt(b, "filter", s.Filter, candidateSignals(), expr.Flag)
	}
	return r
}

func (e *routeExpression) Route(v *View) Choice {
	e.scope.View = v
	filtered, ok := e.keep(v)
	if !ok {
		return e.fallen(v)
	}
	best := Choice{Candidate: -1, Score: math.Inf(-1), Why: "highest score", Rule: e.score.rule.Path}
	for i := range v.Replicas {
		if filtered && !e.kept[i] {
			v.Account.filtered(i)
			continue
		}
		e.scope.replica = &v.Replicas[i]
		x, ok := e.score.number(&e.scope)
		if !ok {
			return e.fallen(v)
		}
		v.Account.score(i, x)
		if best.Candidate < 0 || x > best.Score {
			best.Candidate, best.Score = i, x
		}
	}
	return best
}

// fallen is the choice where an expression failed.
func (e *routeExpression) fallen(v *View) Choice {
	c := e.fallback.least(v)
	c.Why, c.Rule = "an expression failed: least load", e.score.rule.Path
	return c
}

// keep evaluates the filter and reports whether it shall be heeded.
func (e *routeExpression) keep(v *View) (filtered, ok bool) {
	if e.filter == nil {
		return false, true
	}
	for i := range v.Replicas {
		e.scope.replica = &v.Replicas[i]
		if e.kept[i], ok = e.filter.flag(&e.scope); !ok {
			return false, false
		}
		filtered = filtered || e.kept[i]
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
	return &routeExpression{filter: e.filter.clone(), score: e.score.clone(), fallback: e.fallback, kept: make([]bool, len(e.kept))}
}
