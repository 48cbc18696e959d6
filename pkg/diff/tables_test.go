package diff

import (
	"slices"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// TestStar: a star marks intervals without 0. An interval that begins or ends at 0 has none.
func TestStar(t *testing.T) {
	for _, c := range []struct {
		ci   *stat.Interval
		want string
	}{{nil, "  "}, {&stat.Interval{Lo: 0, Hi: 1}, "  "}, {&stat.Interval{Lo: -1, Hi: 0}, "  "},
		{&stat.Interval{Lo: -1, Hi: 1}, "  "}, {&stat.Interval{Lo: 1e-9, Hi: 1}, " *"},
		{&stat.Interval{Lo: -1, Hi: -1e-9}, " *"}} {
		if got := (&Metric{CI: c.ci}).star(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.ci, got, c.want)
		}
	}
}

// TestGroupTableHasARowForEachClass: the metrics of a class are in one row, which has its name.
func TestGroupTableHasARowForEachClass(t *testing.T) {
	d := &Document{}
	for _, path := range []string{`cls["batch"].ttft.p50`, `cls["batch"].ttft.p99`, `cls["voice"].ttft.p50`,
		"ttft.p50"} {
		x := 2.0
		d.Metrics = append(d.Metrics, Metric{Path: path, A: &x, B: &x})
	}
	var names []string
	for _, row := range d.groupTable("cls").Rows[1:] {
		names = append(names, strings.TrimSpace(row[0]))
	}
	if want := []string{"batch", "voice"}; !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
}

// TestPercentOfAlmostNothing: a percentage of a number near 0 says only that it is large.
func TestPercentOfAlmostNothing(t *testing.T) {
	for x, want := range map[float64][2]string{12.34: {"+12.3", "12.34"}, -99.9: {"-99.9", "-99.90"},
		1000: {"+1000.0", "1000.00"}, 226878.8: {"> +1000", "> 1000"}} {
		if got := [2]string{percent(x), unsignedPercent(x)}; got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}

// TestReplicasAreComparedByName: b has one replica more of main, which comes before those of main.prefill, and lacks
// the second of these.
func TestReplicasAreComparedByName(t *testing.T) {
	replica := func(deployment string, index stream.Index, requests int64) metrics.Replica {
		return metrics.Replica{Deployment: deployment, Index: index, Requests: requests}
	}
	a := &metrics.Raw{Replicas: []metrics.Replica{replica("main", 0, 1), replica("main.prefill", 0, 2),
		replica("main.prefill", 1, 3)}}
	b := &metrics.Raw{Replicas: []metrics.Replica{replica("main", 0, 10), replica("main", 1, 11),
		replica("main.prefill", 0, 20)}}
	d := &Document{Metrics: compareMetrics(a, b, nil)}
	d.setReplicaNames(a, b)
	var rows []string
	for _, row := range d.groupTable("replicas").Rows[1:] {
		rows = append(rows, strings.TrimSpace(row[0])+" "+strings.TrimSpace(row[1]))
	}
	want := []string{"main/0 1 -> 10", "main.prefill/0 2 -> 20", "main.prefill/1 3 -> -", "main/1 - -> 11"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

// TestTextOfAPrefillDecision: the choice of a prefill replica is named like any other.
func TestTextOfAPrefillDecision(t *testing.T) {
	d := &stream.Decision{ID: "dec-1", Stage: stream.StagePrefillRouting, AtUS: 1_500_000, Deployment: "main.prefill",
		Replica: 2, Candidates: 3, Score: 0.5, Reason: "highest score"}
	const want = "dec-1 at 1.500000 s: main.prefill/2 of 3, score 0.5, highest score"
	if got := decisionText(d); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
