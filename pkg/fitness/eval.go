package fitness

import (
	"fmt"
	"math"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
)

// number is the value of an expression. absent is the name of a time that never
// came and that the value follows from, lacking the share of what was offered that is
// not in the times that it follows from; bad is where it first was infinite or no number.
type number struct {
	x       float64
	absent  string
	lacking float64
	bad     *expr.Node
}

// evaluator computes expressions of one run. The first thing that it cannot
// compute is its err.
type evaluator struct {
	fitness *Fitness
	run     *Run
	path    string // of the expression at hand
	err     error
	// warnings say what was absent and taken for something.
	warnings []string
}

func (e *evaluator) fail(n *expr.Node, format string, args ...any) {
	if e.err == nil {
		e.err = e.fitness.fault(e.path, n.Line, n.Col, format, args...)
	}
}

func (e *evaluator) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
}

// number computes an expression of that type.
func (e *evaluator) number(n *expr.Node) number {
	switch {
	case n.Name != "":
		return e.name(n, n.Name)
	case n.Op == "":
		return number{x: n.Value.(float64)}
	case n.Op == "attained":
		return e.name(n, attainedName(n))
	case n.Op == "?:":
		c := e.flag(n.Args[0])
		if c.absent != "" {
			return number{x: math.Inf(1), absent: c.absent}
		}
		if c.holds {
			return e.number(n.Args[1])
		}
		return e.number(n.Args[2])
	}
	args := make([]number, len(n.Args))
	for i, a := range n.Args {
		args[i] = e.number(a)
	}
	return e.apply(n, args)
}

// name looks a number up.
func (e *evaluator) name(n *expr.Node, name string) number {
	x, absence, ok := e.run.look(name)
	switch {
	case ok:
		return number{x: x, lacking: e.run.lacking(name)}
	case absence == metrics.MissingIsWorst:
		return number{x: math.Inf(1), absent: name}
	case absence == metrics.MissingIsUnknown:
		e.fail(n, "the run does not have %s%s", name, why(name))
		return number{}
	}
	e.warn("%s is absent, and taken for 0", name)
	return number{}
}

// why says where a number that nobody recorded comes from.
func why(name string) string {
	_, path := split(name)
	for _, hint := range []struct{ part, how string }{
		{"goodput.", "no request has targets (give slo in the fitness file)"}, {"attainment", "no session's class has targets"},
		{"regret.", "blis-sim --counterfactual 1 estimates it"}, {"itl.", "outcomes of a part carry gaps only with blis-sim --itl"},
		{"anomalies.", "blis-sim looks for anomalies at --trace decisions and full"},
		{"sessions.", "the workload has no sessions"}, {"shadow.", "the router does not look at prefixes"},
		{"load.", "it is of whole runs, where time passes between arrivals"},
		{"cost.", "the outcomes of a part do not say"}, {"replicas[", "the outcomes of a part do not say"}, {"kv.", "the outcomes of a part do not say"},
	} {
		if i := len(hint.part); len(path) >= i && (path[:i] == hint.part || strings.Contains(path, "."+hint.part)) {
			return ": " + hint.how
		}
	}
	return ""
}

// apply computes an operator or a function of numbers.
func (e *evaluator) apply(n *expr.Node, args []number) number {
	x := make([]float64, len(args))
	result := number{}
	for i, a := range args {
		x[i] = a.x
		if result.absent == "" {
			result.absent = a.absent
		}
		if result.bad == nil {
			result.bad = a.bad
		}
		result.lacking = max(result.lacking, a.lacking)
	}
	f := calls[n.Op]
	if result.absent != "" {
		if f.wraps {
			e.warn("%s is absent, and %s 0", result.absent, n)
			return number{}
		}
		return number{x: math.Inf(1), absent: result.absent}
	}
	switch n.Op {
	case "neg":
		result.x = -x[0]
	case "+":
		result.x = x[0] + x[1]
	case "-":
		result.x = x[0] - x[1]
	case "*":
		result.x = x[0] * x[1]
	case "/":
		result.x = x[0] / x[1]
	default:
		e.checkArguments(n, x)
		result.x = f.of(x)
	}
	if f.wraps {
		result.x *= 1 - result.lacking
		result.lacking = 0
	}
	if finite(result.x) {
		result.bad = nil
	} else if result.bad == nil {
		result.bad = n
	}
	return result
}

// checkArguments refuses what only a run can show to be wrong.
func (e *evaluator) checkArguments(n *expr.Node, x []float64) {
	switch {
	case n.Op == "soft" && !(x[1] > 0):
		e.fail(n.Args[1], "the limit must be above 0, is %v", x[1])
	case n.Op == "soft" && !(x[2] >= 0):
		e.fail(n.Args[2], "k must not be negative, is %v", x[2])
	case n.Op == "clamp" && !(x[1] <= x[2]):
		e.fail(n.Args[1], "the lower bound %v is above the upper one, %v", x[1], x[2])
	}
}

// finite reports whether x is a number, and not infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// whole computes an expression that must have a value.
func (e *evaluator) whole(n *expr.Node) number {
	v := e.number(n)
	if v.bad != nil && e.err == nil {
		e.fail(v.bad, "%s is %v in this run", v.bad, spelled(v.bad, e))
	}
	return v
}

// spelled is what a part that has no value comes to.
func spelled(n *expr.Node, e *evaluator) string {
	if math.IsNaN(e.number(n).x) {
		return "no number (0/0 or the like)"
	}
	return "infinite (divided by 0, or too large)"
}
