package fitness

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

func ptr(x float64) *float64 { return &x }

// healthyMetrics are those of the arithmetic by hand in tests.
func healthyMetrics() *metrics.Raw {
	g := func(p99, attained float64) *metrics.Group {
		return &metrics.Group{Requests: metrics.Requests{Offered: 100, Admitted: new(int64(100)), Completed: 100},
			TTFT:    &metrics.Distribution{Count: 2000, Mean: p99 / 4, P50: p99 / 5, P99: p99},
			Goodput: &metrics.Goodput{Ratio: attained, Offered: 100}}
	}
	r := &metrics.Raw{DurationS: 10, Group: *g(300, 0.9)}
	r.Cls = map[string]*metrics.Group{"critical": g(200, 0.8), "batch": g(400, 1)}
	r.Cls["batch"].Goodput = nil
	r.Throughput = &metrics.Throughput{RPS: 30}
	r.KV.PrefixHitRatio = ptr(0.25)
	return r
}

// rejectedMetrics are those of a run in which every request is rejected.
func rejectedMetrics() *metrics.Raw {
	r := &metrics.Raw{Group: metrics.Group{Requests: metrics.Requests{Offered: 100, Rejected: 100},
		Goodput: &metrics.Goodput{Offered: 100}}}
	r.Cls = map[string]*metrics.Group{"critical": {Requests: metrics.Requests{Offered: 50, Rejected: 50},
		Goodput: &metrics.Goodput{Offered: 50}}}
	return r
}

var classes = []stream.SLOClass{{Name: "critical", Targets: stream.Targets{TTFTMS: 150}}, {Name: "batch"},
	{Name: "quiet", Targets: stream.Targets{E2EMS: 9}}}

func runOf(m, base *metrics.Raw) *Run {
	return NewRun(Tree{Raw: m}, classes, Tree{Raw: base}, Tree{})
}

func evaluate(t *testing.T, src string, r *Run) *Result {
	t.Helper()
	f, err := Expression("score", src)
	if err != nil {
		t.Fatal(err)
	}
	result, err := f.Evaluate(r)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return result
}

// Each function by hand. TTFT p99 is 300, that of critical 200, that of base 600.
func TestFunctions(t *testing.T) {
	base := healthyMetrics()
	base.TTFT.P99, base.Throughput.RPS = 600, 10
	for src, want := range map[string]float64{
		"0.25":                                        0.25,
		"ratio(base.ttft.p99, m.ttft.p99)":            600.0 / 900,
		"ratio(base.p99_ttft_ms, p99_ttft_ms)":        600.0 / 900,
		"gain(m.throughput.rps, base.throughput.rps)": 0.75,
		"gain(request_throughput, 30)":                0.5,
		"soft(m.ttft.p99, 300, 3)":                    1,
		"soft(m.ttft.p99, 200, 3)":                    math.Exp(-1.5),
		`attained("critical")`:                        0.8,
		`m.cls["critical"].goodput.ratio`:             0.8,
		`m["cls"]["critical"].goodput.ratio`:          -1,
		"m.kv.prefix_hit_ratio / 2":                   0.125,
		"wmean(1, 0.2, 3, 0.6)":                       0.5,
		"wgeo(1, 0.25, 1, 1)":                         0.5,
		"wgeo(1, 0, 1, 1)":                            0,
		"wgeo(0, 0, 1, 0.5)":                          0.5,
		"worst(0.5, 0.25, 0.75)":                      0.25,
		"lex(0.519, 0.4)":                             0.514,
		"lex(0.519, 0.4) - lex(0.51, 0.3)":            0.001,
		"lex(1, 1, 1)":                                0.99 + 0.0099 + 0.0001,
		"clamp(m.throughput.rps / 40, 0.5, 1)":        0.75,
		"m.requests.rejected == 0 ? 0.5 : 0.1":        0.5,
		"ratio(0, m.requests.rejected)":               0.5,
		"abs(-0.5) + pow(0.5, 2) - sqrt(0.25) + min(0, 1) + max(0, 0.1) + exp(0) - 1 + log(1)": 0.35,
		"m.anomalies.hol_blocking + 0.5": 0.5,
		`attained("quiet")`:              0,
	} {
		if want < 0 {
			if _, err := Expression("score", src); err == nil {
				t.Errorf("%s is accepted", src)
			}
			continue
		}
		r := evaluate(t, src, runOf(healthyMetrics(), base))
		if math.Abs(r.Value-want) > 1.1e-9 || math.Abs(r.Score-(0.1+0.9*want)) > 1e-9 {
			t.Errorf("%s is %v (score %v), want %v", src, r.Value, r.Score, want)
		}
	}
}

