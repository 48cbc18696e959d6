package fitness

import (
	"fmt"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
)

// visit calls f for each node of the tree, parents first, and stops at the first error.
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

// checkWrapped rejects times that a run may lack outside of ratio and soft: a lower time is better, and
// only these functions define how much a missing one costs.
func (f *Fitness) checkWrapped(path string, n *expr.Node) error {
	if functionsByName[n.Op].acceptsMissing {
		return nil
	}
	if n.Name != "" {
		_, at := splitName(n.Name)
		if p, _ := metrics.LookupPath(at); p.Missing == metrics.MissingIsWorst {
			return f.errorAt(path, n.Line, n.Col,
				"%s may be missing, and lower is better: wrap it, as in ratio(base.%s, %s) or soft(%s, LIMIT, 3)",
				n.Name, at, n.Name, n.Name)
		}
	}
	for _, a := range n.Args {
		if err := f.checkWrapped(path, a); err != nil {
			return err
		}
	}
	return nil
}

// checkLiterals rejects constant arguments that are wrong for every run.
func (f *Fitness) checkLiterals(path string, tree *expr.Node) error {
	return visit(tree, func(n *expr.Node) error {
		at := func(i int, format string, args ...any) error {
			return f.errorAt(path, n.Args[i].Line, n.Args[i].Col, format, args...)
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
				return at(0, `the class must be a literal, as in attained("critical")`)
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

// checkWeights checks that weights are literals, not negative, and not all 0.
func (f *Fitness) checkWeights(path string, n *expr.Node) error {
	sum := 0.0
	for i := 0; i < len(n.Args); i += 2 {
		w, ok := n.Args[i].Value.(float64)
		if !ok || w < 0 {
			return f.errorAt(path, n.Args[i].Line, n.Args[i].Col,
				"weights come first in each pair and must be literals of at least 0: %s(0.7, x, 0.3, y)", n.Op)
		}
		sum += w
	}
	if sum == 0 {
		return f.errorAt(path, n.Line, n.Col, "all weights are 0")
	}
	return nil
}

// NeedsReferences reports which reference runs the expressions read.
func (f *Fitness) NeedsReferences() (baseline, parents bool) {
	for _, e := range f.expressions() {
		_ = visit(e.Node, func(n *expr.Node) error {
			tree, _ := splitName(n.Name)
			baseline, parents = baseline || tree == baseTree, parents || tree == parentTree
			return nil
		})
	}
	return baseline, parents
}

// CheckReferences returns an error if an expression reads a reference run that is not given.
func (f *Fitness) CheckReferences(haveBaseline, haveParent bool) error {
	missing := map[string]string{}
	if !haveBaseline {
		missing[baseTree] = "--baseline"
	}
	if !haveParent {
		missing[parentTree] = "--parent"
	}
	for _, e := range f.expressions() {
		err := visit(e.Node, func(n *expr.Node) error {
			if tree, _ := splitName(n.Name); missing[tree] != "" {
				return f.errorAt(e.path, n.Line, n.Col, "%s: there is no run to compare with; give %s RUN", n.Name,
					missing[tree])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expressions are all expressions, the score last.
func (f *Fitness) expressions() []expression {
	all := append([]expression{}, f.gates...)
	all = append(append(all, f.objectives...), f.features...)
	return append(all, expression{"score", "score", f.score})
}

// sampleWarnings report the percentiles in expressions that have too few samples, and the times that
// do not cover all offered requests: in the score these reduce the term, elsewhere they do not.
func (f *Fitness) sampleWarnings(r *Run) (warnings []string) {
	seen := map[string]bool{}
	all := f.expressions()
	all = append(all[len(all)-1:], all[:len(all)-1]...) // the score first
	for _, e := range all {
		_ = visit(e.Node, func(n *expr.Node) error {
			tree, path := splitName(n.Name)
			if cut := strings.LastIndexByte(path, '.'); cut > 0 && !seen[tree+path] {
				seen[tree+path] = true
				warnings = append(warnings, r.sampleWarnings(n.Name, tree, path[:cut], path[cut+1:],
					e.name == "score")...)
			}
			return nil
		})
	}
	return warnings
}

// sampleWarnings are those about one statistic of the distribution at path; score says whether the score
// reads it.
func (r *Run) sampleWarnings(name, tree, path, statistic string, score bool) (warnings []string) {
	count, ok := r.value(tree, path+".count")
	if !ok || statistic == "count" || statistic == "coverage" {
		return nil
	}
	percent := map[string]int64{"p50": 50, "p90": 90, "p95": 95, "p99": 99}[statistic]
	if needs := metrics.MinSamples(percent); percent > 0 && count < float64(needs) {
		warnings = append(warnings, fmt.Sprintf("%s has %.0f samples and needs %d", name, count, needs))
	}
	if covered, ok := r.value(tree, path+".coverage"); ok && covered < fullCoverage {
		effect := "the others do not count here"
		if score && tree == ownTree {
			effect = "its terms are multiplied by that share"
		}
		warnings = append(warnings, fmt.Sprintf("%s covers %s %% of the offered requests: %s", name,
			formatNumber(100*covered), effect))
	}
	return warnings
}

// fullCoverage is the share of the offered requests below which a time has a warning.
const fullCoverage = 0.99
