package summarize

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/resample"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// TestIdentitySampleMatchesMetrics: a bootstrap sample that has every block once has the
// metrics of the run, wherever both have the same path.
func TestIdentitySampleMatchesMetrics(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRun.Draw(rt, "run")
		a := metrics.New(classes)
		r.fill(a)
		raw := a.Raw()
		x := &runDoc{summary: &summary{raw: raw, rows: &rows{index: map[string]int32{}},
			header: &stream.Header{SLOClasses: classes}}}
		for i := range r.outcomes {
			o := &r.outcomes[i]
			x.rows.addOutcome(o, metrics.SLOMet(o, a.Targets(o.SLOClass)))
		}
		order := arrivalOrder(comparedRuns{x})
		next := -1
		turn := func(n int) int { next++; return next % n }
		run := resample.New(turn, x.rows.inOrder(order)).Run(0, raw)
		paths := []string{"goodput.ratio", `cls["critical"].goodput.ratio`, `tenants["t1"].ttft.p99`,
			`models["m"].ttft.p99`, "replicas[0].utilization", "ttft.p99", "tpot.p50", `tenants["t1"].e2e.p90`}
		found, all := 0, x.statistics(run, order, paths)
		for _, v := range metrics.Values(raw) {
			of := all[v.Path]
			for i := range min(len(of), 3) {
				found++
				if math.Abs(of[i]-v.Value) > 1e-9*math.Abs(v.Value) {
					rt.Fatalf("%s is %v in bootstrap sample %d, %v in the metrics", v.Path, of[i], i, v.Value)
				}
			}
		}
		if found < 20 {
			rt.Fatalf("only %d numbers are resampled", found)
		}
	})
}

// TestScoreDifferenceInterval: a run compared with itself has no difference in any
// bootstrap sample; a run that is 100 ms slower in every request has a difference in all.
func TestScoreDifferenceInterval(t *testing.T) {
	fast, slow := &run{trace: "decisions"}, &run{trace: "decisions"}
	for i := range int64(200) {
		id := "r" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		fast.outcomes = append(fast.outcomes, outcome(id, "critical", "t", 10*i, 20+i%7, 100, 5))
		slow.outcomes = append(slow.outcomes, outcome(id, "critical", "t", 10*i, 120+i%7, 100, 5))
	}
	for _, c := range []struct {
		m, base *run
		lo, hi  float64
	}{{fast, fast, 0, 0}, {slow, fast, -0.4, -0.2}} {
		o := Options{Format: "json", Baseline: []string{"base"}, Fitness: &Fitness{},
			Open: func(string) (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(c.base.data(t))), nil
			}}
		if err := o.Fitness.UnmarshalText([]byte("ratio(base.ttft.p99, m.ttft.p99)")); err != nil {
			t.Fatal(err)
		}
		d, _ := document(t, c.m.data(t), o)
		over := d.Candidates[0].Runs[0].VsBaseline
		if over == nil || over.CI.Lo < c.lo || over.CI.Hi > c.hi || over.CI.Lo > over.CI.Hi ||
			over.Diff < over.CI.Lo || over.Diff > over.CI.Hi {
			t.Errorf("comparison %+v, want an interval within %v to %v", over, c.lo, c.hi)
		}
		o.Format = "text"
		word := "within noise: 95 % CI +0.0000 to +0.0000"
		if c.lo < 0 {
			word = "beyond noise: 95 % CI -0."
		}
		if text, err := summarize(c.m.data(t), o); err != nil || !strings.Contains(text, word) {
			t.Errorf("%v, want %s in\n%s", err, word, text)
		}
	}
}
