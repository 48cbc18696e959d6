package summarize

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"blis/pkg/attribution"
	"blis/pkg/deploy"
	"blis/pkg/figures"
	"blis/pkg/metrics"
	"blis/pkg/report"
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

// TestNamesOfCandidates: of several configurations, one with several runs is named by its policies, others by their
// runs.
func TestNamesOfCandidates(t *testing.T) {
	run := func(name, config string) *runDoc {
		key := stream.SimulationKey{Policy: strings.Repeat("ab", 32)}
		return &runDoc{name: name, summary: &summary{header: &stream.Header{Run: &stream.RunHeader{Key: key,
			ConfigDigest: config}}}}
	}
	for _, c := range []struct {
		runs []*runDoc
		want string
	}{{[]*runDoc{run("a", "x"), run("b", "y"), run("c", "x")}, "policy abababababab, b"},
		{[]*runDoc{run("a", "x"), run("b", "x")}, "a"}, {[]*runDoc{run("a", "x"), run("b", "y")}, "a, b"}} {
		r := &analysis{runs: c.runs}
		r.groupByConfiguration()
		var got []string
		for _, c := range r.candidates {
			got = append(got, c.name)
		}
		if names := strings.Join(got, ", "); names != c.want {
			t.Errorf("%s, want %s", names, c.want)
		}
	}
}

// TestExamplesHaveTheirPatterns: the first pattern explains one of the worst requests, none the other.
func TestExamplesHaveTheirPatterns(t *testing.T) {
	c := attribution.Conditions()[0]
	d := &Document{}
	d.explain(&report.Input{}, &attribution.Findings{Patterns: []attribution.Pattern{{Condition: c}},
		Worst: []attribution.Example{{Request: "a"}, {Request: "b", Pattern: -1}}})
	if len(d.Examples) != 2 || !strings.HasPrefix(d.Examples[0].Feedback, c.Name+": ") ||
		d.Examples[1].Feedback != "no pattern explains it" {
		t.Errorf("%+v", d.Examples)
	}
}

// TestNothingToTry: a run without outcomes has no findings, and so no hints; nor has one without loss. --try says so.
func TestNothingToTry(t *testing.T) {
	for _, x := range []*runDoc{{summary: &summary{}}, {summary: &summary{narrative: &narrative{}}},
		{summary: &summary{narrative: &narrative{findings: &attribution.Findings{}}}}} {
		var warnings []string
		o := &Options{Try: "w.jsonl", Warn: func(text string) { warnings = append(warnings, text) }}
		r := &analysis{options: o, candidates: []*candidate{{runs: []*runDoc{x}}}}
		if err := r.tryHints(t.Context()); err != nil {
			t.Error(err)
		}
		if !slices.Equal(warnings, []string{"--try: no hints to simulate"}) {
			t.Errorf("%q", warnings)
		}
	}
}

