package fitness

import (
	"fmt"
	"math"
	"strconv"

	"blis/pkg/expr"
)

// truth is the value of a condition: distance is how far it is from holding, 0
// where it does. absent is the name of a time that never came and without which
// it is not decided; then it does not hold.
type truth struct {
	holds    bool
	distance float64
	absent   string
	detail   string
}

// flag computes a condition.
func (e *evaluator) flag(n *expr.Node) truth {
	switch n.Op {
	case "":
		return decided(n.Value.(bool), 1, n.String())
	case "&&", "||":
		return e.both(n)
	case "!":
		t := e.flag(n.Args[0])
		if t.absent != "" {
			return t
		}
		return decided(!t.holds, 1, t.detail)
	case "?:":
		c := e.flag(n.Args[0])
		switch {
		case c.absent != "":
			return c
		case c.holds:
			return e.flag(n.Args[1])
		}
		return e.flag(n.Args[2])
	}
	if n.Args[0].Type == expr.Number {
		return e.compare(n)
	}
	if n.Args[0].Type == expr.Text {
		return decided(n.Args[0].Value == n.Args[1].Value == (n.Op == "=="), 1, n.String())
	}
	a, b := e.flag(n.Args[0]), e.flag(n.Args[1])
	if a.absent != "" || b.absent != "" {
		return truth{distance: 1, absent: a.absent + b.absent, detail: a.detail}
	}
	return decided(a.holds == b.holds == (n.Op == "=="), 1, a.detail)
}

// decided is a condition that is known: at that distance if it does not hold.
func decided(holds bool, distance float64, detail string) truth {
	if holds {
		distance = 0
	}
	return truth{holds: holds, distance: distance, detail: detail}
}

// both is && and ||: of && the worst distance, of || the best. One side decides
// where the other is not known.
func (e *evaluator) both(n *expr.Node) truth {
	a, b := e.flag(n.Args[0]), e.flag(n.Args[1])
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
func (e *evaluator) compare(n *expr.Node) truth {
	a, b := e.number(n.Args[0]), e.number(n.Args[1])
	if a.absent != "" || b.absent != "" {
		name := a.absent
		if name == "" {
			name = b.absent
		}
		return truth{distance: 1, absent: name, detail: name + " is absent"}
	}
	holds := map[string]bool{"<": a.x < b.x, "<=": a.x <= b.x, ">": a.x > b.x, ">=": a.x >= b.x, "==": a.x == b.x, "!=": a.x != b.x}[n.Op]
	if math.IsNaN(a.x) || math.IsNaN(b.x) {
		holds = false
	}
	side := func(n *expr.Node, x float64) string {
		if n.Op == "" && n.Name == "" {
			return n.String()
		}
		return fmt.Sprintf("%s (%s)", n, short(x))
	}
	return decided(holds, distance(a.x, b.x), side(n.Args[0], a.x)+" "+n.Op+" "+side(n.Args[1], b.x))
}

// distance is |a − b|/(|a| + |b|), and 1 where that is not defined.
func distance(a, b float64) float64 {
	// By halves, so that the sum of two large numbers is finite.
	d := math.Abs(a/2-b/2) / (math.Abs(a/2) + math.Abs(b/2))
	if math.IsNaN(d) {
		return 1
	}
	return min(d, 1)
}

// short is x as people read it: six digits, no exponent where it is readable
// without.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// gate judges one gate.
func (e *evaluator) gate(g expression) Gate {
	e.path = g.path
	t := e.flag(g.Node)
	return Gate{Name: g.name, Expr: g.String(), Passed: t.holds, Distance: t.distance, Detail: t.detail}
}
