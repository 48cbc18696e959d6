package summarize

import (
	"slices"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// TestSparkline: no request is blank, one of many is not, and the maximum is the darkest.
func TestSparkline(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		want   string
	}{{[]int64{0, 1, 9}, " .@"}, {[]int64{5}, "@"}, {[]int64{0, 1, 500, 1000}, " .+@"}} {
		if got := sparkline(c.counts); got != c.want {
			t.Errorf("%v: %q, want %q", c.counts, got, c.want)
		}
	}
}

// TestCostOfMergedRuns: the price of a million tokens is that of all tokens, at their rate for the time of the run.
func TestCostOfMergedRuns(t *testing.T) {
	m := &merged{costs: metrics.Cost{GPUS: 500}, priced: true}
	throughput := func(tps float64) *metrics.Raw {
		return &metrics.Raw{DurationS: 10, Group: metrics.Group{Throughput: &metrics.Throughput{TotalTPS: tps}}}
	}
	c := m.cost(throughput(2000))
	if c.PerMillion == nil || *c.PerMillion != 500*1e6/20000 {
		t.Errorf("%+v", c)
	}
	for _, raw := range []*metrics.Raw{{DurationS: 10}, throughput(0)} {
		if c := m.cost(raw); c.PerMillion != nil {
			t.Errorf("%v per million of nothing", *c.PerMillion)
		}
	}
}

// TestSelectionText: each part of a selection is named, and no other.
func TestSelectionText(t *testing.T) {
	for _, c := range []struct{ from, to, where, want string }{
		{"", "", "", "3 of 9 requests"},
		{"30s", "", "", "3 of 9 requests, arrived at 30s or later"},
		{"", "1m", "", "3 of 9 requests, arrived before 1m0s"},
		{"", "", "x", "3 of 9 requests, where x"},
		{"30s", "60s", "x", "3 of 9 requests, arrived at 30s or later, arrived before 1m0s, where x"},
	} {
		s := &Selection{Requests: 3, Of: 9, Where: c.where, FromUS: stream.Never, ToUS: stream.Never}
		for text, to := range map[string]*stream.Micros{c.from: &s.FromUS, c.to: &s.ToUS} {
			if text == "" {
				continue
			}
			var i Instant
			if err := i.UnmarshalText([]byte(text)); err != nil {
				t.Fatal(err)
			}
			*to = i.at
		}
		if got := s.text(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestStreamNames: names are those of files without endings, or the whole path where two files have the same name.
func TestStreamNames(t *testing.T) {
	got := streamNames([]string{"a/run.jsonl", "b/run.jsonl", "c/other.jsonl.zst", "x=d/run.jsonl"})
	if want := []string{"a/run.jsonl", "b/run.jsonl", "other", "x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPerfettoNeedsOneRun: one run is fine, two are not.
func TestPerfettoNeedsOneRun(t *testing.T) {
	for n, ok := range map[int]bool{1: true, 2: false} {
		o := Options{Perfetto: "a.json", Streams: []string{"a", "b"}[:n]}
		if err := o.checkFiles(); (err == nil) != ok {
			t.Errorf("%d runs: %v", n, err)
		}
	}
}

// TestReplicaShares: of 30 and 70 requests; of one replica; of none.
func TestReplicaShares(t *testing.T) {
	replicas := func(requests ...int64) *column {
		raw := &metrics.Raw{}
		for _, n := range requests {
			raw.Replicas = append(raw.Replicas, metrics.Replica{Requests: n})
		}
		return &column{runDoc: &runDoc{summary: &summary{raw: raw}}}
	}
	for _, c := range []struct {
		*column
		want string
	}{{replicas(30, 70), "30"}, {replicas(30, 70), "70"}, {replicas(5), "100"}, {replicas(), "-"}, {replicas(), "-"}} {
		if got := replicaShares(c.column); !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q in it", got, c.want)
		}
	}
}
