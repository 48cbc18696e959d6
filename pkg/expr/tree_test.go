package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"blis/pkg/registry"
)

var treeFunctions = []Function{
	{Name: "ratio", Params: []Type{Number, Number}, Returns: Number},
	{Name: "wmean", Params: []Type{Number, Number}, Variadic: true, Returns: Number},
	{Name: "attained", Params: []Type{Text}, Returns: Number},
}

var treeNames = []string{"a", "m.ttft.p99", `m.cls["b c"].rps`, "m.replicas[1].busy"}

func parse(src string, want ...Type) (*Node, error) {
	check := func(name string) error {
		if slices.Contains(treeNames, name) {
			return nil
		}
		return registry.Unknown("name", name, treeNames)
	}
	return Tree(src, check, treeFunctions, want...)
}

// TestTree formats parsed expressions on one line; the result parses to itself.
func TestTree(t *testing.T) {
	for src, want := range map[string]string{
		"1 +  2*a":                            "1 + 2 * a",
		"(1 + 2) * a - (a - 1)":               "(1 + 2) * a - (a - 1)",
		"-(a + 1) / -a":                       "-(a + 1) / -a",
		`m.cls["b c"].rps < 1u || !(a == 2)`:  `m.cls["b c"].rps < 1 || !(a == 2)`,
		"m.replicas[1].busy":                  "m.replicas[1].busy",
		"ratio(a,\n m.ttft.p99)":              "ratio(a, m.ttft.p99)",
		`wmean(1, a, 2, attained('x'))`:       `wmean(1, a, 2, attained("x"))`,
		"a > 1 ? 2 : a > 0 ? 1 : 0":           "a > 1 ? 2 : a > 0 ? 1 : 0",
		"(a > 1 ? 2 : 3) + 1":                 "(a > 1 ? 2 : 3) + 1",
		"(a > 1 && a > 2 || a < 0) && a != 5": "(a > 1 && a > 2 || a < 0) && a != 5",
	} {
		n, err := parse(src, Number, Flag)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got := n.String(); got != want {
			t.Errorf("%s is %s, want %s", src, got, want)
		}
		if again, err := parse(want, Number, Flag); err != nil || again.String() != want {
			t.Errorf("%s parsed again is %v, %v", want, again, err)
		}
	}
}

// TestTreePositions checks the position of each part.
func TestTreePositions(t *testing.T) {
	n, err := parse("a +\n  wmean(1, ratio(m.ttft.p99, a))", Number)
	if err != nil {
		t.Fatal(err)
	}
	ratio := n.Args[1].Args[1]
	for part, want := range map[*Node]string{n: "1:1", n.Args[1]: "2:3", ratio: "2:12", ratio.Args[0]: "2:18",
		ratio.Args[1]: "2:30"} {
		if got := fmt.Sprintf("%d:%d", part.Line, part.Col); got != want {
			t.Errorf("%s is at %s, want %s", part, got, want)
		}
	}
}

// TestTreeErrors checks positions and messages.
func TestTreeErrors(t *testing.T) {
	for src, want := range map[string]string{
		"1 + ":                 "1:5: ",
		"a + m.ttft.p98":       `1:5: unknown name "m.ttft.p98"; did you mean "m.ttft.p99"?`,
		"1 + ratoi(1, 2)":      `1:5: unknown function "ratoi"; did you mean "ratio"? (have ratio, wmean, attained)`,
		"ratio(1)":             "1:6: ratio does not take (number)",
		"wmean(1, 2, 3)":       "1:6: wmean does not take (number, number, number)",
		`a + "x"`:              "1:3: + does not take (number, text)",
		"a > 1":                "1:1: this is of type true-or-false; it must be of type number",
		"[a, a]":               "1:1: lists, maps and messages are not allowed here",
		"1 + {'a': a}.size()":  "1:18: unknown function \"size\"",
		"a in [1]":             "1:1: the operator in is not allowed here",
		"a % 2":                "1:1: the operator % is not allowed here",
		"ratio(1, 2).a":        "1:12: only names have parts",
		`m.cls[a].rps`:         "only names have parts",
		"has(m.ttft)":          `1:1: unknown function "has"`,
		"[1].all(x, x > 0)":    "unknown function \"all\"",
		"m.replicas[9].busy":   `1:1: unknown name "m.replicas[9].busy"`,
		"null":                 "1:1: null_type is not a number, text, true or false",
		"b'ab'":                "is not a number",
		"'a'.startsWith('b')":  "unknown function",
		strings.Repeat("(", 5): "1:",
	} {
		_, err := parse(src, Number)
		var target *Error
		if !errors.As(err, &target) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}
