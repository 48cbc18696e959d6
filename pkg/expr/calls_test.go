package expr

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// numbers is a T with a function without arguments, which counts its calls.
type numbers struct{ a, b, calls float64 }

func numberFields() []Field[numbers] {
	return []Field[numbers]{
		{Name: "a", Type: Number, Number: func(n *numbers) float64 { return n.a }},
		{Name: "b", Type: Number, Number: func(n *numbers) float64 { return n.b }},
		{Name: "next()", Type: Number, Number: func(n *numbers) float64 { n.calls++; return n.calls }},
	}
}

func TestModulo(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, src := range []string{"a % b", "[a % b][0]"} { // compiled and interpreted
		e, err := Compile(src, numberFields(), Number)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ a, b, want float64 }{
			{7, 3, 1}, {6, 3, 0}, {-7, 3, -1}, {7, -3, 1}, {-6, 3, 0}, {1 << 60, 7, (1 << 60) % 7},
			{7, 0, nan}, {7.5, 3, nan}, {7, 2.5, nan}, {inf, 3, nan}, {7, inf, nan}, {nan, 3, nan}, {7, nan, nan},
		} {
			x, err := e.Number(&numbers{a: c.a, b: c.b})
			if err != nil || x != c.want && !(math.IsNaN(x) && math.IsNaN(c.want)) || math.Signbit(x) != (c.want < 0) {
				t.Errorf("%s with %g and %g: %g, %v, want %g", src, c.a, c.b, x, err, c.want)
			}
		}
	}
}

func TestMovingAverage(t *testing.T) {
	e, err := Compile("ema(a, b, 0.25)", numberFields(), Number)
	if err != nil {
		t.Fatal(err)
	}
	if x, _ := e.Number(&numbers{a: 10, b: 2}); x != 8 {
		t.Errorf("%g, want 8", x)
	}
}

// TestFunctionWithoutArguments: each call that is evaluated calls the getter, from left to right.
func TestFunctionWithoutArguments(t *testing.T) {
	for _, c := range []struct {
		src         string
		want, calls float64
	}{
		{"next() - 10 * next()", -19, 2},
		{"a > 0 && next() > 0 ? next() : -next()", -1, 1},
		{"[next(), next()][1]", 2, 2},
		{"[5, 6, 7].map(x, x * next())[2]", 21, 3},
		{"next() % 2", 1, 1},
	} {
		e, err := Compile(c.src, numberFields(), Number)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		n := &numbers{}
		if x, err := e.Number(n); err != nil || x != c.want || n.calls != c.calls {
			t.Errorf("%s: %g after %g calls, %v; want %g after %g", c.src, x, n.calls, err, c.want, c.calls)
		}
	}
}

func TestCallErrors(t *testing.T) {
	for src, want := range map[string]string{
		"a +\n next(1)": "2:7: next() takes no arguments",
		"a + next":      `1:5: unknown name "next"`,
		"1 + a % 0":     "1:9: % takes integers and a divisor other than 0, is 0",
		"a % 2.5":       "1:5: % takes integers and a divisor other than 0, is 2.5",
		`a % "x"`:       "% does not take (number, text)",
		"other()":       `unknown function "other"`,
		"a.next()":      "next",
		"ema(a, 1)":     "ema does not take (number, number)",
	} {
		_, err := Compile(src, numberFields(), Number)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", src, err, want)
		}
	}
}

// TestNumberFunctions: 5 is cut to 3, between 2 and 3, and 5 + 3·(2 − 5) = −4.
func TestNumberFunctions(t *testing.T) {
	want := map[string]float64{"clamp": 3, "ema": -4}
	for _, f := range NumberFunctions() {
		if v, ok := want[f.Name]; ok {
			if got := f.Call([]float64{5, 2, 3}[:f.Args]); got != v {
				t.Errorf("%s: %v, want %v", f.Name, got, v)
			}
			delete(want, f.Name)
		}
		if f.Name == modulo {
			t.Error("% has a name")
		}
	}
	if len(want) > 0 {
		t.Errorf("there are no %v", want)
	}
}

// TestLiteralResults: through conditions, with their positions.
func TestLiteralResults(t *testing.T) {
	for src, want := range map[string]string{`"x"`: "[{x 1 1}]", `"x" + "y"`: "[]",
		`a > b ? "x" : a < b ? "yy" : string(a)`: "[{x 1 9} {yy 1 23}]"} {
		e, err := Compile(src, numberFields(), Text)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got := fmt.Sprint(e.LiteralResults()); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}
