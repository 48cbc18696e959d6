package fitness

import (
	"strings"
	"testing"
)

// Errors in a fitness file have the position, the problem and a suggestion.
func TestSpecErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"version: 2\nscore: '1'", "fitness.yaml:1:10: version: must be 1, is 2"},
		{"score: '1'", "fitness.yaml: version is not in the file: must be 1, is 0"},
		{"version: 1", "score is not in the file: must be an expression, such as m.goodput.ratio"},
		{"version: 1\nscroe: '1'", `fitness.yaml:2:1: unknown field "scroe"; did you mean "score"?`},
		{"version: 1\nscore: m.ttft.p98",
			`fitness.yaml:2:8: score: unknown name "m.ttft.p98"; did you mean "m.ttft.p90"? ` +
				`(m.ttft has count, mean, p50, p90, p95, p99, max, coverage)`},
		{"version: 1\nscore: |\n  wmean(0.5, m.goodput.ratio,\n        0.5, m.clss[\"a\"].goodput.ratio)",
			`fitness.yaml:4:14: score: unknown name "m.clss[\"a\"].goodput.ratio"; ` +
				`did you mean "m.cls[\"a\"].goodput.ratio"?`},
		{"version: 1\nscore: m.ttft", `"m.ttft" is only the beginning of a name (have count, mean,`},
		{"version: 1\nscore: m", `"m" is only the beginning of a name (have from_us,`},
		{"version: 1\nscore: ttft.p99", `unknown name "ttft.p99"; did you mean "m.ttft.p99"?`},
		{"version: 1\nscore: p99_ttft_m", `unknown name "p99_ttft_m"; did you mean "p99_ttft_ms"?`},
		{"version: 1\nscore: something_else_entirely",
			"names are paths such as m.ttft.p99, base.ttft.p99 and parent.ttft.p99, or those of vLLM, such as " +
				"p99_ttft_ms"},
		{"version: 1\nscore: m.anomalies.hol_blockin * 1",
			`unknown anomaly "hol_blockin"; did you mean "hol_blocking"?`},
		{"version: 1\nscore: wmaen(1, 2)", `fitness.yaml:2:8: score: unknown function "wmaen"; did you mean "wmean"?`},
		{"version: 1\nscore: 1 - m.ttft.p99",
			"fitness.yaml:2:12: score: m.ttft.p99 may be missing, and lower is better: wrap it, as in" +
				" ratio(base.ttft.p99, m.ttft.p99) or soft(m.ttft.p99, LIMIT, 3)"},
		{"version: 1\nscore: gain(m.e2e.p50, 5)", "m.e2e.p50 may be missing, and lower is better"},
		{"version: 1\nscore: 'm.goodput.ratio > 0.5'", "this is of type true-or-false; it must be of type number"},
		{"version: 1\nscore: m.goodput.ratio / 0", "fitness.yaml:2:26: score: division by 0"},
		{"version: 1\nscore: soft(m.ttft.p99, 0, 1)", "the limit must be above 0, is 0"},
		{"version: 1\nscore: soft(m.ttft.p99, 1, -1)", "k must not be negative, is -1"},
		{"version: 1\nscore: clamp(1, 2, 1)", "the lower bound 2 is above the upper one, 1"},
		{"version: 1\nscore: wmean(m.goodput.ratio, 1)",
			"weights come first in each pair and must be literals of at least 0: wmean(0.7, x, 0.3, y)"},
		{"version: 1\nscore: wgeo(0, 1)", "all weights are 0"},
		{"version: 1\nscore: wmean(1, 0.5, 1)", "wmean does not take (number, number, number)"},
		{"version: 1\nscore: 'attained(\"a\" == \"b\" ? \"c\" : \"d\")'", "the class must be a literal"},
		{"version: 1\nscore: '1'\nslo: {critical: {}}", "has no target; give ttft_ms, tpot_ms or e2e_ms"},
		{"version: 1\nscore: '1'\nslo: {critical: {ttft_ms: -1}}",
			"fitness.yaml:3:27: slo.critical.ttft_ms: must be above 0, is -1"},
		{"version: 1\nscore: '1'\naggregate: median", `fitness.yaml:3:12: aggregate: unknown aggregate "median"`},
		{"version: 1\nscore: '1'\ncvar_share: 0", "must be above 0 and at most 1, is 0"},
		{"version: 1\nscore: '1'\ngates: [{name: a, expr: 'true'}, {name: a, expr: 'true'}]",
			`gates[1].name: must be present and unique, is "a"`},
		{"version: 1\nscore: '1'\ngates: [{name: a, expr: m.goodput.ratio}]",
			"gates[0].expr: this is of type number; it must be of type true or false, such as 1 < 2"},
		{"version: 1\nscore: '1'\nobjectives: {a: m.ttt.p99}", "fitness.yaml:3:17: objectives.a: unknown name"},
		{"version: 1\nscore: '1'\nfeatures: {a: 'm.ttft.p99 +'}", "features.a: Syntax error"},
	} {
		_, err := loadText(t, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		} else if strings.Contains(err.Error(), " of the text)") {
			t.Errorf("%q: %v has no place in the file", c.text, err)
		}
	}
}

