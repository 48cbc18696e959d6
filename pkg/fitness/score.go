package fitness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Evaluate computes the fitness of one run. An error reports where the spec does not fit the run: an
// unknown class, a number that was not recorded, or an undefined one. The score is then 0.
func (f *Fitness) Evaluate(r *Run) (*Result, error) {
	if err := f.checkRun(r); err != nil {
		return nil, err
	}
	e := &evaluator{fitness: f, run: r}
	result := &Result{Gates: []Gate{}, Terms: []Term{}}
	for _, g := range f.gates {
		result.Gates = append(result.Gates, e.gate(g))
	}
	e.score(result)
	result.Objectives = e.values(f.objectives)
	result.Features = e.values(f.features)
	if e.err != nil {
		return nil, e.err
	}
	result.Warnings = append(result.Warnings, e.warnings...)
	result.Warnings = deduplicate(slices.Concat(result.Warnings, f.sampleWarnings(r), f.cheapWarnings(),
		f.untargetedWarnings(r)))
	result.Score = gatedScore(result.Gates, result.Value)
	return result, nil
}

// Rescore is the score alone, for bootstrap samples of a run that Evaluate has scored; NaN where the
// sample has no score.
func (f *Fitness) Rescore(r *Run) float64 {
	r.judgedClasses = f.Classes(r.Classes)
	e := &evaluator{fitness: f, run: r}
	var gates []Gate
	for _, g := range f.gates {
		gates = append(gates, e.gate(g))
	}
	e.path = "score"
	s := e.number(f.score).x
	if e.err != nil || !finite(s) {
		return math.NaN()
	}
	return gatedScore(gates, clampValue(s))
}

// score computes the score's value and its terms.
func (e *evaluator) score(result *Result) {
	e.path = "score"
	t := decompose(e.fitness.score)
	values := make([]float64, len(t.terms))
	for i, n := range t.terms {
		values[i] = e.definedNumber(n).x
	}
	s := t.compose(values)
	if e.err == nil && !finite(s) {
		e.fail(e.fitness.score, "the score is %v in this run", s)
	}
	names := t.names()
	for i, n := range t.terms {
		term := Term{Name: names[i], Expr: n.String(), Weight: t.weights[i], Value: values[i], Ideal: 1}
		if term.Weight < 0 {
			term.Ideal = 0
		}
		ideal := slices.Clone(values)
		ideal[i] = term.Ideal
		term.idealValue = max(clampValue(t.compose(ideal)), clampValue(s))
		term.Lost = passedScore(term.idealValue) - passedScore(clampValue(s))
		result.Terms = append(result.Terms, term)
	}
	if result.Value = clampValue(s); s > 1+1e-9 || s < 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("the score is %s and counts as %s: %s", formatNumber(s),
			formatNumber(math.Round(result.Value)), culprit(result.Terms, s)))
	}
}

// culprit names the term that moves the score out of its bounds.
func culprit(terms []Term, s float64) string {
	if len(terms) == 0 {
		return "it is a constant"
	}
	most := slices.MaxFunc(terms, func(a, b Term) int {
		x, y := a.Weight*a.Value, b.Weight*b.Value
		if s < 0 {
			x, y = -x, -y
		}
		return cmp.Compare(x, y)
	})
	return fmt.Sprintf("%s is %s, but should be in [0, 1]", most.Expr, formatNumber(most.Value))
}

// values computes objectives or features, nil where one is missing or undefined.
func (e *evaluator) values(of []expression) []Value {
	all := []Value{}
	for _, x := range of {
		e.path = x.path
		quiet := &evaluator{fitness: e.fitness, run: e.run, path: x.path}
		v := Value{Name: x.name}
		switch n := quiet.number(x.Node); {
		case quiet.err != nil:
			e.warn("%s is missing: %v", x.path, quiet.err)
		case n.missing != "":
			e.warn("%s is missing: %s", x.path, n.missing)
		case n.bad != nil:
			e.warn("%s is missing: %s is undefined", x.path, n.bad)
		default:
			v.Value = &n.x
		}
		all = append(all, v)
	}
	return all
}

// gatedScore is the fitness of a run with these gates and a score's value of s: in (0, 0.1] if a gate
// fails, lower with larger distances.
func gatedScore(gates []Gate, s float64) float64 {
	passed, sum := true, 0.0
	for _, g := range gates {
		passed = passed && g.Passed
		sum += g.Distance
	}
	if passed {
		return passedScore(s)
	}
	return 0.1 * (1 - min(sum/float64(len(gates)), 0.999))
}

// deduplicate removes repetitions.
func deduplicate(lines []string) []string {
	all := []string{}
	for _, l := range lines {
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}
