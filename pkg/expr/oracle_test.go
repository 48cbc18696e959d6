package expr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// record is the type of the test expressions.
type record struct {
	a, b float64
	s, u string
	f, g bool
}

func recordFields(available func(*record) bool) []Field[record] {
	return []Field[record]{
		{Name: "x.a", Type: Number, Number: func(t *record) float64 { return t.a }, Available: available},
		{Name: "x.b", Type: Number, Number: func(t *record) float64 { return t.b }, Available: available},
		{Name: "x.s", Type: Text, Text: func(t *record) string { return t.s }, Available: available},
		{Name: "u", Type: Text, Text: func(t *record) string { return t.u }, Available: available},
		{Name: "x.f", Type: Flag, Flag: func(t *record) bool { return t.f }, Available: available},
		{Name: "g", Type: Flag, Flag: func(t *record) bool { return t.g }, Available: available},
	}
}

// grammar generates random expressions and counts their parts.
type grammar struct {
	*rand.Rand
	used map[string]int
}

func (g *grammar) pick(of ...string) string {
	s := of[g.IntN(len(of))]
	g.used[s]++
	return s
}

func (g *grammar) number(depth int) string {
	if depth == 0 || g.IntN(4) == 0 {
		return g.pick("x.a", "x.b", "0", "1", "2.5", "-3", "1e300")
	}
	a := g.number(depth - 1)
	switch op := g.pick("+", "-", "*", "/", "neg", "?:", "min", "max", "abs", "exp", "log", "sqrt", "pow",
		"clamp"); op {
	case "neg":
		return "-(" + a + ")"
	case "?:":
		return "(" + g.flag(depth-1) + " ? " + a + " : " + g.number(depth-1) + ")"
	case "abs", "exp", "log", "sqrt":
		return op + "(" + a + ")"
	case "min", "max", "pow":
		return op + "(" + a + ", " + g.number(depth-1) + ")"
	case "clamp":
		return "clamp(" + a + ", " + g.number(depth-1) + ", " + g.number(depth-1) + ")"
	default:
		return "(" + a + " " + op + " " + g.number(depth-1) + ")"
	}
}

func (g *grammar) text(depth int) string {
	if depth == 0 || g.IntN(2) == 0 {
		return g.pick("x.s", "u", `""`, `"ab"`, `"b"`)
	}
	return "(" + g.flag(depth-1) + " ? " + g.text(depth-1) + " : " + g.text(depth-1) + ")"
}

func (g *grammar) flag(depth int) string {
	if depth == 0 || g.IntN(5) == 0 {
		return g.pick("x.f", "g", "true", "false")
	}
	switch op := g.pick("&&", "||", "!", "cond", "<", "<=", ">", ">=", "==", "!=", "text <", "text >=", "text ==",
		"text !=", "flag ==", "flag !=",
		"in numbers", "in texts", "startsWith", "endsWith", "contains"); op {
	case "&&", "||":
		return "(" + g.flag(depth-1) + " " + op + " " + g.flag(depth-1) + ")"
	case "!":
		return "!" + g.flag(depth-1)
	case "cond":
		return "(" + g.flag(depth-1) + " ? " + g.flag(depth-1) + " : " + g.flag(depth-1) + ")"
	case "in numbers":
		return "(" + g.number(depth-1) + " in [0, 1, 2.5, -3])"
	case "in texts":
		return "(" + g.text(depth-1) + ` in ["ab", "c"])`
	case "startsWith", "endsWith", "contains":
		return g.text(depth-1) + "." + op + "(" + g.text(depth-1) + ")"
	default:
		kind, symbol, two := strings.Cut(op, " ")
		switch {
		case !two:
			return "(" + g.number(depth-1) + " " + op + " " + g.number(depth-1) + ")"
		case kind == "text":
			return "(" + g.text(depth-1) + " " + symbol + " " + g.text(depth-1) + ")"
		}
		return "(" + g.flag(depth-1) + " " + symbol + " " + g.flag(depth-1) + ")"
	}
}

// result formats the value of an expression, or its failure.
func result(e *Expression[record], t *record) string {
	var v any
	var err error
	switch e.Type() {
	case Number:
		var x float64
		x, err = e.Number(t)
		v = math.Float64bits(x)
		if math.IsNaN(x) {
			v = "NaN"
		}
	case Text:
		v, err = e.Text(t)
	case Flag:
		v, err = e.Flag(t)
	}
	if err != nil {
		return "fails"
	}
	return fmt.Sprint(v)
}

