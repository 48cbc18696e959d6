package diff

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
	"blis/pkg/registry"
	"blis/pkg/stream"
)

// Gate is a condition on the difference that must not be true.
type Gate struct {
	Expr string `json:"expr"`
	// Failed: it is true.
	Failed bool `json:"failed"`
}

func (g *Gate) text() string {
	if g.Failed {
		return fmt.Sprintf("failed (%s is true)", stream.Printable(g.Expr))
	}
	return fmt.Sprintf("passed (%s is not true)", stream.Printable(g.Expr))
}

// gate is a compiled Gate.
type gate struct {
	src  string
	tree *expr.Node
}

// differenceFields are the numbers of a difference, named as in the JSON document.
var differenceFields = []string{"diff", "relative_diff", "ci.lo", "ci.hi"}

// splitDifference splits the path of a number of a difference into the path of the
// metric and the field.
func splitDifference(path string) (metric, field string) {
	for _, field := range differenceFields {
		if metric, ok := strings.CutSuffix(path, "."+field); ok {
			return metric, field
		}
	}
	at := strings.LastIndexByte(path, '.')
	return path[:max(at, 0)], path[at+1:]
}

// difference returns a field of the difference, nil if it is missing.
func (m *Metric) difference(field string) *float64 {
	switch {
	case field == "diff":
		return m.Diff
	case field == "relative_diff":
		return m.RelativeDiff
	case field == "ci.lo" && m.CI != nil:
		return &m.CI.Lo
	case field == "ci.hi" && m.CI != nil:
		return &m.CI.Hi
	}
	return nil
}

// compileGate compiles a condition over a.*, b.* and d.*. Errors start with
// line:column.
func compileGate(src string) (gate, error) {
	tree, err := expr.Tree(src, checkName, gateFunctions, expr.Flag)
	if err == nil {
		err = rejectStrings(tree)
	}
	return gate{src, tree}, err
}

// rejectStrings rejects string values: no metric is a string.
func rejectStrings(n *expr.Node) error {
	if n.Type == expr.Text {
		return &expr.Error{Line: n.Line, Col: n.Col,
			Msg: "strings are allowed only in names, as in a.cls[\"batch\"].ttft.p99"}
	}
	for _, a := range n.Args {
		if err := rejectStrings(a); err != nil {
			return err
		}
	}
	return nil
}

var gateFunctions = []expr.Function{
	{Name: "abs", Params: []expr.Type{expr.Number}, Returns: expr.Number},
	{Name: "min", Params: []expr.Type{expr.Number, expr.Number}, Returns: expr.Number},
	{Name: "max", Params: []expr.Type{expr.Number, expr.Number}, Returns: expr.Number},
}

// checkName returns an error if no pair of runs has the name.
func checkName(name string) error {
	root, path, hasPath := strings.Cut(name, ".")
	if !slices.Contains([]string{"a", "b", "d"}, root) {
		return fmt.Errorf("unknown name %q; names start with a. or b. (the metrics of each run) "+
			"or d. (their difference: d.ttft.p99.relative_diff)", name)
	}
	if !hasPath {
		return fmt.Errorf("%q is incomplete; names are such as a.ttft.p99 or d.ttft.p99.relative_diff", name)
	}
	if root == "d" {
		metric, field := splitDifference(path)
		if !slices.Contains(differenceFields, field) {
			if _, ok := metrics.LookupPath(path); ok {
				return fmt.Errorf("%q is incomplete; append one of %s", name, strings.Join(differenceFields, ", "))
			}
			return registry.Unknown("field of a difference", field, differenceFields)
		}
		path = metric
	}
	return checkMetric(path)
}

// checkMetric returns an error if the path is not that of a metric.
func checkMetric(path string) error {
	if _, ok := metrics.LookupPath(path); ok {
		return nil
	}
	var have []string
	for _, p := range metrics.Paths() {
		have = append(have, p.Path)
	}
	if near := registry.Closest(path, have); near != "" {
		return fmt.Errorf("unknown metric %q; did you mean %q?", path, near)
	}
	return fmt.Errorf("unknown metric %q; blis-diff --format json lists them", path)
}

// isTrue evaluates the gate. It is an error if the result depends on a missing number.
func (g *gate) isTrue(m Metrics) (bool, error) {
	v := evaluation{m, ""}
	x := v.eval(g.tree)
	if math.IsNaN(x) {
		return false, fmt.Errorf("--fail-if %s: cannot be decided: %s", g.src, v.undecided)
	}
	return x != 0, nil
}

// evaluation evaluates expressions to numbers; true and false are 1 and 0, an unknown
// value is NaN. undecided is the reason for the first unknown value.
type evaluation struct {
	metrics   Metrics
	undecided string
}

func (v *evaluation) eval(n *expr.Node) float64 {
	switch {
	case n.Name != "":
		return v.valueOf(n.Name)
	case n.Op == "":
		if flag, ok := n.Value.(bool); ok {
			return boolToFloat(flag)
		}
		return n.Value.(float64)
	}
	x := v.eval(n.Args[0])
	if n.Op == "?:" {
		switch {
		case math.IsNaN(x):
			return x
		case x != 0:
			return v.eval(n.Args[1])
		}
		return v.eval(n.Args[2])
	}
	y := x
	if len(n.Args) > 1 {
		y = v.eval(n.Args[1])
	}
	switch { // one operand can decide the result
	case n.Op == "&&" && (x == 0 || y == 0):
		return 0
	case n.Op == "||" && (x == 1 || y == 1):
		return 1
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	}
	result := operators[n.Op](x, y)
	if math.IsNaN(result) && v.undecided == "" {
		v.undecided = fmt.Sprintf("%s is not a number", n)
	}
	return result
}

func boolToFloat(x bool) float64 {
	if x {
		return 1
	}
	return 0
}

// operators compute the operations of expressions; those on one operand ignore y.
var operators = map[string]func(x, y float64) float64{
	"!":   func(x, _ float64) float64 { return 1 - x },
	"neg": func(x, _ float64) float64 { return -x },
	"abs": func(x, _ float64) float64 { return math.Abs(x) },
	"+":   func(x, y float64) float64 { return x + y },
	"-":   func(x, y float64) float64 { return x - y },
	"*":   func(x, y float64) float64 { return x * y },
	"/":   func(x, y float64) float64 { return x / y },
	"min": math.Min,
	"max": math.Max,
	"&&":  math.Min,
	"||":  math.Max,
	"<":   func(x, y float64) float64 { return boolToFloat(x < y) },
	"<=":  func(x, y float64) float64 { return boolToFloat(x <= y) },
	">":   func(x, y float64) float64 { return boolToFloat(x > y) },
	">=":  func(x, y float64) float64 { return boolToFloat(x >= y) },
	"==":  func(x, y float64) float64 { return boolToFloat(x == y) },
	"!=":  func(x, y float64) float64 { return boolToFloat(x != y) },
}

// valueOf returns the value of a name.
func (v *evaluation) valueOf(name string) float64 {
	root, path, _ := strings.Cut(name, ".")
	var x *float64
	if root == "d" {
		metric, field := splitDifference(path)
		x = v.metrics.at(metric).difference(field)
	} else {
		m := v.metrics.at(path)
		x = map[string]*float64{"a": m.A, "b": m.B}[root]
	}
	if x == nil {
		if v.undecided == "" {
			v.undecided = name + " is missing"
		}
		return math.NaN()
	}
	return *x
}
