package fitness

import (
	"fmt"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
)

// visit calls f for each part of the tree, a whole before its parts, and stops at
// the first error.
func visit(n *expr.Node, f func(*expr.Node) error) error {
	if err := f(n); err != nil {
		return err
	}
	for _, a := range n.Args {
		if err := visit(a, f); err != nil {
			return err
		}
	}
	return nil
}

// refuseBare refuses times that a run may not have, where their absence would
// have no meaning: a score in which less is better must say how much better.
func (f *Fitness) refuseBare(path string, n *expr.Node) error {
	if calls[n.Op].wraps {
		return nil
	}
	if n.Name != "" {
		_, at := split(n.Name)
		if p, _ := metrics.LookupPath(at); p.Missing == metrics.MissingIsWorst {
			return f.fault(path, n.Line, n.Col, "%s is absent where nothing got that far, and less of it is better: wrap it, as in ratio(base.%s, %s) or soft(%s, LIMIT, 3)",
				n.Name, at, n.Name, n.Name)
		}
	}
	for _, a := range n.Args {
		if err := f.refuseBare(path, a); err != nil {
			return err
		}
	}
	return nil
}

// checkLiterals refuses what can be seen to be wrong without a run.
func (f *Fitness) checkLiterals(path string, tree *expr.Node) error {
	return visit(tree, func(n *expr.Node) error {
		at := func(i int, format string, args ...any) error {
			return f.fault(path, n.Args[i].Line, n.Args[i].Col, format, args...)
		}
		literal := func(i int) (float64, bool) {
			x, ok := n.Args[i].Value.(float64)
			return x, ok
		}
		switch n.Op {
		case "/":
			if x, ok := literal(1); ok && x == 0 {
				return at(1, "division by 0")
			}
		case "attained":
			if _, ok := n.Args[0].Value.(string); !ok {
				return at(0, `the class must be written out, as in attained("critical")`)
			}
		case "soft":
			if x, ok := literal(1); ok && x <= 0 {
				return at(1, "the limit must be above 0, is %v", x)
			}
			if x, ok := literal(2); ok && x < 0 {
				return at(2, "k must not be negative, is %v", x)
			}
		case "clamp":
			lo, ok := literal(1)
			if hi, ok2 := literal(2); ok && ok2 && lo > hi {
				return at(1, "the lower bound %v is above the upper one, %v", lo, hi)
			}
		case "wmean", "wgeo":
			return f.checkWeights(path, n)
		}
		return nil
	})
}

// checkWeights holds weights to be numbers that are written out, not negative, and
// not all 0.
func (f *Fitness) checkWeights(path string, n *expr.Node) error {
	sum := 0.0
	for i := 0; i < len(n.Args); i += 2 {
		w, ok := n.Args[i].Value.(float64)
		if !ok || w < 0 {
			return f.fault(path, n.Args[i].Line, n.Args[i].Col, "weights come first in each pair and must be numbers of 0 or more: %s(0.7, x, 0.3, y)", n.Op)
		}
		sum += w
	}
	if sum == 0 {
		return f.fault(path, n.Line, n.Col, "the weights are all 0")
	}
	return nil
}

// NeedsReferences reports which runs the expressions read beside the run itself.
func (f *Fitness) NeedsReferences() (baseline, parents bool) {
	for _, e := range f.expressions() {
		_ = visit(e.Node, func(n *expr.Node) error {
			tree, _ := split(n.Name)
			baseline, parents = baseline || tree == base, parents || tree == parent
			return nil
		})
	}
	return baseline, parents
}

// CheckReferences says where an expression reads a run that the call does not
// name.
func (f *Fitness) CheckReferences(haveBaseline, haveParent bool) error {
	missing := map[string]string{}
	if !haveBaseline {
		missing[base] = "--baseline"
	}
	if !haveParent {
		missing[parent] = "--parent"
	}
	for _, e := range f.expressions() {
		err := visit(e.Node, func(n *expr.Node) error {
			if tree, _ := split(n.Name); missing[tree] != "" {
				return f.fault(e.path, n.Line, n.Col, "%s: the call names no run to compare with; give %s RUN", n.Name, missing[tree])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expressions are all of them, the score last.
func (f *Fitness) expressions() []expression {
	all := append([]expression{}, f.gates...)
	all = append(append(all, f.objectives...), f.features...)
	return append(all, expression{"score", "score", f.score})
}

// caveats say which percentiles that the expressions read are of too few samples,
// and which times leave out requests that were not served: in the score these make the
// term less, elsewhere they are left out of the number.
func (f *Fitness) caveats(r *Run) (warnings []string) {
	seen := map[string]bool{}
	all := f.expressions()
	all = append(all[len(all)-1:], all[:len(all)-1]...) // the score first
	for _, e := range all {
		_ = visit(e.Node, func(n *expr.Node) error {
			tree, path := split(n.Name)
			if cut := strings.LastIndexByte(path, '.'); cut > 0 && !seen[tree+path] {
				seen[tree+path] = true
				warnings = append(warnings, r.caveats(n.Name, tree, path[:cut], path[cut+1:], e.name == "score")...)
			}
			return nil
		})
	}
	return warnings
}

// caveats are those about one statistic of the distribution at path, which the score
// reads or another expression.
func (r *Run) caveats(name, tree, path, statistic string, score bool) (warnings []string) {
	count, ok := r.at(tree, path+".count")
	if !ok || statistic == "count" || statistic == "coverage" {
		return nil
	}
	percent := map[string]int64{"p50": 50, "p90": 90, "p95": 95, "p99": 99}[statistic]
	if needs := metrics.MinSamples(percent); percent > 0 && count < float64(needs) {
		warnings = append(warnings, fmt.Sprintf("%s is of %.0f samples, and needs %d", name, count, needs))
	}
	if covered, ok := r.at(tree, path+".coverage"); ok && covered < served {
		what := "the others are not in it, and cost nothing here"
		if score && tree == own {
			what = "terms in which it stands count by that share"
		}
		warnings = append(warnings, fmt.Sprintf("%s is of %s %% of what was offered: %s", name, short(100*covered), what))
	}
	return warnings
}

// served is the share of the offered requests below which a time is told to leave
// out the others.
const served = 0.99