// TestClosuresMatchInterpreter expects the same values to the bit and the same errors. Fields that
// may be missing force the interpreter.
func TestClosuresMatchInterpreter(t *testing.T) {
	g := &grammar{rand.New(rand.NewPCG(1, 1)), map[string]int{}}
	numbers := []float64{0, math.Copysign(0, -1), 1, -1, 2.5, 1e308, math.Inf(1), math.Inf(-1), math.NaN()}
	texts := []string{"", "ab", "a", "b", "c", "abab"}
	closures, fails := recordFields(nil), 0
	interpreted := recordFields(func(*record) bool { return true })
	for i := range 6000 {
		src := []func(int) string{g.number, g.text, g.flag}[i%3](1 + g.IntN(4))
		fast, err := Compile(src, closures, Number, Text, Flag)
		if err != nil {
			if strings.Contains(err.Error(), "steps") {
				continue
			}
			t.Fatalf("%s: %v", src, err)
		}
		slow, err := Compile(src, interpreted, Number, Text, Flag)
		if err != nil {
			t.Fatal(err)
		}
		if !fast.Closure() || slow.Closure() && len(slow.Uses()) > 0 {
			t.Fatalf("%s: closures %v and %v", src, fast.Closure(), slow.Closure())
		}
		for range 8 {
			x := &record{numbers[g.IntN(len(numbers))], numbers[g.IntN(len(numbers))], texts[g.IntN(len(texts))],
				texts[g.IntN(len(texts))], g.IntN(2) == 0, g.IntN(2) == 0}
			want, got := result(slow, x), result(fast, x)
			if got != want {
				t.Fatalf("%s of %+v: the interpreter says %s, closures say %s", src, *x, want, got)
			}
			if want == "fails" {
				fails++
			}
		}
	}
	for op, n := range g.used {
		if n < 50 {
			t.Errorf("%s was tested only %d times", op, n)
		}
	}
	if len(g.used) < 45 || fails > 0 {
		t.Errorf("%d parts, %d failures; nothing in them can fail", len(g.used), fails)
	}
}

const score = `-2.0*x.a - x.b + (x.a > 1000 ? x.b : 0.5*x.b)`

func TestClosuresAllocateNothing(t *testing.T) {
	x := &record{a: 5, b: 0.5, s: "ab"}
	for _, src := range []string{score, `x.s == "ab" && x.s.startsWith("a") || x.a in [1, 2]`,
		`x.f ? "admit" : "reject"`} {
		e, err := Compile(src, recordFields(nil), Number, Text, Flag)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			switch e.Type() {
			case Number:
				e.Number(x)
			case Text:
				e.Text(x)
			case Flag:
				e.Flag(x)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", src, n)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`x.aa > 1`, `1:1: unknown name "x.aa"; did you mean "x.a"? (have x.a, x.b, x.s, x.f)`},
		{"true &&\n  y.a > 1", `2:3: unknown name "y.a"`},
		{`v == "a"`, `1:1: unknown name "v"`},
		{`x.s + 1 > 2`, `1:5: + does not take (text, number)`},
		{`x.a && x.f`, `1:`},
		{`x.s`, `1:1: this is of type text; it must be of type number or of type true or false, ` +
			`such as 1 + 2 or 1 < 2`},
		{`min(x.a)`, `1:4: min does not take (number)`},
		{`mni(x.a, 1)`, `1:4: unknown function "mni"`},
		{`[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, ` +
			`[1,2,3,4,5,6,7,8,9].all(d, a+b+c+d > x.a))))`, `1:1: this can take `},
		{`x.a >`, `1:6: Syntax error`},
		{`x.a > 500ms`, `1:10: Syntax error: extraneous input 'ms' expecting <EOF>; numbers have no unit: latencies ` +
			`are in ms, so 2 s is 2000`},
		{`x.a > 500 x.b`, `1:11: Syntax error`},
		{``, `1:1: `},
		{`x.a.c > 1`, `1:1: unknown name "x.a.c"; did you mean "x.a"?`},
		{`[1, 2] + [3] == [x.a]`, `1:8: lists cannot be joined`},
		{`[[1, 2]].map(y, y + y)[0].exists(y, y == x.a)`, `1:13: lists of lists are not allowed`},
		{`[1].map(y, [y]).exists(y, y == y)`, `1:8: lists of lists are not allowed`},
		{`[1, "a"].exists(y, y == x.a)`, `1:1: `},
		{`dyn(x.a) > 1`, `1:4: values of any type are not allowed`},
		{`{"a": x.a}["a"] > 1`, `1:1: maps are not allowed`},
	} {
		_, err := Compile(c.src, recordFields(nil), Number, Flag)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.src, err, c.want)
		}
	}
}

