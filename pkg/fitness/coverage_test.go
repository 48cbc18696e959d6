package fitness

import (
	"math"
	"strings"
	"testing"

	"blis/pkg/metrics"

	"github.com/google/go-cmp/cmp"
)

// A time that covers three quarters of the requests multiplies its term by 0.75; of two times the one
// with the lower coverage counts; times of the baseline and other numbers do not change. By hand.
func TestCoverageReducesTerms(t *testing.T) {
	m, b := healthyMetrics(), healthyMetrics()
	m.TTFT.Coverage, b.TTFT.Coverage = ptr(0.75), ptr(0.2)
	m.E2E = &metrics.Distribution{P50: 300, P99: 600, Coverage: ptr(0.5)}
	m.TailBlowup = ptr(2)
	for src, want := range map[string]float64{
		"ratio(base.ttft.p50, m.ttft.p50)":                                0.375,
		"soft(m.ttft.mean, 1000, 3)":                                      0.75,
		"soft(max(m.ttft.p50, m.e2e.p50), 600, 3)":                        0.5,
		"ratio(2, served(m.tail_blowup))":                                 0.25,
		"soft(base.ttft.p99, 1000, 3) * 0.5":                              0.5,
		"wmean(1, soft(m.ttft.p50, 1000, 3), 1, m.goodput.ratio)":         0.825,
		"soft(m.requests.rejected, 9, 1) * soft(median_ttft_ms, 1000, 1)": 0.75,
		// A quarter is infinite: so are the percentiles above the 75th, unless only the served count.
		"soft(m.ttft.p99, 1000, 3)":         0,
		"ratio(base.ttft.p99, m.ttft.p90)":  0,
		"ratio(2, m.tail_blowup)":           0,
		"soft(served(m.ttft.p99), 1000, 3)": 0.75,
	} {
		if r := evaluate(t, src, runOf(m, b)); math.Abs(r.Value-want) > 1e-8 {
			t.Errorf("%s is %v, want %v", src, r.Value, want)
		}
	}
}

// There are warnings about few samples and about low coverage.
func TestSampleWarnings(t *testing.T) {
	m := healthyMetrics()
	m.Requests.Offered, m.TTFT.Count = 4000, 3000
	m.Cls["critical"].Requests.Offered, m.Cls["critical"].TTFT.Count = 12, 12
	m.TTFT.Coverage = ptr(0.75)
	r := evaluate(t, `wmean(1, soft(m.ttft.p50, 9, 1), 1, soft(median_ttft_ms, 9, 1),
		1, soft(m.cls["critical"].ttft.p90, 9, 1), 1, soft(m.cls["critical"].ttft.mean, 9, 1))`, runOf(m, nil))
	want := []string{"m.ttft.p50 covers 75 % of the offered requests: its terms are multiplied by that share",
		`m.cls["critical"].ttft.p90 has 12 samples and needs 100`}
	if d := cmp.Diff(want, r.Warnings); d != "" {
		t.Error(d)
	}
}

// TestTargetedStatisticsWarn: a time of the requests with a target warns if it leaves others out, and not if all
// have a target.
func TestTargetedStatisticsWarn(t *testing.T) {
	for _, c := range []struct {
		targets int64
		covered float64
		want    int
	}{{100, 1, 0}, {90, 1, 1}, {200, 0.5, 0}, {150, 0.5, 1}} {
		r := runOf(healthyMetrics(), nil)
		r.values[ownTree]["ttft.count"] = 100
		r.values[ownTree]["targeted.ttft.count"] = float64(c.targets)
		r.values[ownTree]["targeted.ttft.coverage"] = c.covered
		got := 0
		for _, w := range r.sampleWarnings("x", ownTree, "targeted.ttft", "p50", true) {
			if strings.Contains(w, "whose class has a target") {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%d with targets, %v covered: %d warnings, want %d", c.targets, c.covered, got, c.want)
		}
	}
}
