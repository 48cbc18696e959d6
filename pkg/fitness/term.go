package fitness

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/expr"
)

// terms are what a score is made of at its top, and how.
type terms struct {
	of      []*expr.Node
	weights []float64
	// constant is what a sum has beside its terms.
	constant float64
	// compose makes the score of the values of the terms.
	compose func(values []float64) float64
}

// parts takes a score apart: the arguments of wmean, wgeo, worst and lex, the
// terms of a sum with their constant factors, else the whole as one.
func parts(n *expr.Node) *terms {
	t := &terms{}
	switch n.Op {
	case "wmean", "wgeo":
		sum := 0.0
		for i := 0; i < len(n.Args); i += 2 {
			w := n.Args[i].Value.(float64)
			t.weights, t.of = append(t.weights, w), append(t.of, n.Args[i+1])
			sum += w
		}
		weights, mean := slices.Clone(t.weights), map[string]func(w, x []float64) float64{"wmean": wmean, "wgeo": wgeo}[n.Op]
		t.compose = func(x []float64) float64 { return mean(weights, x) }
		for i := range t.weights {
			t.weights[i] /= sum
		}
	case "worst", "lex":
		unit := 1.0
		for _, a := range n.Args {
			t.of, t.weights = append(t.of, a), append(t.weights, unit)
			if n.Op == "lex" {
				unit *= step
			}
		}
		t.compose = calls[n.Op].of
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

// sum adds the terms of n, which has that weight.
func (t *terms) sum(n *expr.Node, weight float64) {
	literal := func(i int) (float64, bool) {
		x, ok := n.Args[i].Value.(float64)
		return x, ok
	}
	switch n.Op {
	case "+", "-":
		t.sum(n.Args[0], weight)
		if n.Op == "-" {
			weight = -weight
		}
		t.sum(n.Args[1], weight)
		return
	case "neg":
		t.sum(n.Args[0], -weight)
		return
	case "*":
		if x, ok := literal(0); ok {
			t.sum(n.Args[1], weight*x)
			return
		}
		if x, ok := literal(1); ok {
			t.sum(n.Args[0], weight*x)
			return
		}
	case "/":
		if x, ok := literal(1); ok {
			t.sum(n.Args[0], weight/x)
			return
		}
	}
	if x, ok := n.Value.(float64); ok {
		t.constant += float64(weight * x)
		return
	}
	t.of, t.weights = append(t.of, n), append(t.weights, weight)
}

// names are those of the terms: what they read of the run, told apart by number
// where they read the same.
func (t *terms) names() []string {
	var all []string
	for _, n := range t.of {
		var reads []string
		_ = visit(n, func(n *expr.Node) error {
			name := n.Name
			if n.Op == "attained" {
				name = attainedName(n)
			}
			if tree, path := split(name); name != "" && tree == own && !slices.Contains(reads, path) {
				reads = append(reads, path)
			}
			return nil
		})
		name := strings.Join(reads, " + ")
		if name == "" {
			name = n.String()
		}
		if slices.Contains(all, name) {
			name = fmt.Sprintf("%s (%d)", name, len(all)+1)
		}
		all = append(all, name)
	}
	return all
}

// most is the largest score: below 1, so that nobody takes it for perfect.
const most = 1 - 1e-9

// bounded is x in [0, most].
func bounded(x float64) float64 { return min(max(x, 0), most) }

// final is what the score s becomes where all gates pass.
func final(s float64) float64 { return 0.1 + float64(0.9*s) }
