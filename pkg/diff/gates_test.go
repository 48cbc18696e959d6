package diff

import (
	"strings"
	"testing"

	"blis/pkg/stat"
)

// ttft.p99 grew from 200 to 230 ms, by 5 to 60 ms; nothing timed out, and b has no TPOT.
var gateMetrics = Metrics{
	{Path: "ttft.p99", A: ms(200), B: ms(230), Diff: ms(30), RelativeDiff: ms(0.15),
		CI: &stat.Interval{Lo: 5, Hi: 60, Level: 0.95}},
	{Path: "requests.timed_out", A: ms(0), B: ms(0), Diff: ms(0)},
	{Path: "tpot.mean", A: ms(9)},
	{Path: `cls["be st"].goodput.ratio`, A: ms(0.9), B: ms(0.8), Diff: ms(-0.1), RelativeDiff: ms(-0.1 / 0.9)},
	{Path: "replicas[0].requests", A: ms(4), B: ms(6), Diff: ms(2), RelativeDiff: ms(0.5)},
}

func TestGates(t *testing.T) {
	for src, want := range map[string]bool{
		"d.ttft.p99.relative_diff > 0.05":                              true,
		"d.ttft.p99.relative_diff > 0.15":                              false,
		"d.ttft.p99.ci.lo > 0 && d.ttft.p99.diff >= 30":                true,
		"d.ttft.p99.ci.hi - d.ttft.p99.ci.lo == 55":                    true,
		"b.ttft.p99 > 1.1 * a.ttft.p99":                                true,
		"b.ttft.p99 / a.ttft.p99 != 1.15":                              false,
		"!(a.ttft.p99 < 100)":                                          true,
		`d.cls["be st"].goodput.ratio.diff < -0.05`:                    true,
		`abs(d.cls["be st"].goodput.ratio.diff) > max(0.2, 0.1 + 0.2)`: false,
		"d.replicas[0].requests.diff == 2":                             true,
		"b.requests.timed_out > 0 ? true : false":                      false,
		"-a.replicas[0].requests < min(1, 2)":                          true,
		// A missing number does not matter if the other operand decides.
		"b.ttft.p99 > 1 || b.tpot.mean > 1":    true,
		"b.tpot.mean > 1 || b.ttft.p99 > 1":    true,
		"b.tpot.mean > 1 && b.ttft.p99 > 1000": false,
	} {
		g, err := compileGate(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got, err := g.isTrue(gateMetrics); got != want || err != nil {
			t.Errorf("%s: %v, %v", src, got, err)
		}
	}
	for src, want := range map[string]string{
		"b.tpot.mean > 1":                        "b.tpot.mean is missing",
		"!(d.tpot.mean.relative_diff > 1)":       "d.tpot.mean.relative_diff is missing",
		"d.requests.timed_out.relative_diff > 1": "d.requests.timed_out.relative_diff is missing",
		`a.cls["other"].ttft.p99 > 1`:            `a.cls["other"].ttft.p99 is missing`,
		"a.requests.timed_out / 0 > 1":           "a.requests.timed_out / 0 is not a number",
		"b.tpot.mean > 1 ? true : false":         "b.tpot.mean is missing",
		"b.tpot.mean > 1 || b.ttft.p99 < 100":    "b.tpot.mean is missing",
	} {
		want = "--fail-if " + src + ": cannot be decided: " + want
		g, err := compileGate(src)
		must(err)
		if _, err := g.isTrue(gateMetrics); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", src, err, want)
		}
	}
}

func TestGateErrorsHavePositions(t *testing.T) {
	for src, want := range map[string]string{
		"d.ttft.p99 > 1": `1:1: "d.ttft.p99" is incomplete; append one of ` +
			`diff, relative_diff, ci.lo, ci.hi`,
		"1 < d.tttf.p99.relative_diff": `1:5: unknown metric "tttf.p99"; did you mean "ttft.p99"?`,
		"d.ttft.p99.relative_dif > 1": `1:1: unknown field of a difference "relative_dif"; ` +
			`did you mean "relative_diff"? ` +
			`(have diff, relative_diff, ci.lo, ci.hi)`,
		"m.ttft.p99 > 1":                     `1:1: unknown name "m.ttft.p99"; names start with a. or b.`,
		"d > 1":                              `1:1: "d" is incomplete; names are such as a.ttft.p99`,
		"a > 1":                              `1:1: "a" is incomplete`,
		"d.ttft.p99.relative_diff":           `1:1: this is of type number; it must be of type true or false`,
		`a.ttft.p99 > "x"`:                   `1:12: > does not take (number, text)`,
		`"x" == "y"`:                         `1:1: strings are allowed only in names`,
		"sqrt(a.ttft.p99) > 1":               `1:1: unknown function "sqrt"`,
		"d.ttft.p99.relative_diff > 0.05 &&": `1:35: Syntax error`,
		"":                                   `1:1: `,
	} {
		if _, err := compileGate(src); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", src, err, want)
		}
	}
}

// TestGateTextStatesTheCondition: a reader cannot take a false condition for a failed gate.
func TestGateTextStatesTheCondition(t *testing.T) {
	for want, g := range map[string]Gate{"passed (false is not true)": {Expr: "false"},
		"failed (a.e2e.max > 1 is true)": {Expr: "a.e2e.max > 1", Failed: true}} {
		if got := g.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzGate(f *testing.F) {
	for _, src := range []string{"d.ttft.p99.relative_diff > 0.05", `a.cls["x"].ttft.p99 < 1 ? true : b.e2e.max > 1`,
		"!(abs(-1) == 1)", "d.", `"`, "[1][0] > 1"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		g, err := compileGate(src)
		if err != nil {
			return
		}
		first, failed := g.isTrue(gateMetrics)
		if second, again := g.isTrue(gateMetrics); first != second || (failed == nil) != (again == nil) {
			t.Errorf("%q: %v, %v, then %v, %v", src, first, failed, second, again)
		}
	})
}
