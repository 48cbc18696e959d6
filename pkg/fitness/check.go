package fitness

import (
	"iter"
	"slices"

	"blis/pkg/expr"
	"blis/pkg/metrics"
)

// nodes are all nodes of the tree, parents first.
func nodes(n *expr.Node) iter.Seq[*expr.Node] {
	return func(yield func(*expr.Node) bool) {
		visit(n, yield)
	}
}

// visit calls f for the nodes until it returns false, and reports whether it never did.
func visit(n *expr.Node, f func(*expr.Node) bool) bool {
	return f(n) && !slices.ContainsFunc(n.Args, func(a *expr.Node) bool { return !visit(a, f) })
}

// reads are the names of the numbers that the expressions read, with the node and the expression of
// each.
func reads(all ...expression) iter.Seq2[string, read] {
	return func(yield func(string, read) bool) {
		for _, e := range all {
			for n := range nodes(e.Node) {
				name := n.Name
				if n.Op == "attained" {
					name = attainedName(n)
				}
				if name != "" && !yield(name, read{n, &e}) {
					return
				}
			}
		}
	}
}

// read is where an expression reads a number.
type read struct {
	*expr.Node
	of *expression
}

// attainedName is the name of the number that a call of attained reads.
func attainedName(n *expr.Node) string {
	return ownTree + "." + metrics.SubPath("cls", n.Args[0].Value.(string)) + ".goodput.ratio"
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
	for n := range nodes(tree) {
		at := func(i int, format string, args ...any) error {
			return f.errorAt(path, n.Args[i].Line, n.Args[i].Col, format, args...)
		}
		switch n.Op {
		case "/":
			if x, ok := literal(n, 1); ok && x == 0 {
				return at(1, "division by 0")
			}
		case "attained":
			if _, ok := n.Args[0].Value.(string); !ok {
				return at(0, `the class must be a literal, as in attained("critical")`)
			}
		case "soft":
			if x, ok := literal(n, 1); ok && x <= 0 {
				return at(1, "the limit must be above 0, is %v", x)
			}
			if x, ok := literal(n, 2); ok && x < 0 {
				return at(2, "k must not be negative, is %v", x)
			}
		case "clamp":
			lo, ok := literal(n, 1)
			if hi, ok2 := literal(n, 2); ok && ok2 && lo > hi {
				return at(1, "the lower bound %v is above the upper one, %v", lo, hi)
			}
		case "wmean", "wgeo":
			if err := f.checkLiteralWeights(path, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// literal returns an argument of n, and whether it is a constant.
func literal(n *expr.Node, i int) (x float64, ok bool) {
	x, ok = n.Args[i].Value.(float64)
	return x, ok
}

// checkLiteralWeights checks that weights are literals, not negative, and not all 0.
func (f *Fitness) checkLiteralWeights(path string, n *expr.Node) error {
	sum := 0.0
	for i := 0; i < len(n.Args); i += 2 {
		w, ok := literal(n, i)
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
	for name := range reads(f.expressions()...) {
		tree, _ := splitName(name)
		baseline, parents = baseline || tree == baseTree, parents || tree == parentTree
	}
	return baseline, parents
}

// CheckReferences returns an error if an expression reads a reference run that is not given.
func (f *Fitness) CheckReferences(haveBaseline, haveParent bool) error {
	for name, at := range reads(f.expressions()...) {
		tree, _ := splitName(name)
		if tree == baseTree && !haveBaseline || tree == parentTree && !haveParent {
			flag := map[string]string{baseTree: "--baseline", parentTree: "--parent"}[tree]
			return f.errorAt(at.of.path, at.Line, at.Col, "%s: there is no run to compare with; give %s RUN",
				name, flag)
		}
	}
	return nil
}

// expressions are all expressions, the score last.
func (f *Fitness) expressions() []expression {
	return slices.Concat(f.gates, f.objectives, f.features, []expression{f.scoreExpression()})
}

func (f *Fitness) scoreExpression() expression { return expression{"score", "score", f.score} }
