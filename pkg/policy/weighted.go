package policy

import (
	"fmt"
	"strings"

	"blis/pkg/named"
)

// scorer puts a score between 0 and 1 for each candidate into scores.
type scorer func(v *View, scores []float64)

// Scorers are the terms that weighted knows, in the order in which they are
// summed.
var Scorers = named.Table[scorer]{
	{Name: "prefix-affinity", Doc: "share of the prompt's full blocks that the router sent there before", Value: prefixAffinity},
	{Name: "queue-depth", Doc: "1 for the shortest wait queue, 0 for the longest", Value: queueDepth},
}

// Defaults returns the parameters that a policy has if none is given: for
// weighted, llm-d's weights.
func Defaults(name string) map[string]float64 {
	if name == "weighted" {
		return map[string]float64{"prefix-affinity": 3, "queue-depth": 2}
	}
	return nil
}

type weighted struct {
	terms         []term
	prefix        bool
	scores, total []float64
}

type term struct {
	weight float64
	score  scorer
}

// newWeighted takes a weight for each scorer it shall use; without any it uses
// the default ones.
func newWeighted(s Spec) (Router, error) {
	if err := s.Check(Scorers.Names()...); err != nil {
		return nil, err
	}
	weights := s.Params
	if len(weights) == 0 {
		weights = Defaults(s.Type)
	}
	w := &weighted{}
	for _, e := range Scorers {
		weight, ok := weights[e.Name]
		if !(weight >= 0) || weight > maxWeight {
			return nil, fmt.Errorf("weight of %s must be between 0 and %g, is %g", e.Name, maxWeight, weight)
		}
		if ok && weight > 0 {
			w.terms = append(w.terms, term{weight, e.Value})
			w.prefix = w.prefix || e.Name == "prefix-affinity"
		}
	}
	if len(w.terms) == 0 {
		return nil, fmt.Errorf("all weights are 0; give at least one of %s a weight", strings.Join(Scorers.Names(), ", "))
	}
	return w, nil
}

const maxWeight = 1e6

func (w *weighted) Route(v *View) Choice {
	n := len(v.Replicas)
	if cap(w.scores) < n {
		w.scores, w.total = make([]float64, n), make([]float64, n)
	}
	scores, total := w.scores[:n], w.total[:n]
	clear(total)
	for _, t := range w.terms {
		t.score(v, scores)
		for i, s := range scores {
			total[i] += float64(t.weight * min(max(s, 0), 1))
		}
	}
	best := 0
	for i, s := range total {
		if s > total[best] {
			best = i
		}
	}
	return Choice{Candidate: best, Score: total[best]}
}

func (w *weighted) Prefix() bool { return w.prefix }

func prefixAffinity(v *View, scores []float64) {
	for i := range v.Replicas {
		r := &v.Replicas[i]
		scores[i] = 0
		if r.Matched > 0 {
			scores[i] = float64(r.Matched) / float64(r.Blocks)
		}
	}
}

func queueDepth(v *View, scores []float64) {
	low, high := v.Replicas[0].QueueDepth, v.Replicas[0].QueueDepth
	for i := range v.Replicas {
		low, high = min(low, v.Replicas[i].QueueDepth), max(high, v.Replicas[i].QueueDepth)
	}
	for i := range v.Replicas {
		scores[i] = 1
		if high > low {
			scores[i] = float64(high-v.Replicas[i].QueueDepth) / float64(high-low)
		}
	}
}
