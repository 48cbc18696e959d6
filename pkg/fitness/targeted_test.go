package fitness

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/metrics"

	"github.com/google/go-cmp/cmp"
)

// partlyServed are the metrics of 100 requests: 40 of the class critical, which has a TTFT target, 60 of
// batch, which has none. 5 critical ones were rejected.
func partlyServed() *metrics.Raw {
	r := healthyMetrics()
	r.Requests = metrics.Requests{Offered: 100, Completed: 95, Rejected: 5}
	r.TTFT = &metrics.Distribution{Count: 95, Mean: 70, P50: 60, P90: 900, P99: 1000, Coverage: ptr(0.95)}
	r.Targeted = &metrics.Targeted{TTFT: &metrics.TargetedLatency{Count: 40, Coverage: 0.875, Mean: 50, P50: ptr(20)}}
	return r
}

// Scores, gates and objectives read latencies over the offered requests of classes with that target;
// served() reads those of the served ones. The references are scales: where they are infinite, their
// served ones count.
func TestLatenciesCountOfferedRequests(t *testing.T) {
	for src, want := range map[string]float64{
		"ratio(20, m.ttft.p50)":                           0.5 * 0.875,
		"ratio(50, m.ttft.mean)":                          0.5 * 0.875,
		"ratio(20, m.targeted.ttft.p50)":                  0.5 * 0.875,
		"ratio(60, served(m.ttft.p50))":                   0.5 * 0.95,
		"ratio(20, m.ttft.p90)":                           0,
		"ratio(900, served(m.ttft.p90))":                  0.5 * 0.95,
		"ratio(base.ttft.p50, 20)":                        0.5,
		"ratio(base.ttft.p90, 900)":                       0.5,
		"m.ttft.count / 100":                              0.95,
		"m.targeted.ttft.count / 100":                     0.4,
		"m.targeted.ttft.coverage":                        0.875,
		"ratio(600, m.targeted.e2e.p99)":                  0,
		"m.targeted.tpot.count + 0.25":                    0.25,
		`ratio(200, m.cls["critical"].targeted.ttft.p99)`: 0.5,
	} {
		if r := evaluate(t, src, runOf(partlyServed(), partlyServed())); math.Abs(r.Value-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", src, r.Value, want)
		}
	}
	r := evaluate(t, "soft(m.ttft.p99, 200, 3)", runOf(partlyServed(), nil))
	want := []string{"m.ttft.p99 is infinite: 12.5 % of the offered requests have none; served(m.ttft.p99) does not " +
		"count them: soft(m.ttft.p99, 200, 3) counts as 0", "m.ttft.p99 has 40 samples and needs 1000",
		"m.ttft.p99 is that of the 40 offered requests whose class has a target for it"}
	if d := cmp.Diff(want, r.Warnings); d != "" {
		t.Error(d)
	}
}

// A configuration that rejects 98 % passes no gate on a latency, and has no objective of one, unless the
// served ones are asked for.
func TestGatesCountOfferedRequests(t *testing.T) {
	f, err := loadText(t, `version: 1
score: '0.5'
gates: [{name: fast, expr: m.ttft.p99 <= 500}, {name: fast served, expr: served(m.ttft.p99) <= 500}]
objectives: {all: -m.ttft.p99, served: -served(m.ttft.p99)}
`)
	if err != nil {
		t.Fatal(err)
	}
	m := healthyMetrics()
	m.TTFT.Coverage = ptr(0.02)
	r, err := f.Evaluate(runOf(m, nil))
	if err != nil {
		t.Fatal(err)
	}
	const why = "m.ttft.p99 is infinite: 98 % of the offered requests have none; served(m.ttft.p99) does not count them"
	if g := r.Gates[0]; g.Passed || g.Distance != 1 || g.Detail != why || !r.Gates[1].Passed || r.Score > 0.1 {
		t.Errorf("%+v, score %v", r.Gates, r.Score)
	}
	if r.Objectives[0].Value != nil || *r.Objectives[1].Value != -300 ||
		!strings.Contains(strings.Join(r.Warnings, "\n"), "objectives.all is missing: "+why) {
		t.Errorf("%+v, %q", r.Objectives, r.Warnings)
	}
}

