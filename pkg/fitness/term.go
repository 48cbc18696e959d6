package fitness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/expr"
)

// composition is how a score is composed of its terms.
type composition struct {
	terms   []*expr.Node
	weights []float64
	// constant is that of a sum.
	constant float64
	// compose computes the score from the values of the terms.
	compose func(values []float64) float64
}

// decompose divides a score into terms: the arguments of wmean, wgeo, worst and lex, the terms of a sum
// with their constant factors, else a single term.
func decompose(n *expr.Node) *composition {
	t := &composition{}
	switch n.Op {
	case "wmean", "wgeo":
		sum := 0.0
		for i := 0; i < len(n.Args); i += 2 {
			w := n.Args[i].Value.(float64)
			t.weights, t.terms = append(t.weights, w), append(t.terms, n.Args[i+1])
			sum += w
		}
		weights, mean := slices.Clone(t.weights), wmean
		if n.Op == "wgeo" {
			mean = wgeo
		}
		t.compose = func(x []float64) float64 { return mean(weights, x) }
		for i := range t.weights {
			t.weights[i] /= sum
		}
	case "worst", "lex":
		unit := 1.0
		for _, a := range n.Args {
			t.terms, t.weights = append(t.terms, a), append(t.weights, unit)
			if n.Op == "lex" {
				unit *= lexStep
			}
		}
		t.compose = functionsByName[n.Op].eval
	default:
		t.sum(n, 1)
		t.compose = func(x []float64) float64 {
			s := t.constant
			for i := range x {
				s += float64(t.weights[i] * x[i])
			}
			return s
		}
	}
	return t
}

// sum adds the terms of n with that weight.
func (t *composition) sum(n *expr.Node, weight float64) {
	switch n.Op {
	case "+":
		t.sum(n.Args[0], weight)
		t.sum(n.Args[1], weight)
		return
	case "-":
		t.sum(n.Args[0], weight)
		t.sum(n.Args[1], -weight)
		return
	case "neg":
		t.sum(n.Args[0], -weight)
		return
	case "*":
		if x, ok := literal(n, 0); ok {
			t.sum(n.Args[1], weight*x)
			return
		}
		if x, ok := literal(n, 1); ok {
			t.sum(n.Args[0], weight*x)
			return
		}
	case "/":
		if x, ok := literal(n, 1); ok {
			t.sum(n.Args[0], weight/x)
			return
		}
	}
	if x, ok := n.Value.(float64); ok {
		t.constant += float64(weight * x)
		return
	}
	t.terms, t.weights = append(t.terms, n), append(t.weights, weight)
}

// names are those of the terms: the paths that they read of the run, with a number where another term
// reads the same.
func (t *composition) names() []string {
	var all []string
	for _, n := range t.terms {
		var paths []string
		for name := range reads(expression{Node: n}) {
			if tree, path := splitName(name); tree == ownTree && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
		name := cmp.Or(strings.Join(paths, " + "), n.String())
		if slices.Contains(all, name) {
			name = fmt.Sprintf("%s (%d)", name, len(all)+1)
		}
		all = append(all, name)
	}
	return all
}

// maxValue is the largest value of a score: below 1, since consumers treat 1 as solved.
const maxValue = 1 - 1e-9

// clampValue clamps x to [0, maxValue].
func clampValue(x float64) float64 { return min(max(x, 0), maxValue) }

// passedScore is the fitness for a score's value of s if all gates pass.
func passedScore(s float64) float64 { return 0.1 + float64(0.9*s) }
