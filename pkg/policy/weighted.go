package policy

import (
	"slices"
	"strings"
)

// defaultWeights are llm-d's.
var defaultWeights = map[string]any{"prefix-affinity": 3.0, "queue-depth": 2.0, "kv-utilization": 2.0}

// weightedParams are the weights, and how to pick a replica once the candidates have scores.
func weightedParams() []Param {
	return append(append(weights(), pickerParam, tieParam), tierWeights...)
}

// weights returns a weight parameter for each scorer.
func weights() (all []Param) {
	for _, s := range Scorers {
		w, _ := defaultWeights[s.Name].(float64)
		all = append(
			all,
			Param{Name: s.Name, Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{0, 5}, Default: w,
				Doc: "weight of: " + s.Doc},
		)
	}
	return all
}

// completeWeights sets the defaults of omitted parameters. Weights have defaults only if none is given.
func completeWeights(s *Spec) {
	weightless := true
	for name := range s.Params {
		weightless = weightless && !slices.Contains(Scorers.Names(), name)
	}
	if s.Params == nil {
		s.Params = map[string]any{}
	}
	if weightless {
		for name, w := range defaultWeights {
			s.Params[name] = w
		}
	}
	defaults := []Param{pickerParam, tieParam}
	if _, given := s.Params[tieredPrefix]; given {
		defaults = append(defaults, tierWeights...)
	}
	for _, p := range defaults {
		if _, given := s.Params[p.Name]; !given {
			s.Params[p.Name] = p.Default
		}
	}
}

type weighted struct {
	needs
	terms         []term
	scores, total []float64
	names         []string // of the terms
	picker        picker
	// simple are the scorers if all are simple and the picker takes the highest score; else nil.
	simple []simpleScorer
}

type term struct {
	weight float64
	scorer
}

// addTo adds the candidates' scores, limited to 0 to 1, times the weight to total, and records them in the trace, nil
// for none. scores is scratch.
func (t *term) addTo(total []float64, v *View, scores []float64, trace *Trace) {
	t.score(v, scores)
	total = total[:len(scores)]
	for i, s := range scores {
		if s > 1 { // min and max take longer
			s = 1
		} else if s <= 0 {
			s = 0
		}
		scores[i] = s
		total[i] += float64(t.weight * s)
	}
	trace.recordTerm(scores)
}

// newWeighted uses the scorers that have a weight.
func newWeighted(b *builder, s *Spec) Router {
	v, at, err := readParams(s.Type, zeroWeights(), s.Params)
	if err != nil {
		if at != "" {
			at = "." + at
		}
		b.fail("params"+at, "%v", err)
	}
	w := &weighted{picker: b.picker(v)}
	for _, e := range Scorers {
		if weight := v.number(e.Name); weight > 0 {
			t := term{weight, e.Value(v)}
			w.terms, w.names = append(w.terms, t), append(w.names, e.Name)
			w.needs |= needs(t.Needs())
		}
	}
	if len(w.terms) == 0 {
		b.fail("params", "all weights are 0; give at least one of %s a weight", strings.Join(Scorers.Names(), ", "))
	}
	if v.number(tieredPrefix) == 0 {
		for _, p := range tierWeights {
			b.markUnused(v, p, "the scorer "+tieredPrefix+" has no weight")
		}
	}
	w.scores, w.total = make([]float64, b.env.Candidates), make([]float64, b.env.Candidates)
	w.simple = w.simpleScorers()
	return w
}

// zeroWeights are the parameters with default 0 for the weights.
func zeroWeights() []Param {
	all := weightedParams()
	for i := range all {
		if slices.Contains(Scorers.Names(), all[i].Name) {
			all[i].Default = 0.0
		}
	}
	return all
}

func (w *weighted) Route(v *View) Choice {
	if x := v.extremes(); x != nil && w.simple != nil {
		return w.routeBlocks(v, x)
	}
	n := len(v.Replicas)
	scores, total := w.scores[:n], w.total[:n]
	clear(total)
	for i := range w.terms {
		w.terms[i].addTo(total, v, scores, v.Trace)
	}
	c := w.picker.pick(v, total)
	for _, t := range w.terms {
		if m, ok := t.scorer.(choiceRecorder); ok {
			m.recordChoice(v, c.Candidate)
		}
	}
	v.Trace.recordScorers(w.names)
	v.Trace.recordTotals(total)
	return c
}

// simpleScorers returns the scorers of the terms, nil unless all are simple and the highest score is picked.
func (w *weighted) simpleScorers() (all []simpleScorer) {
	for _, t := range w.terms {
		s, ok := t.scorer.(simpleScorer)
		if !ok || w.picker.name != pickMaxScore {
			return nil
		}
		all = append(all, s)
	}
	return all
}

// routeBlocks is Route without a look at each replica.
func (w *weighted) routeBlocks(v *View, x *Extremes) Choice {
	all, matched := x.all(), v.Matched
	if w.Needs()&NeedShadow == 0 {
		matched = nil
	}
	score := func(r *Replica) float64 {
		sum := 0.0
		for i, s := range w.simple {
			sum += float64(w.terms[i].weight * min(max(s.of(r, &all), 0), 1))
		}
		return sum
	}
	best, tied := x.highest(matched, score)
	c := Choice{Score: best, Reason: highestScore}
	if w.picker.ties.choose(&c, v, tied); v.Trace != nil {
		v.Trace.recordBest(x.best(v.Trace.Most, tied, matched, score), c.Candidate)
		w.recordScores(v, &all)
	}
	return c
}

// recordScores records the scores and terms of the best candidates.
func (w *weighted) recordScores(v *View, all *extreme) {
	t, n := v.Trace, len(v.Replicas)
	t.Terms = slices.Grow(t.Terms[:0], n*len(w.simple))[:n*len(w.simple)]
	for _, i := range t.Best {
		sum := 0.0
		for k, s := range w.simple {
			term := min(max(s.of(&v.Replicas[i], all), 0), 1)
			t.Terms[k*n+int(i)] = term
			sum += float64(w.terms[k].weight * term)
		}
		t.recordScore(int(i), sum)
	}
	t.recordScorers(w.names)
}

func (w *weighted) Clone() Router {
	c := &weighted{needs: w.needs, simple: w.simple, names: w.names, picker: w.picker,
		scores: make([]float64, len(w.scores)), total: make([]float64, len(w.total))}
	for _, t := range w.terms {
		c.terms = append(c.terms, term{t.weight, t.clone()})
	}
	return c
}