// Terms that improve without anybody being served better have a warning; a gate on the served requests
// silences those that serving less improves.
func TestCheapTermsWarn(t *testing.T) {
	const hold = "m.queue.p99 is easy to improve: it begins at the queue of the replica: admission delays and flow " +
		"control before it do not count, but they do in ttft"
	const gate = "\ngates: [{name: served, expr: m.requests.rejected == 0}]"
	const hits = "score: m.kv.prefix_hit_ratio"
	for text, want := range map[string]string{
		"score: soft(m.queue.p99, 9, 1)":                                    hold,
		"score: ratio(base.cost.gpu_s, m.cost.gpu_s)":                       "m.cost.gpu_s is easy to improve: it",
		"score: m.goodput.ratio\nobjectives: {hits: m.kv.prefix_hit_ratio}": "m.kv.prefix_hit_ratio is easy to improve",
		"score: m.goodput.ratio\nfeatures: {hits: m.kv.prefix_hit_ratio}":   "",
		hits + gate:                             "",
		"score: soft(m.queue.p99, 9, 1)" + gate: hold,
		hits + "\ngates: [{name: base, expr: base.requests.rejected == 0}]": "is easy to improve",
		hits + "\ngates: [{name: met, expr: attained(\"critical\") > 0.1}]": "is easy to improve",
	} {
		m := healthyMetrics()
		m.Queue, m.Cost = &metrics.Distribution{Count: 2000, P99: 5}, &metrics.Cost{GPUS: 10}
		f, err := loadText(t, "version: 1\n"+text+"\n")
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Evaluate(runOf(m, m))
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(r.Warnings, "\n")
		if want == "" && strings.Contains(all, "easy") || !strings.Contains(all, want) {
			t.Errorf("%s: %q, want %q", text, r.Warnings, want)
		}
	}
}

// Weights of classes in attainment, by hand: critical 32 of 40, gold 9 of 10.
func TestClassWeights(t *testing.T) {
	m := healthyMetrics()
	m.Goodput = &metrics.Goodput{Ratio: 0.82, Met: 41, Offered: 50}
	m.Cls["critical"].Goodput = &metrics.Goodput{Ratio: 0.8, Met: 32, Offered: 38, NotIssued: 2}
	m.Cls["batch"].Goodput = &metrics.Goodput{Ratio: 0.9, Met: 9, Offered: 10}
	for weights, want := range map[string]float64{
		"":                                 0.82,
		"weights: {critical: 3}":           (3*32 + 9.0) / (3*40 + 10),
		"weights: {critical: 0}":           0.9,
		"weights: {critical: 1, batch: 4}": (32 + 4*9.0) / (40 + 4*10),
	} {
		f, err := loadText(t, "version: 1\nslo: {batch: {e2e_ms: 9}}\nscore: m.goodput.ratio\n"+weights)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := f.Evaluate(runOf(m, nil)); err != nil || math.Abs(r.Value-want) > 1e-12 {
			t.Errorf("%s: %v (%v), want %v", weights, r, err, want)
		}
	}
	for weights, want := range map[string]string{
		"{critical: -1}":          "weights.critical: must be at least 0, is -1",
		"{critical: 0, quiet: 0}": "weights: all classes with targets have the weight 0",
		"{crtical: 2}":            `weights.crtical: unknown class "crtical"; did you mean "critical"?`,
		"{batch: 2}":              "weights.batch: the class has no targets, so its weight has no effect",
	} {
		f, err := loadText(t, fmt.Sprintf("version: 1\nscore: m.goodput.ratio\nweights: %s\n", weights))
		if err == nil {
			_, err = f.Evaluate(runOf(healthyMetrics(), nil))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", weights, err, want)
		}
	}
}

// Rejected requests without targets are invisible to attainment: there is a warning.
func TestUntargetedRequestsThatAreNotServedWarn(t *testing.T) {
	m := healthyMetrics()
	m.Cls["batch"].Requests.Completed = 90
	r := evaluate(t, "m.goodput.ratio", runOf(m, nil))
	const want = "10 requests of classes without targets were not served"
	if len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], want) {
		t.Errorf("warnings %q", r.Warnings)
	}
}
