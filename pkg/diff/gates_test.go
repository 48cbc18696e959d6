package diff

import (
	"strings"
	"testing"
)

// ttft.p99 grew from 200 to 230 ms, by 5 to 60; nothing timed out, and b has no TPOT.
var gated = Metrics{
	{Path: "ttft.p99", A: ms(200), B: ms(230), Abs: ms(30), Rel: ms(0.15), Lo: ms(5), Hi: ms(60)},
	{Path: "requests.timed_out", A: ms(0), B: ms(0), Abs: ms(0)},
	{Path: "tpot.mean", A: ms(9)},
	{Path: `cls["be st"].goodput.ratio`, A: ms(0.9), B: ms(0.8), Abs: ms(-0.1), Rel: ms(-0.1 / 0.9)},
	{Path: "replica[0].requests", A: ms(4), B: ms(6), Abs: ms(2), Rel: ms(0.5)},
}

func TestGates(t *testing.T) {
	for src, want := range map[string]bool{
		"d.ttft.p99.rel > 0.05":                                       true,
		"d.ttft.p99.rel > 0.15":                                       false,
		"d.ttft.p99.lo > 0 && d.ttft.p99.abs >= 30":                   true,
		"d.ttft.p99.hi - d.ttft.p99.lo == 55":                         true,
		"b.ttft.p99 > 1.1 * a.ttft.p99":                               true,
		"b.ttft.p99 / a.ttft.p99 != 1.15":                             false,
		"!(a.ttft.p99 < 100)":                                         true,
		`d.cls["be st"].goodput.ratio.abs < -0.05`:                    true,
		`abs(d.cls["be st"].goodput.ratio.abs) > max(0.2, 0.1 + 0.2)`: false,
		"d.replica[0].requests.abs == 2":                              true,
		"b.requests.timed_out > 0 ? true : false":                     false,
		"-a.replica[0].requests < min(1, 2)":                          true,
		// What is absent does not matter where the rest decides.
		"b.ttft.p99 > 1 || b.tpot.mean > 1":    true,
		"b.tpot.mean > 1 || b.ttft.p99 > 1":    true,
		"b.tpot.mean > 1 && b.ttft.p99 > 1000": false,
	} {
		g, err := compileGate(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got, err := g.decide(gated); got != want || err != nil {
			t.Errorf("%s: %v, %v", src, got, err)
		}
	}
	for src, want := range map[string]string{
		"b.tpot.mean > 1":                     "--fail-if b.tpot.mean > 1: cannot be decided: b.tpot.mean is absent",
		"!(d.tpot.mean.rel > 1)":              "--fail-if !(d.tpot.mean.rel > 1): cannot be decided: d.tpot.mean.rel is absent",
		"d.requests.timed_out.rel > 1":        "--fail-if d.requests.timed_out.rel > 1: cannot be decided: d.requests.timed_out.rel is absent",
		`a.cls["other"].ttft.p99 > 1`:         `--fail-if a.cls["other"].ttft.p99 > 1: cannot be decided: a.cls["other"].ttft.p99 is absent`,
		"a.requests.timed_out / 0 > 1":        "--fail-if a.requests.timed_out / 0 > 1: cannot be decided: a.requests.timed_out / 0 is not a number",
		"b.tpot.mean > 1 ? true : false":      "--fail-if b.tpot.mean > 1 ? true : false: cannot be decided: b.tpot.mean is absent",
		"b.tpot.mean > 1 || b.ttft.p99 < 100": "--fail-if b.tpot.mean > 1 || b.ttft.p99 < 100: cannot be decided: b.tpot.mean is absent",
	} {
		g, err := compileGate(src)
		must(err)
		if _, err := g.decide(gated); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", src, err, want)
		}
	}
}

func TestGateErrorsHavePlaces(t *testing.T) {
	for src, want := range map[string]string{
		"d.ttft.p99 > 1":           `1:1: "d.ttft.p99" is only the beginning of a name (have abs, rel, lo, hi)`,
		"1 < d.tttf.p99.rel":       `1:5: unknown metric "tttf.p99"; did you mean "ttft.p99"?`,
		"d.ttft.p99.rell > 1":      `1:1: unknown part "rell"; did you mean "rel"? (have abs, rel, lo, hi), of a difference`,
		"m.ttft.p99 > 1":           `1:1: unknown name "m.ttft.p99"; names begin with a., b.`,
		"d > 1":                    `1:1: "d" is only the beginning of a name, such as a.ttft.p99`,
		"a > 1":                    `1:1: "a" is only the beginning of a name`,
		"d.ttft.p99.rel":           `1:1: this is of type number; it must be of type true or false`,
		`a.ttft.p99 > "x"`:         `1:12: > does not take (number, text)`,
		`"x" == "y"`:               `1:1: texts stand in names only`,
		"sqrt(a.ttft.p99) > 1":     `1:1: unknown function "sqrt"`,
		"d.ttft.p99.rel > 0.05 &&": `1:25: Syntax error`,
		"":                         `1:1: `,
	} {
		if _, err := compileGate(src); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", src, err, want)
		}
	}
}

func FuzzGate(f *testing.F) {
	for _, src := range []string{"d.ttft.p99.rel > 0.05", `a.cls["x"].ttft.p99 < 1 ? true : b.e2e.max > 1`, "!(abs(-1) == 1)", "d.", `"`, "[1][0] > 1"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		g, err := compileGate(src)
		if err != nil {
			return
		}
		first, failed := g.decide(gated)
		if second, again := g.decide(gated); first != second || (failed == nil) != (again == nil) {
			t.Errorf("%q: %v, %v, then %v, %v", src, first, failed, second, again)
		}
	})
}