// A missing time makes ratio and soft 0; a missing count is 0.
func TestMissingNumbers(t *testing.T) {
	for src, want := range map[string]float64{
		"ratio(base.ttft.p99, m.ttft.p99)":                            0,
		"ratio(base.ttft.p99, m.ttft.p99 - m.e2e.p99)":                0,
		"ratio(m.ttft.p99, base.ttft.p99)":                            0,
		"soft(m.tail_blowup, 3, 1)":                                   0,
		"soft(max(m.ttft.p99, 1), 3, 1)":                              0,
		"1 - soft(m.requests.completed > 0 ? 1 : m.ttft.p99, 200, 3)": 1,
		"ratio(1, m.requests.completed > 0 ? m.ttft.p99 : 1)":         0.5,
		"ratio(1, m.ttft.p99 > 5 ? 1 : 1)":                            0,
		"m.kv.prefix_hit_ratio + m.throughput.rps":                    0,
		`attained("critical")`:                                        0,
		"ratio(1, 5 / m.requests.completed)":                          0,
		"gain(m.throughput.rps, 10)":                                  0,
		"m.fairness.jain":                                             0,
	} {
		r := evaluate(t, src, runOf(rejectedMetrics(), healthyMetrics()))
		if math.Abs(r.Value-want) > 1e-8 || r.Score < 0.1 {
			t.Errorf("%s is %v (score %v), want %v", src, r.Value, r.Score, want)
		}
	}
	r := evaluate(t, "ratio(base.ttft.p99, m.ttft.p99)", runOf(rejectedMetrics(), healthyMetrics()))
	if len(r.Warnings) != 1 || r.Warnings[0] != "m.ttft.p99 is missing: ratio(base.ttft.p99, m.ttft.p99) counts as 0" {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// A score outside of [0, 1) is clamped, and a warning names the term.
func TestScoreIsClamped(t *testing.T) {
	for src, want := range map[string]struct {
		value   float64
		warning string
	}{
		"m.throughput.rps": {1 - 1e-9,
			"the score is 30 and counts as 1: m.throughput.rps is 30, but should be in [0, 1]"},
		"0.5 * m.goodput.ratio + m.ttft.count": {1 - 1e-9,
			"the score is 2000.45 and counts as 1: m.ttft.count is 2000, but should be in [0, 1]"},
		"m.goodput.ratio - m.throughput.rps": {0,
			"the score is -29.1 and counts as 0: m.throughput.rps is 30, but should be in [0, 1]"},
		"m.throughput.rps / 30": {1 - 1e-9, ""},
		"wmean(1, m.throughput.rps, 3, 1) - 0.2": {1 - 1e-9,
			"the score is 8.05 and counts as 1: wmean(1, m.throughput.rps, 3, 1) is 8.25, but should be in [0, 1]"},
	} {
		r := evaluate(t, src, runOf(healthyMetrics(), nil))
		if r.Value != want.value || strings.Join(r.Warnings, "; ") != want.warning || r.Score >= 1 {
			t.Errorf("%s is %v, %q", src, r.Value, r.Warnings)
		}
	}
}

// Terms have names, weights and what they lose.
func TestTerms(t *testing.T) {
	base := healthyMetrics()
	for _, c := range []struct{ src, want string }{
		// 0.25 * 0.9 + 0.75 * 0.5 = 0.6: the first can gain 0.025, the second 0.375; 0.9 of that is fitness.
		{"wmean(1, m.goodput.ratio, 3, ratio(base.ttft.p99, m.ttft.p99))",
			"goodput.ratio 0.25 0.9 1 0.0225; ttft.p99 0.75 0.5 1 0.3375"},
		{"0.5 * m.goodput.ratio - m.kv.prefix_hit_ratio / 5 + 0.1",
			"goodput.ratio 0.5 0.9 1 0.045; kv.prefix_hit_ratio -0.2 0.25 0 0.045"},
		{`2 * (attained("critical") * 0.25 + 0.25 * attained("critical"))`,
			`cls["critical"].goodput.ratio 0.5 0.8 1 0.09; cls["critical"].goodput.ratio (2) 0.5 0.8 1 0.09`},
		{"worst(m.goodput.ratio, m.kv.prefix_hit_ratio)",
			"goodput.ratio 1 0.9 1 0; kv.prefix_hit_ratio 1 0.25 1 0.585"},
		{"wgeo(1, 0.25, 1, m.requests.rejected + 1)", "0.25 0.5 0.25 1 0.45; requests.rejected 0.5 1 1 0"},
		{"lex(m.goodput.ratio, 0.5)", "goodput.ratio 1 0.9 1 0.081; 0.5 0.01 0.5 1 0.0045"},
		{"m.goodput.ratio * m.kv.prefix_hit_ratio", "goodput.ratio + kv.prefix_hit_ratio 1 0.225 1 0.6975"},
		{"0.5", ""},
	} {
		var got []string
		for _, x := range evaluate(t, c.src, runOf(healthyMetrics(), base)).Terms {
			got = append(got, fmt.Sprintf("%s %.4g %.4g %.4g %.4g", x.Name, x.Weight, x.Value, x.Ideal, x.Lost))
		}
		if have := strings.Join(got, "; "); have != c.want {
			t.Errorf("%s: %s, want %s", c.src, have, c.want)
		}
	}
}

// loadText writes a fitness file and loads it.
func loadText(t *testing.T, text string) (*Fitness, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fitness.yaml")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Load(name)
	if err != nil {
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), filepath.Dir(name)+"/", ""))
	}
	return f, err
}