// TestTablesIgnoreDecisions: only texts explain decisions.
func TestTablesIgnoreDecisions(t *testing.T) {
	r := story()
	r.more = []string{`{"kind":"decision","id":"dec-1","stage":"admission","at_us":1000000,"request":"a",` +
		`"verdict":"admit","score":0,"candidates":1}`}
	for _, format := range []string{"table", "csv", "text"} {
		if _, err := summarize(r.data(t), Options{Format: format}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestConfigurationIsExported: each target has a file or says why not; a configuration that cannot be read is the same
// error for each.
func TestConfigurationIsExported(t *testing.T) {
	r := story()
	r.config = map[string]any{"deployments": 5}
	d, _ := document(t, r.data(t), Options{})
	if got := d.ConfigForDeployment; len(got.Errors) != len(deploy.Targets) || len(got.Files) != 0 {
		t.Errorf("%+v", got)
	}
}

// workload is a stream of n requests, one a second.
func workload(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := stream.NewWriter(&b, true)
	if err := w.Header(&stream.Header{Stream: stream.StreamWorkload, Tool: "blis-gen", Version: "0.1.0"}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.Request(&stream.Request{ID: fmt.Sprint("r", i), ArrivalUS: stream.Micros(i * 1_000_000),
			InputTokens: 100, OutputTokens: 10, DeadlineUS: stream.Never}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.End(&stream.End{}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLargeStreams are noticed when they have many records, and twice as many.
func TestLargeStreams(t *testing.T) {
	for n, want := range map[int][]int{2 * 4096: nil, manyRecords + 2*4096: {manyRecords},
		2 * manyRecords: {manyRecords, 2 * manyRecords}} {
		var calls []int
		o := Options{Format: "json", Large: func(records int) { calls = append(calls, records) }}
		if _, err := summarize(workload(t, n), o); err != nil || !slices.Equal(calls, want) {
			t.Errorf("%d requests: calls with %d records, want %d; %v", n, calls, want, err)
		}
	}
}

// TestLoadOfWorkload: the load on the built-in cluster.
func TestLoadOfWorkload(t *testing.T) {
	d, _ := document(t, workload(t, 5), Options{Cluster: new(string)})
	if d.Workload == nil || d.Workload.Load == nil || d.Workload.Load.Offered == nil {
		t.Errorf("%+v", d.Workload)
	}
}

// TestMergeHasNoOther: each of these flags is an error with --merge, and none of them is set by default.
func TestMergeHasNoOther(t *testing.T) {
	if err := (&Options{Merge: true}).checkMerge(); err != nil {
		t.Error(err)
	}
	for flag, o := range map[string]Options{"baseline": {Baseline: []string{"a"}}, "parent": {Parent: []string{"a"}},
		"html": {HTML: "a.html"}, "plot": {Plot: "a"}, "perfetto": {Perfetto: "a.json"}, "try": {Try: "w"},
		"cluster": {Cluster: new(string)}} {
		if err := o.checkMerge(); err != nil {
			t.Errorf("--%s without --merge: %v", flag, err)
		}
		o.Merge = true
		want := "--" + flag + " has no effect with --merge"
		if err := o.checkMerge(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("--%s: %v", flag, err)
		}
	}
}

// TestFiguresOfSelection: figures have the selected requests alone.
func TestFiguresOfSelection(t *testing.T) {
	for _, c := range []struct {
		where, from string
		want        int
	}{{"", "", 4}, {"tenant == 't1'", "", 2}, {"", "3s", 2}, {"tenant == 't1'", "3s", 1}} {
		o := options(t, c.where, c.from, "", "text")
		o.Plot = figures.Charts.Names()[0]
		r := &analysis{options: &o}
		if err := r.read(t.Context(), bytes.NewReader(story().data(t))); err != nil {
			t.Fatal(err)
		}
		if got := len(r.runs[0].collector().Rows()); got != c.want {
			t.Errorf("where %q from %q: %d requests, want %d", c.where, c.from, got, c.want)
		}
	}
}

// TestSelectedOutcomesInFigures: figures show the outcomes that a condition and the times select.
func TestSelectedOutcomesInFigures(t *testing.T) {
	o := &Options{To: Instant{at: 30, isSet: true}}
	if err := o.Where.UnmarshalText([]byte("output_tokens > 2")); err != nil {
		t.Fatal(err)
	}
	h := &figureWatcher{figures.NewCollector(&stream.Header{}), &summary{options: o}}
	for i, q := range []stream.Outcome{{ID: "short", OutputTokens: 2}, {ID: "long", OutputTokens: 3},
		{ID: "late", OutputTokens: 3}} {
		q.ArrivalUS, q.State = stream.Micros(10*(i+1)), stream.StateRejected
		if err := h.outcome(nil, &q); err != nil {
			t.Fatal(err)
		}
	}
	if rows := h.Collector.Rows(); len(rows) != 1 || rows[0].ID != "long" {
		t.Errorf("%+v", rows)
	}
}
