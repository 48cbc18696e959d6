package fitness

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"blis/pkg/expr"
)

// conditionResult is the value of a condition. distance is how far it is from holding, 0 if it
// holds. missing says that a time which it depends on does not exist; then it does not hold.
type conditionResult struct {
	holds    bool
	distance float64
	missing  string
	detail   string
}

// condition computes a condition.
func (e *evaluator) condition(n *expr.Node) conditionResult {
	switch n.Op {
	case "":
		return knownCondition(n.Value.(bool), 1, n.String())
	case "&&", "||":
		return e.logical(n)
	case "!":
		t := e.condition(n.Args[0])
		if t.missing != "" {
			return t
		}
		return knownCondition(!t.holds, 1, t.detail)
	case "?:":
		c := e.condition(n.Args[0])
		switch {
		case c.missing != "":
			return c
		case c.holds:
			return e.condition(n.Args[1])
		}
		return e.condition(n.Args[2])
	}
	if n.Args[0].Type == expr.Number {
		return e.compare(n)
	}
	if n.Args[0].Type == expr.Text {
		return knownCondition(n.Args[0].Value == n.Args[1].Value == (n.Op == "=="), 1, n.String())
	}
	a, b := e.condition(n.Args[0]), e.condition(n.Args[1])
	if a.missing != "" || b.missing != "" {
		return conditionResult{distance: 1, missing: a.missing + b.missing, detail: a.detail}
	}
	return knownCondition(a.holds == b.holds == (n.Op == "=="), 1, a.detail)
}

// knownCondition is the result of a condition without missing numbers; distance counts if it does not
// hold.
func knownCondition(holds bool, distance float64, detail string) conditionResult {
	if holds {
		distance = 0
	}
	return conditionResult{holds: holds, distance: distance, detail: detail}
}

// logical is && and ||: && has the larger distance, || the smaller one. One side decides where the
// other is missing.
func (e *evaluator) logical(n *expr.Node) conditionResult {
	a, b := e.condition(n.Args[0]), e.condition(n.Args[1])
	if n.Op == "||" {
		if a.holds || !b.holds && a.distance <= b.distance {
			return a
		}
		return b
	}
	if !a.holds && (b.holds || a.distance >= b.distance) {
		return a
	}
	if a.holds && b.holds {
		b.detail = a.detail + "; " + b.detail
	}
	return b
}

// compare compares two numbers.
func (e *evaluator) compare(n *expr.Node) conditionResult {
	a, b := e.number(n.Args[0]), e.number(n.Args[1])
	if a.missing != "" || b.missing != "" {
		why := cmp.Or(a.missing, b.missing)
		return conditionResult{distance: 1, missing: why, detail: why}
	}
	holds := map[string]bool{"<": a.x < b.x, "<=": a.x <= b.x, ">": a.x > b.x, ">=": a.x >= b.x, "==": a.x == b.x,
		"!=": a.x != b.x}[n.Op]
	if math.IsNaN(a.x) || math.IsNaN(b.x) {
		holds = false
	}
	side := func(n *expr.Node, x float64) string {
		if n.Op == "" && n.Name == "" {
			return n.String()
		}
		return fmt.Sprintf("%s (%s)", n, formatNumber(x))
	}
	return knownCondition(holds, distance(a.x, b.x), side(n.Args[0], a.x)+" "+n.Op+" "+side(n.Args[1], b.x))
}

// distance is |a − b|/(|a| + |b|), and 1 where that is undefined.
func distance(a, b float64) float64 {
	// By halves, so that the sum of two large numbers is finite.
	d := math.Abs(float64(a/2)-float64(b/2)) / (math.Abs(a/2) + math.Abs(b/2))
	if math.IsNaN(d) {
		return 1
	}
	return min(d, 1)
}

// formatNumber is x with six digits, without an exponent where possible.
func formatNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// Text is the expression of the gate with the compared numbers: m.ttft.p99 < 2000 (is 9239.47).
func (g *Gate) Text() string {
	value := g.Value()
	switch {
	case value == "" || value == g.Expr:
		return g.Expr
	case value != g.Detail:
		return g.Expr + " (is " + value + ")"
	}
	return g.Expr + " (" + value + ")"
}

// Value is the number of a single comparison with a constant, 9239.47 for m.ttft.p99 (9239.47) < 2000, and Detail for
// other conditions.
func (g *Gate) Value() string {
	// Detail repeats a single comparison, with the number in parentheses.
	if at := strings.LastIndex(g.Detail, " ("); at >= 0 {
		value, rest, _ := strings.Cut(g.Detail[at+2:], ")")
		if g.Detail[:at]+rest == g.Expr {
			return value
		}
	}
	return g.Detail
}

// gate evaluates a gate.
func (e *evaluator) gate(g expression) Gate {
	e.path = g.path
	t := e.condition(g.Node)
	return Gate{Name: g.name, Expr: g.String(), Passed: t.holds, Distance: t.distance, Detail: t.detail}
}
