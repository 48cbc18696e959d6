package fitness

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
)

// number is the value of an expression.
type number struct {
	x float64
	// missing says that a time which it depends on does not exist, "" if there is none.
	missing string
	// uncovered is the share of the offered requests that the times in it do not cover.
	uncovered float64
	// bad is the first node that is infinite or NaN, nil without one.
	bad *expr.Node
}

// evaluator computes expressions on one run. err is the first error.
type evaluator struct {
	fitness *Fitness
	run     *Run
	path    string // of the current expression
	err     error
	// served: latencies are those of the requests that have them, whatever their class.
	served bool
	// warnings are about missing numbers.
	warnings []string
}

func (e *evaluator) fail(n *expr.Node, format string, args ...any) {
	if e.err == nil {
		e.err = e.fitness.errorAt(e.path, n.Line, n.Col, format, args...)
	}
}

func (e *evaluator) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
}

// number computes a numeric expression.
func (e *evaluator) number(n *expr.Node) number {
	switch {
	case n.Name != "":
		return e.name(n, n.Name)
	case n.Op == "":
		return number{x: n.Value.(float64)}
	case n.Op == "attained":
		return e.name(n, attainedName(n))
	case n.Op == "served":
		outer := e.served
		e.served = true
		x := e.number(n.Args[0])
		e.served = outer
		return x
	case n.Op == "?:":
		c := e.condition(n.Args[0])
		if c.missing != "" {
			return number{x: math.Inf(1), missing: c.missing}
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

// name looks up a number.
func (e *evaluator) name(n *expr.Node, name string) number {
	if x, ok := e.run.weightedAttainment(name, e.fitness.Weights); ok {
		return number{x: x}
	}
	tree, path := splitName(name)
	if !e.served {
		path = e.run.targetedPath(tree, path)
	}
	x, absence, ok := e.run.lookup(tree, path)
	uncovered := e.run.uncoveredShare(tree, path)
	switch {
	case ok && !e.served && uncovered > 0 && isInfinite(path, uncovered):
		return number{x: math.Inf(1), missing: infiniteText(name, uncovered)}
	case ok:
		return number{x: x, uncovered: uncovered}
	case absence == metrics.MissingIsWorst && uncovered > 0 && uncovered < 1:
		return number{x: math.Inf(1), missing: infiniteText(name, uncovered)}
	case absence == metrics.MissingIsWorst:
		return number{x: math.Inf(1), missing: name + " is missing"}
	case absence == metrics.MissingIsUnknown:
		e.fail(n, "the run has no %s%s", name, missingHint(name))
		return number{}
	}
	e.warn("%s is missing and counts as 0", name)
	return number{}
}

// missingHints say why numbers below a part of the tree may be missing.
var missingHints = []struct{ part, hint string }{
	{"goodput.", "no request has targets (blis-gen --slo, or slo in a fitness file)"},
	{"attainment", "no session's class has targets"},
	{"regret.", "blis-sim --counterfactual 1 estimates it"},
	{"itl.", "outcomes of a selection have token gaps only with blis-sim --itl"},
	{"anomalies.", "blis-sim detects anomalies with --trace decisions or full"},
	{"sessions.", "the workload has no sessions"},
	{"shadow.", "the router does not read prefixes"},
	{"load.", "it exists only for whole runs with time between arrivals"},
	{"cost.total", "neither policies.autoscale nor a deployment has a cost.per_gpu_hour"},
	{"cost.", notInSelection},
	{"energy.carbon_g", "the cluster's energy has no carbon_g_per_kwh"},
	{"energy.", "the cluster has no energy: {}, the power of a GPU is unknown, or this is a selection " +
		"(--where, --from, --to)"},
	{"scale.", "the cluster has no policies.autoscale, or this is a selection (--where, --from, --to)"},
	{"replicas[", notInSelection},
	{"kv.", notInSelection},
}

const notInSelection = "a selection (--where, --from, --to) has no such metric"

// missingHint says why a number may be missing.
func missingHint(name string) string {
	_, path := splitName(name)
	for _, h := range missingHints {
		if strings.HasPrefix(path, h.part) || strings.Contains(path, "."+h.part) {
			return ": " + h.hint
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
		result.missing, result.bad = cmp.Or(result.missing, a.missing), cmp.Or(result.bad, a.bad)
		result.uncovered = max(result.uncovered, a.uncovered)
	}
	f := functionsByName[n.Op]
	if result.missing != "" {
		if f.acceptsMissing {
			e.warn("%s: %s counts as 0", result.missing, n)
			return number{}
		}
		return number{x: math.Inf(1), missing: result.missing}
	}
	e.checkArguments(n, x)
	result.x = f.eval(x)
	if f.acceptsMissing {
		result.x *= 1 - result.uncovered
		result.uncovered = 0
	}
	if result.bad = cmp.Or(result.bad, n); finite(result.x) {
		result.bad = nil
	}
	return result
}

// checkArguments rejects arguments that are wrong for this run.
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

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// definedNumber computes an expression that must have a finite value.
func (e *evaluator) definedNumber(n *expr.Node) number {
	v := e.number(n)
	if v.bad != nil && e.err == nil {
		e.fail(v.bad, "%s is %v in this run", v.bad, describeValue(v.bad, e))
	}
	return v
}

// describeValue describes the value of a node that is not finite.
func describeValue(n *expr.Node, e *evaluator) string {
	if math.IsNaN(e.number(n).x) {
		return "not a number (such as 0/0)"
	}
	return "infinite (division by 0, or too large)"
}
