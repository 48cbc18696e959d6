package diff

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
	"blis/pkg/registry"
)

// Gate is a condition on the difference that must not be true.
type Gate struct {
	Expr string `json:"expr"`
	// Failed: it is true.
	Failed bool `json:"failed"`
}

func (g *Gate) text() string {
	if g.Failed {
		return "FAILED"
	}
	return "passed"
}

// gate is one that is compiled.
type gate struct {
	src  string
	tree *expr.Node
}

// parts of a difference.
var differences = []string{"abs", "rel", "lo", "hi"}

// compileGate compiles a condition over a.*, b.* and d.*. Errors begin with
// line:column.
func compileGate(src string) (gate, error) {
	tree, err := expr.Tree(src, checkName, gateFunctions, expr.Flag)
	if err == nil {
		err = refuseTexts(tree)
	}
	return gate{src, tree}, err
}

// refuseTexts refuses texts by themselves: no metric is one.
func refuseTexts(n *expr.Node) error {
	if n.Type == expr.Text {
		return &expr.Error{Line: n.Line, Col: n.Col, Msg: "texts stand in names only, as in d.cls[\"batch\"].ttft.p99.rel"}
	}
	for _, a := range n.Args {
		if err := refuseTexts(a); err != nil {
			return err
		}
	}
	return nil
}

var gateFunctions = []expr.Function{
	{Name: "abs", Takes: []expr.Type{expr.Number}, Gives: expr.Number},
	{Name: "min", Takes: []expr.Type{expr.Number, expr.Number}, Gives: expr.Number},
	{Name: "max", Takes: []expr.Type{expr.Number, expr.Number}, Gives: expr.Number},
}

// checkName says what is wrong with a name, whatever the runs.
func checkName(name string) error {
	root, path, more := strings.Cut(name, ".")
	switch root {
	case "a", "b", "d":
		if !more {
			return fmt.Errorf("%q is only the beginning of a name, such as a.ttft.p99 or d.ttft.p99.rel", name)
		}
	default:
		return fmt.Errorf("unknown name %q; names begin with a., b. (the metrics of both) or d. (their difference: d.ttft.p99.rel)", name)
	}
	if root == "d" {
		at := strings.LastIndexByte(path, '.')
		if last := path[at+1:]; !slices.Contains(differences, last) {
			if _, ok := metrics.PlaceOf(path); ok {
				return fmt.Errorf("%q is only the beginning of a name (have %s)", name, strings.Join(differences, ", "))
			}
			return fmt.Errorf("%w, of a difference", registry.Unknown("part", last, differences))
		}
		path = path[:max(at, 0)]
	}
	return checkMetric(path)
}

// checkMetric says what is wrong with the path of a metric.
func checkMetric(path string) error {
	if _, ok := metrics.PlaceOf(path); ok {
		return nil
	}
	var have []string
	for _, p := range metrics.Places() {
		have = append(have, p.Path)
	}
	if near := registry.Closest(path, have); near != "" {
		return fmt.Errorf("unknown metric %q; did you mean %q?", path, near)
	}
	return fmt.Errorf("unknown metric %q; blis-diff --format json lists them", path)
}

// decide decides the gate. What cannot be decided, because a number is absent that
// it depends on, is an error.
func (g *gate) decide(m Metrics) (bool, error) {
	v := evaluation{m, ""}
	x := v.of(g.tree)
	if math.IsNaN(x) {
		return false, fmt.Errorf("--fail-if %s: cannot be decided: %s", g.src, v.missing)
	}
	return x != 0, nil
}

// evaluation computes expressions: numbers, and true and false as 1 and 0. NaN is
// what is not known; missing says why, of the first that is not.
type evaluation struct {
	metrics Metrics
	missing string
}

func (v *evaluation) of(n *expr.Node) float64 {
	switch {
	case n.Name != "":
		return v.name(n.Name)
	case n.Op == "":
		switch x := n.Value.(type) {
		case float64:
			return x
		case bool:
			return truth(x)
		}
		panic("diff: a text in a gate")
	case n.Op == "?:":
		c := v.of(n.Args[0])
		if math.IsNaN(c) {
			return c
		}
		if c != 0 {
			return v.of(n.Args[1])
		}
		return v.of(n.Args[2])
	}
	x := v.of(n.Args[0])
	if len(n.Args) == 1 {
		return single(n.Op, x)
	}
	y := v.of(n.Args[1])
	switch { // decided by what is known
	case n.Op == "&&" && (x == 0 || y == 0):
		return 0
	case n.Op == "||" && (x == 1 || y == 1):
		return 1
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	}
	result := dual(n.Op, x, y)
	if math.IsNaN(result) && v.missing == "" {
		v.missing = fmt.Sprintf("%s is not a number", n)
	}
	return result
}

func truth(x bool) float64 {
	if x {
		return 1
	}
	return 0
}

func single(op string, x float64) float64 {
	switch op {
	case "!":
		return 1 - x
	case "neg":
		return -x
	case "abs":
		return math.Abs(x)
	}
	panic("diff: no operator " + op)
}

func dual(op string, x, y float64) float64 {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "min":
		return min(x, y)
	case "max":
		return max(x, y)
	case "&&":
		return x * y
	case "||":
		return max(x, y)
	case "<":
		return truth(x < y)
	case "<=":
		return truth(x <= y)
	case ">":
		return truth(x > y)
	case ">=":
		return truth(x >= y)
	case "==":
		return truth(x == y)
	case "!=":
		return truth(x != y)
	}
	panic("diff: no operator " + op)
}

// name is the value of a name.
func (v *evaluation) name(name string) float64 {
	root, path, _ := strings.Cut(name, ".")
	var x *float64
	if root == "d" {
		at := strings.LastIndexByte(path, '.')
		m := v.metrics.at(path[:at])
		x = map[string]*float64{"abs": m.Abs, "rel": m.Rel, "lo": m.Lo, "hi": m.Hi}[path[at+1:]]
	} else {
		m := v.metrics.at(path)
		x = map[string]*float64{"a": m.A, "b": m.B}[root]
	}
	if x == nil {
		if v.missing == "" {
			v.missing = name + " is absent"
		}
		return math.NaN()
	}
	return *x
}