func TestUsesAndCompared(t *testing.T) {
	e, err := Compile("x.s == 'a' || 'b' != x.s ||\n u in ['c', x.s] && [1, 2].exists(n, n > x.b)", recordFields(nil),
		Flag)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(e.Uses()); got != "[u x.b x.s]" {
		t.Errorf("uses %s", got)
	}
	if got := fmt.Sprint(e.ComparedLiterals("x.s"), e.ComparedLiterals("u"),
		e.ComparedLiterals("x.b")); got != "[{a 1 8} {b 1 15}] [{c 2 8}] []" {
		t.Errorf("compared with %s", got)
	}
}

// TestCostLimitStopsGrowingTexts: a chain of macros that each double a string, which the estimate
// misses, fails at the step limit.
func TestCostLimitStopsGrowingTexts(t *testing.T) {
	for n, fails := range map[int]bool{2: false, 60: true} {
		e, err := Compile(`[x.s]`+strings.Repeat(".map(y, y + y)", n)+`[0] == "abababab"`, recordFields(nil), Flag)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Flag(&record{s: "ab"})
		if (err != nil) != fails || got == fails {
			t.Errorf("%d times: %v, %v", n, got, err)
		}
	}
}

// TestWrongTypePanics covers closures and interpreted expressions.
func TestWrongTypePanics(t *testing.T) {
	for src, closure := range map[string]bool{`x.a`: true, `double(size(x.s))`: false} {
		e, err := Compile(src, recordFields(nil), Number)
		if err != nil || e.Closure() != closure {
			t.Fatal(src, err)
		}
		for name, get := range map[string]func(){"Text": func() { e.Text(&record{}) },
			"Flag": func() { e.Flag(&record{}) }} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s of %s does not panic", name, src)
					}
				}()
				get()
			}()
		}
	}
}

func benchmark(b *testing.B, fields []Field[record], closure bool) {
	e, err := Compile(score, fields, Number)
	if err != nil || e.Closure() != closure {
		b.Fatal(err, e.Closure())
	}
	x := &record{a: 5, b: 0.5}
	for b.Loop() {
		e.Number(x)
	}
}

func BenchmarkClosure(b *testing.B) { benchmark(b, recordFields(nil), true) }
func BenchmarkInterpreter(b *testing.B) {
	benchmark(b, recordFields(func(*record) bool { return true }), false)
}

// FuzzCompile: closures and the interpreter have the same value to the bit, or the same error.
func FuzzCompile(f *testing.F) {
	for _, src := range []string{"x.a + 1", "x.f ? min(x.a, 2) : x.b", `x.s.startsWith("a") && u in ["b"]`,
		"pow(x.a, -x.b)", "[1, 2].exists(i, i > x.a)", "{}", "\"\\n", "x.a < "} {
		f.Add(src, 1.5, -2.0)
	}
	f.Fuzz(func(t *testing.T, src string, a, b float64) {
		fast, err := Compile(src, recordFields(nil), Number, Text, Flag)
		slow, slowErr := Compile(src, recordFields(func(*record) bool { return true }), Number, Text, Flag)
		if err != nil || slowErr != nil {
			if (err == nil) != (slowErr == nil) {
				t.Errorf("%q: %v, and interpreted: %v", src, err, slowErr)
			}
			return
		}
		x := &record{a: a, b: b, s: "ab", u: "b", f: true}
		if got, want := result(fast, x), result(slow, x); got != want {
			t.Errorf("%q of %+v: the interpreter says %s, closures say %s", src, *x, want, got)
		}
	})
}