// TestGateTextHasEachConditionOnce: with the number that decides it.
func TestGateTextHasEachConditionOnce(t *testing.T) {
	for want, g := range map[string]Gate{
		"m.ttft.p99 < 2000 (is 9239.47)":   {Expr: "m.ttft.p99 < 2000", Detail: "m.ttft.p99 (9239.47) < 2000"},
		"max(m.a, m.b) < 2 (is 9)":         {Expr: "max(m.a, m.b) < 2", Detail: "max(m.a, m.b) (9) < 2"},
		"2000 > m.ttft.p99 (is 9239.47)":   {Expr: "2000 > m.ttft.p99", Detail: "2000 > m.ttft.p99 (9239.47)"},
		"m.a < m.b (m.a (2) < m.b (1))":    {Expr: "m.a < m.b", Detail: "m.a (2) < m.b (1)"},
		"m.a < 1 || m.b < 1 (m.b (3) < 1)": {Expr: "m.a < 1 || m.b < 1", Detail: "m.b (3) < 1"},
		"m.a < 1 (m.a is missing)":         {Expr: "m.a < 1", Detail: "m.a is missing"},
		"false":                            {Expr: "false", Detail: "false"},
	} {
		if got := g.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Distances of gates by hand, and the resulting scores.
func TestGates(t *testing.T) {
	for _, c := range []struct {
		gate     string
		passed   bool
		distance float64
		detail   string
	}{
		{"m.ttft.p99 <= 300", true, 0, "m.ttft.p99 (300) <= 300"},
		{"m.ttft.p99 < 300", false, 0, "m.ttft.p99 (300) < 300"},
		{"m.ttft.p99 <= 100", false, 0.5, "m.ttft.p99 (300) <= 100"},
		{"m.ttft.p99 <= 100 && m.goodput.ratio > 0.91", false, 0.5, "m.ttft.p99 (300) <= 100"},
		{"m.ttft.p99 <= 100 || m.goodput.ratio >= 2.7", false, 0.5, "m.ttft.p99 (300) <= 100"},
		{"m.goodput.ratio >= 3.6 || m.ttft.p99 <= 100", false, 0.5, "m.ttft.p99 (300) <= 100"},
		{"m.ttft.p99 <= 100 || m.goodput.ratio > 0.5", true, 0, "m.goodput.ratio (0.9) > 0.5"},
		{"!(m.ttft.p99 > 100)", false, 1, "m.ttft.p99 (300) > 100"},
		{"m.e2e.p99 < 1e9", false, 1, "m.e2e.p99 is missing"},
		{"!(m.e2e.p99 > 100)", false, 1, "m.e2e.p99 is missing"},
		{"m.e2e.p99 < 5 || m.goodput.ratio > 0.5", true, 0, "m.goodput.ratio (0.9) > 0.5"},
		{"m.requests.rejected < m.requests.failed", false, 1, "m.requests.rejected (0) < m.requests.failed (0)"},
		{"m.requests.rejected / m.requests.failed < 1", false, 1, "m.requests.rejected / m.requests.failed (NaN) < 1"},
		{"false", false, 1, "false"},
		{"(m.goodput.ratio > 0.5) == (m.ttft.p99 > 500)", false, 1, "m.goodput.ratio (0.9) > 0.5"},
		{"m.goodput.ratio > 0.5 ? m.ttft.p99 <= 100 : true", false, 0.5, "m.ttft.p99 (300) <= 100"},
	} {
		f, err := loadText(t, fmt.Sprintf("version: 1\nscore: '0.5'\ngates:\n"+
			"- {name: it, expr: '%s'}\n- {name: fine, expr: 'true'}\n", c.gate))
		if err != nil {
			t.Errorf("%s: %v", c.gate, err)
			continue
		}
		r, err := f.Evaluate(runOf(healthyMetrics(), nil))
		if err != nil {
			t.Errorf("%s: %v", c.gate, err)
			continue
		}
		want := 0.55
		if !c.passed {
			want = 0.1 * (1 - min(c.distance/2, 0.999))
		}
		if g := r.Gates[0]; g.Passed != c.passed || math.Abs(g.Distance-c.distance) > 1e-12 || g.Detail != c.detail ||
			math.Abs(r.Score-want) > 1e-12 {
			t.Errorf("%s: %+v, score %v, want %v", c.gate, g, r.Score, want)
		}
	}
	f, err := loadText(t, "version: 1\nscore: '0.5'\ngates: [{name: a, expr: 'false'}]\n")
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := f.Evaluate(runOf(healthyMetrics(), nil)); math.Abs(r.Score-0.0001) > 1e-12 {
		t.Errorf("with the largest distance of all gates: %v", r.Score)
	}
}

// Missing objectives are null, and objectives may be times without ratio and soft.
func TestObjectives(t *testing.T) {
	f, err := loadText(t, `version: 1
score: m.goodput.ratio
objectives: {speed: -m.ttft.p99, e2e: -m.e2e.p99, undefined: 0 * (1 / m.requests.failed)}
features: {hits: m.kv.prefix_hit_ratio, regret: m.regret.avoidable_ms}
`)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Evaluate(runOf(healthyMetrics(), nil))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, v := range append(r.Objectives, r.Features...) {
		if v.Value == nil {
			got += v.Name + " null; "
		} else {
			got += fmt.Sprintf("%s %v; ", v.Name, *v.Value)
		}
	}
	if want := "e2e null; speed -300; undefined null; hits 0.25; regret null; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
