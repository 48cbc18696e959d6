package fitness

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/expr"
	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/metrics"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// drawMetrics draws any metrics, with any of their parts missing.
func drawMetrics(t *rapid.T) *metrics.Raw {
	number := func(name string) float64 {
		return rapid.OneOf(rapid.Float64Range(0, 1000),
			rapid.SampledFrom([]float64{0, 1, 1e-300, 1e300, math.MaxFloat64})).Draw(t, name)
	}
	has := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) > 0 }
	distribution := func(name string) *metrics.Distribution {
		if !has(name) {
			return nil
		}
		return &metrics.Distribution{Count: int64(rapid.IntRange(1, 5000).Draw(t, name+" count")), Mean: number(name),
			P50: number(name), P90: number(name), P99: number(name)}
	}
	group := func() metrics.Group {
		g := metrics.Group{TTFT: distribution("ttft"), TPOT: distribution("tpot"), E2E: distribution("e2e")}
		g.Requests.Offered = int64(rapid.IntRange(0, 9).Draw(t, "offered"))
		g.Requests.Rejected = int64(rapid.IntRange(0, 9).Draw(t, "rejected"))
		g.Goodput = &metrics.Goodput{Ratio: rapid.Float64Range(0, 1).Draw(t, "goodput")}
		if has("rate") {
			g.Throughput = &metrics.Throughput{RPS: number("rps")}
			g.TailBlowup = ptr(number("tail"))
		}
		return g
	}
	r := &metrics.Raw{Group: group()}
	if critical := group(); has("critical") {
		r.Cls = map[string]*metrics.Group{"critical": &critical}
	}
	return r
}

// drawExpression draws a numeric expression. wrapped says that it may hold a missing time.
func drawExpression(t *rapid.T, depth int, wrapped bool) string {
	leaves := []string{"0", "0.5", "1", "3", "m.goodput.ratio", "m.requests.rejected", "m.requests.offered",
		"base.requests.offered", "m.throughput.rps", `attained("critical")`, "request_goodput"}
	if wrapped {
		leaves = append(leaves, "m.ttft.p99", "base.ttft.p99", "p99_tpot_ms", "m.tail_blowup",
			`m.cls["critical"].e2e.mean`)
	}
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	x := func(wrapped bool) string { return drawExpression(t, depth-1, wrapped) }
	switch op := rapid.SampledFrom([]string{"+", "-", "*", "/", "neg", "ratio", "gain", "soft", "wmean", "wgeo",
		"worst", "lex", "clamp", "min", "exp", "log", "?:", "leaf"}).Draw(t, "op"); op {
	case "+", "-", "*", "/":
		return fmt.Sprintf("(%s %s %s)", x(wrapped), op, x(wrapped))
	case "neg":
		return fmt.Sprintf("-(%s)", x(wrapped))
	case "ratio":
		return fmt.Sprintf("ratio(%s, %s)", x(true), x(true))
	case "soft":
		return fmt.Sprintf("soft(%s, %s, 2)", x(true),
			rapid.SampledFrom([]string{"0.5", "200", "base.ttft.p50"}).Draw(t, "limit"))
	case "gain", "min", "worst", "lex":
		return fmt.Sprintf("%s(%s, %s)", op, x(wrapped), x(wrapped))
	case "wmean", "wgeo":
		return fmt.Sprintf("%s(0.3, %s, 2, %s)", op, x(wrapped), x(wrapped))
	case "clamp":
		return fmt.Sprintf("clamp(%s, 0, 1)", x(wrapped))
	case "exp", "log":
		return fmt.Sprintf("%s(%s)", op, x(wrapped))
	case "?:":
		return fmt.Sprintf("(%s > %s ? %s : %s)", x(wrapped), x(wrapped), x(wrapped), x(wrapped))
	}
	return drawExpression(t, 0, wrapped)
}

// magnitude returns the sum of the absolute values of the numbers that n adds up. The rounding errors of
// a sum are proportional to it: after 1e300 has been added and subtracted, nothing is left of smaller ones.
func magnitude(e *evaluator, n *expr.Node) float64 {
	arg := func(i int) float64 { return magnitude(e, n.Args[i]) }
	isLiteral := func(i int) bool { _, ok := literal(n, i); return ok }
	switch {
	case n.Op == "+" || n.Op == "-":
		return arg(0) + arg(1)
	case n.Op == "neg":
		return arg(0)
	case n.Op == "*" && (isLiteral(0) || isLiteral(1)):
		return arg(0) * arg(1)
	case n.Op == "/" && isLiteral(1):
		return arg(0) / arg(1)
	}
	return math.Abs(e.number(n).x)
}

