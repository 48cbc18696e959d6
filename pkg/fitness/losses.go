package fitness

import (
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
)

// Loss is the fitness that a run loses by one of its numbers.
type Loss struct {
	// Term is the name of the term, or of the gate that failed; Path is that of the number in the tree m.
	Term, Path string
	// Lost is how much higher the score would be if the number were ideal: the loss of its term, of which each
	// number has its part.
	Lost float64
	// Limit is the largest value of a time at which nothing is lost; 0 for other numbers.
	Limit float64
	// Served: only requests that have the time count; see the function served.
	Served bool
	// Weights are those of classes, where they count in the number; else nil.
	Weights map[string]float64
}

// minLost is the smallest loss that is worth an explanation.
const minLost = 1e-6

// Losses divides what a run loses by the numbers that terms and failed gates read. r and result are those of
// Evaluate.
func (f *Fitness) Losses(r *Run, result *Result) (all []Loss) {
	r.judgedClasses = f.Classes(r.Classes)
	t := decompose(f.score)
	for i, term := range result.Terms {
		all = append(all, f.divide(r, term.Name, term.Lost, readsOf(t.terms[i]), func(e *evaluator) float64 {
			return t.weights[i] * e.number(t.terms[i]).x
		})...)
	}
	distances := 0.0
	for _, g := range result.Gates {
		distances += g.Distance
	}
	for i, g := range result.Gates {
		if g.Passed {
			continue
		}
		lost := (passedScore(result.Value) - result.Score) * g.Distance / distances
		all = append(all, f.divide(r, "gate "+g.Name, lost, readsOf(f.gates[i].Node), func(e *evaluator) float64 {
			return -e.condition(f.gates[i].Node).distance
		})...)
	}
	return slices.DeleteFunc(all, func(l Loss) bool { return l.Lost < minLost })
}

// readsOf are the numbers of the run itself that an expression reads, each once.
func readsOf(n *expr.Node) (all []Loss) {
	var collect func(n *expr.Node, served bool)
	collect = func(n *expr.Node, served bool) {
		name := n.Name
		if n.Op == "attained" {
			name = attainedName(n)
		}
		tree, path := splitName(name)
		same := func(l Loss) bool { return l.Path == path && l.Served == served }
		if name != "" && tree == ownTree && !slices.ContainsFunc(all, same) {
			all = append(all, Loss{Path: path, Served: served})
		}
		for _, a := range n.Args {
			collect(a, served || n.Op == "served")
		}
	}
	collect(n, false)
	return all
}

// divide divides the loss of a term or gate between the numbers that it reads, by what each would gain if it were
// ideal. value is to be maximized.
func (f *Fitness) divide(r *Run, term string, lost float64, numbers []Loss, value func(*evaluator) float64) []Loss {
	at := func(l *Loss, x float64) float64 {
		return value(&evaluator{fitness: f, run: r.with(l, x)})
	}
	now, sum := value(&evaluator{fitness: f, run: r}), 0.0
	for i := range numbers {
		l := &numbers[i]
		l.Term = term
		best := at(l, r.idealOf(l.Path))
		if l.Lost = max(0, best-now); !finite(l.Lost) {
			l.Lost = 0
		}
		if l.Path == attainmentPath && len(f.Weights) > 0 {
			l.Lost, l.Weights = 1, f.Weights // classes decide: no single number can be replaced
		}
		if sum += l.Lost; isTime(l.Path) {
			l.Limit = limit(best, func(x float64) float64 { return at(l, x) })
		}
	}
	for i := range numbers {
		numbers[i].Lost *= lost / max(sum, minLost)
	}
	return numbers
}

// maxTimeMS is above all times of runs.
const maxTimeMS = 1e9

// limit is the largest time whose value is still the best one.
func limit(best float64, value func(ms float64) float64) (ms float64) {
	for low, high := 0.0, maxTimeMS; high-low > float64(1e-6*high)+1e-6; {
		if mid := (low + high) / 2; value(mid) >= best {
			low, ms = mid, mid
		} else {
			high = mid
		}
	}
	return ms
}

// isTime reports whether path is a latency.
func isTime(path string) bool { return coveragePath(path) != "" }

// idealOf is the best value of the number at a path, as far as one is known: else twice its value.
func (r *Run) idealOf(path string) float64 {
	p, _ := metrics.LookupPath(path)
	now, _ := r.value(ownTree, path)
	at := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case at == "offered": // the load: nothing to improve
		return now
	case !p.HigherIsBetter:
		return 0
	case at == "completed" || at == "admitted":
		offered, _ := r.value(ownTree, strings.TrimSuffix(path, at)+"offered")
		return offered
	case slices.Contains([]string{"ratio", "attainment", "jain", "coverage", "admission_rate", "prefix_hit_ratio"}, at):
		return 1
	}
	return 2 * now
}

// with is the run with x instead of a number, and for a time with as many requests as should have it.
func (r *Run) with(l *Loss, x float64) *Run {
	changed := map[string][]float64{}
	for _, path := range []string{l.Path, r.targetedPath(ownTree, l.Path)} {
		changed[path] = []float64{x}
		if at := coveragePath(path); at != "" {
			changed[at] = []float64{1}
		}
	}
	return r.InSample(0, changed, nil, nil)
}