// Errors that depend on the run.
func TestEvaluationErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`attained("critcal")`,
			`score:1:1: unknown class "critcal"; did you mean "critical"? (have batch, critical, quiet)`},
		{`1 - m.cls["x"].goodput.ratio`, `score:1:5: unknown class "x"`},
		{`m.tenants["t9"].goodput.ratio`, `unknown tenant "t9" (have none)`},
		{"m.replicas[0].utilization", `unknown replica "0" (have none)`},
		{`attained("batch")`,
			`the run has no m.cls["batch"].goodput.ratio: no request has targets (blis-gen --slo, or slo in a fitness` +
				` file)`},
		{"0.5 - m.regret.avoidable_ms",
			"score:1:7: the run has no m.regret.avoidable_ms: blis-sim --counterfactual 1 estimates it"},
		{"ratio(1, m.sessions.e2e.p99)", "the run has no m.sessions.e2e.p99: the workload has no sessions"},
		{"ratio(1, m.cost.per_million_tokens)", "the run has no m.cost.per_million_tokens"},
		{"0.5 + 1 / m.requests.rejected", "score:1:7: 1 / m.requests.rejected is infinite"},
		{"0.5 + m.requests.failed / m.requests.rejected * 2",
			"score:1:7: m.requests.failed / m.requests.rejected is not a number"},
		{"log(m.requests.failed - 1)", "log(m.requests.failed - 1) is not a number"},
		{"soft(m.ttft.p99, m.requests.failed, 1)", "the limit must be above 0, is 0"},
		{"clamp(0.5, m.ttft.count, 1)", "the lower bound 2000 is above the upper one, 1"},
		{"wmean(1, 1e308 * m.ttft.count, 1, 0)", "1e+308 * m.ttft.count is infinite"},
	} {
		f, err := Expression("score", c.src)
		if err == nil {
			_, err = f.Evaluate(runOf(healthyMetrics(), nil))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.src, err, c.want)
		}
	}
	f, err := Expression("score", "1 - 0.1 * m.anomalies.hol_blocking")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Evaluate(NewRun(Tree{Raw: healthyMetrics(), NoAnomalies: true}, nil, Tree{}, Tree{})); err == nil ||
		!strings.Contains(err.Error(), "blis-sim detects anomalies with --trace decisions or full") {
		t.Errorf("anomalies of a run without detection: %v", err)
	}
}

// An expression needs the runs that it compares with.
func TestMissingReferences(t *testing.T) {
	f, err := Expression("--fitness", "ratio(base.ttft.p99, m.ttft.p99) + 0 * parent.requests.offered")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		base, parent bool
		want         string
	}{
		{true, true, ""},
		{false, true, "--fitness:1:7: base.ttft.p99: there is no run to compare with; give --baseline RUN"},
		{true, false, "--fitness:1:40: parent.requests.offered: there is no run to compare with; give --parent RUN"},
	} {
		got := ""
		if err := f.CheckReferences(c.base, c.parent); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v, %v: %s, want %s", c.base, c.parent, got, c.want)
		}
	}
}

// Targets for a class that the run does not have are an error.
func TestTargetsOfUnknownClass(t *testing.T) {
	f, err := loadText(t, "version: 1\nslo: {crtical: {ttft_ms: 5}}\nscore: m.goodput.ratio")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Evaluate(runOf(healthyMetrics(), nil)); err == nil ||
		!strings.Contains(err.Error(), `fitness.yaml:2:6: slo: unknown class "crtical"; did you mean "critical"?`) {
		t.Error(err)
	}
}