// For any metrics and expression there is a finite score in (0, 1), or an error with a position, also
// with gates and several scenarios.
func TestScoreIsFinite(t *testing.T) {
	scores, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		src := drawExpression(rt, rapid.IntRange(0, 4).Draw(rt, "depth"), false)
		text := fmt.Sprintf("version: 1\nscore: %s\naggregate: %s\n"+
			"gates: [{name: g, expr: %s < 0.5 || m.ttft.p99 < 100}]\nobjectives: {o: -m.e2e.p50}",
			src, rapid.SampledFrom(Aggregates.Names()).Draw(rt, "aggregate"), src)
		gate := src + " < 0.5 || m.ttft.p99 < 100"
		text = strings.ReplaceAll(text, "score: ", "score: >\n  ")
		f, err := loadText(t, strings.ReplaceAll(text, "expr: "+gate+"}", "expr: '"+gate+"'}"))
		if err != nil {
			if !strings.Contains(err.Error(), ":") || !strings.Contains(err.Error(), "division by 0") {
				rt.Fatalf("%s: %v", src, err)
			}
			return
		}
		var all []Scenario
		for i := range rapid.IntRange(1, 3).Draw(rt, "scenarios") {
			run := NewRun(Tree{Raw: drawMetrics(rt)}, classes, Tree{Raw: drawMetrics(rt)}, Tree{})
			r, err := f.Evaluate(run)
			if err != nil {
				if !strings.Contains(err.Error(), "fitness.yaml:") {
					rt.Fatalf("%s: %v", src, err)
				}
				refused++
				return
			}
			all = append(all, Scenario{fmt.Sprint(i), r})
			// The score composed of its terms equals that of the whole expression, except for rounding:
			// both add up at most 16 numbers with at most 4 factors each, in different orders.
			e := &evaluator{fitness: f, run: run, path: "score"}
			limit := 1e-14 * max(1, magnitude(e, f.score))
			if whole := clampValue(e.number(f.score).x); math.Abs(whole-r.Value) > limit {
				rt.Fatalf("%s is %v as a whole, %v composed of its terms", src, whole, r.Value)
			}
			for _, term := range r.Terms {
				if !(term.Lost >= 0) || term.Lost > 0.9 {
					rt.Fatalf("%s: %+v", src, term)
				}
			}
		}
		r := f.Combine(all)
		passed := true
		for _, s := range all {
			passed = passed && s.Gates[0].Passed
		}
		if !(r.Score > 0 && r.Score < 1) || passed && r.Score < 0.1 || !passed && r.Score > 0.1 {
			rt.Fatalf("%s: score %v, passed %v", src, r.Score, passed)
		}
		scores++
	})
	// 70 % are scored and 27 % refused: none of 20 is scored with a probability of 4e-11, and none of 100
	// refused of 2e-14.
	if scores == 0 || refused == 0 && !testing.Short() {
		t.Errorf("%d scores, %d refused", scores, refused)
	}
}

// With longer times ratio and soft are not larger, and with missing times they are smallest.
func TestLongerTimesDoNotScoreHigher(t *testing.T) {
	f, err := Expression("score",
		"wmean(2, ratio(base.ttft.p99, m.ttft.p99), 1, soft(m.e2e.p99, 100, 2), 1, m.goodput.ratio)")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		base := healthyMetrics()
		score := func(m *metrics.Raw) float64 {
			r, err := f.Evaluate(NewRun(Tree{Raw: m}, []stream.SLOClass{}, Tree{Raw: base}, Tree{}))
			if err != nil {
				rt.Fatal(err)
			}
			return r.Score
		}
		a, b := healthyMetrics(), healthyMetrics()
		ms := rapid.Float64Range(0, 1e6)
		a.TTFT.P99, a.E2E = ms.Draw(rt, "ttft"), &metrics.Distribution{P99: ms.Draw(rt, "e2e")}
		b.TTFT.P99, b.E2E = a.TTFT.P99+ms.Draw(rt, "more"), &metrics.Distribution{P99: a.E2E.P99 + ms.Draw(rt, "more")}
		none := healthyMetrics()
		none.TTFT, none.E2E = nil, nil
		if x, y, z := score(a), score(b), score(none); x < y || y < z {
			rt.Fatalf("%v, longer %v, missing %v", x, y, z)
		}
	})
}
