package htmlreport

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"blis/pkg/figures"
	"blis/pkg/metrics"
	"blis/pkg/resample"
	"blis/pkg/stat"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// record is a run of n requests, one a second, whose E2E is drawn by a seed and longer by some ms; half of it is TTFT.
func record(name, workload string, n int, seed uint64, longer stream.Micros) *Run {
	r := &Run{Name: name, Workload: workload, Collector: figures.NewCollector(&stream.Header{})}
	m := metrics.New(nil)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		at := stream.Micros(i) * 1_000_000
		e2e := 1000 * (200 + stream.Micros(rng.IntN(200)))
		o := stream.Outcome{ID: fmt.Sprintf("r%04d", i), State: stream.StateCompleted, ArrivalUS: at, AdmittedUS: at,
			RoutedUS: at, EnqueuedUS: at, ScheduledUS: at, FirstTokenUS: at + e2e/2,
			CompletedUS: at + e2e + 1000*longer, EndedUS: stream.Never, Deployment: "main",
			PrefillReplica: stream.NoIndex, InputTokens: 10, OutputTokens: 1,
			GeneratedTokens: 1}
		r.Collector.Outcome(&o, nil)
		m.Add(&o)
	}
	r.Metrics = m.Raw()
	return r
}

// rowOf is the row of a path.
func rowOf(t *testing.T, table []numberRow, path string) numberRow {
	t.Helper()
	for _, n := range table {
		if n.Path == path {
			return n
		}
	}
	t.Fatalf("no row %s", path)
	return numberRow{}
}

// TestNumbersAreFormatted: at most four significant digits, all digits of the integer part, in groups of three.
func TestNumbersAreFormatted(t *testing.T) {
	for _, c := range []struct {
		x       float64
		percent bool
		want    string
	}{{0, false, "0"}, {0.12345, false, "0.123"}, {9.9996, false, "10"}, {9.876, false, "9.876"}, {10, false, "10"},
		{10.126, false, "10.13"}, {-10.126, false, "-10.13"}, {123.456, false, "123.5"}, {999, false, "999"},
		{1000, false, "1,000"}, {-1234.5, false, "-1,234"}, {1234567.8, false, "1,234,568"}, {0.5, true, "50 %"},
		{0.98765, true, "98.77 %"}, {100, false, "100"}, {-999.96, false, "-1,000"}} {
		if got := (cell{percent: c.percent}).format(c.x); got != c.want {
			t.Errorf("%g: %q, want %q", c.x, got, c.want)
		}
	}
	x := 0.25
	none, point, wide := cell{}, cell{Value: &x, CI: &stat.Interval{Lo: 1, Hi: 1}, Diff: &stat.Interval{}},
		cell{Value: &x, CI: &stat.Interval{Lo: -2, Hi: 3}, Diff: &stat.Interval{Lo: -2, Hi: 3}}
	for _, c := range []struct{ got, want string }{{none.Text(), "–"}, {none.Exact(), ""}, {none.Range(), ""},
		{none.DiffRange(), ""}, {point.Text(), "0.25"}, {point.Exact(), "0.25"}, {point.Range(), ""},
		{point.DiffRange(), "0"}, {wide.Range(), "-2 – 3"}, {wide.DiffRange(), "−2 … +3"},
		{cell{Diff: &stat.Interval{Hi: 3}}.DiffRange(), "+0 … +3"},
		{cell{Diff: &stat.Interval{Lo: -3}}.DiffRange(), "−3 … +0"}} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	for _, c := range []struct {
		lo, hi float64
		want   bool
	}{{0, 1, false}, {-1, 0, false}, {0.1, 1, true}, {-1, -0.1, true}, {-1, 1, false}} {
		if got := (cell{Diff: &stat.Interval{Lo: c.lo, Hi: c.hi}}).Differs(); got != c.want {
			t.Errorf("from %g to %g: %v", c.lo, c.hi, got)
		}
	}
}

// TestPairedRuns: each request of the second run takes 50 ms more than in the first one, and this is the difference of
// means without any noise; other times do not differ. Without the same workload the noise does not cancel.
func TestPairedRuns(t *testing.T) {
	base, longer, other := record("a", "w", 200, 1, 0), record("b", "w", 200, 1, 50), record("c", "v", 200, 2, 50)
	runs := []*Run{base, longer, other}
	table := numbersOf(runs)
	e2e := rowOf(t, table, "e2e.mean")
	if c := e2e.Cells[1]; math.Abs(c.Diff.Lo-50) > 1e-9 || math.Abs(c.Diff.Hi-50) > 1e-9 || !c.Differs() {
		t.Errorf("the paired difference is %+v", c.Diff)
	}
	if c := e2e.Cells[2]; c.Diff == nil || c.Diff.Hi-c.Diff.Lo < 10 || !(c.Diff.Lo < 50 && 50 < c.Diff.Hi) {
		t.Errorf("the difference from another workload is %+v", c.Diff)
	}
	// 200 values that are even over 200 ms have a mean with a standard error of 58/14 ms.
	for i, c := range e2e.Cells {
		if c.CI == nil || !(c.CI.Lo < *c.Value && *c.Value < c.CI.Hi) || c.CI.Hi-c.CI.Lo < 8 || c.CI.Hi-c.CI.Lo > 32 {
			t.Errorf("run %d: %g in %+v", i, *c.Value, c.CI)
		}
	}
	if e2e.Cells[0].Diff != nil {
		t.Errorf("the first run differs from itself by %+v", e2e.Cells[0].Diff)
	}
	if c := rowOf(t, table, "ttft.p50").Cells[1]; c.Diff.Lo != 0 || c.Diff.Hi != 0 || c.Differs() {
		t.Errorf("TTFT differs by %+v", c.Diff)
	}
	offered := rowOf(t, table, "requests.offered")
	if c := offered.Cells[1]; *c.Value != 200 || c.CI != nil || c.Diff != nil {
		t.Errorf("requests %+v", c)
	}
	ci := *e2e.Cells[1].CI
	if got := intervalsOf(table, 1)["e2e.mean"]; got != [2]float64{round(ci.Lo), round(ci.Hi)} {
		t.Errorf("interval %v, want %+v", got, ci)
	}
	var found []change
	for _, c := range changes(runs, table) {
		if c.Path == "e2e.mean" && c.Run == "b" {
			found = append(found, c)
		}
	}
	percent := round(5000 / *e2e.Cells[0].Value)
	if diff := cmp.Diff([]change{{"b", "E2E mean", "e2e.mean", percent, percent, percent, true}}, found); diff != "" {
		t.Errorf("changes in percent (wanted -, found +):\n%s", diff)
	}
}

// TestRunsWithoutIntervals: few requests have numbers alone, and a run without metrics has none.
func TestRunsWithoutIntervals(t *testing.T) {
	few, empty := record("a", "w", 9, 1, 0), &Run{Name: "b", Err: "the run is cut"}
	table := numbersOf([]*Run{few, empty})
	c := rowOf(t, table, "e2e.mean").Cells
	if c[0].Value == nil || c[0].CI != nil || c[1].Value != nil || c[1].Text() != "–" {
		t.Errorf("%+v", c)
	}
	for _, n := range table {
		if n.Path == "cost.total" {
			t.Error("there is a row for a price that no run has")
		}
		if n.Unit == "%" {
			t.Errorf("%s has a unit besides those of its numbers", n.Path)
		}
	}
	if empty.usable() || (&Run{Metrics: few.Metrics}).usable() || !few.usable() ||
		(&Run{Metrics: few.Metrics, Collector: figures.NewCollector(&stream.Header{})}).usable() {
		t.Error("wrong runs have intervals")
	}
	table = numbersOf([]*Run{empty, record("a", "w", 100, 1, 0)}) // there is nothing to compare with
	c = rowOf(t, table, "e2e.mean").Cells
	if c[1].CI == nil || c[1].Diff != nil || len(changes([]*Run{empty, few}, table)) > 0 {
		t.Errorf("%+v", c[1])
	}
}

// TestFewerBlocksDecide: of two runs of different workloads, the one with fewer blocks decides how much wider than the
// bootstrap samples the interval of their difference is.
func TestFewerBlocksDecide(t *testing.T) {
	few, many := record("a", "w", 12, 1, 0), record("b", "v", 200, 2, 50)
	for _, runs := range [][]*Run{{few, many}, {many, few}} {
		var samples []*resample.Bootstrap
		var means [][]float64
		for i, r := range runs {
			b := resample.New(resample.Source(uint64(i)), r.byArrival())
			run := b.Run(0, r.Metrics)
			values := run.Statistics(resample.Set{Rows: run.All(), NotIssued: true})[0]
			samples, means = append(samples, b), append(means, values["e2e.mean"])
		}
		wide, _ := samples[slices.Index(runs, few)].Difference(means[0], means[1])
		narrow, _ := samples[slices.Index(runs, many)].Difference(means[0], means[1])
		got := *rowOf(t, numbersOf(runs), "e2e.mean").Cells[1].Diff
		if got != wide || wide.Hi-wide.Lo <= narrow.Hi-narrow.Lo {
			t.Errorf("the difference is %+v, want %+v, which is wider than %+v", got, wide, narrow)
		}
	}
}

// TestTenBlocksHaveIntervals: with one more request than in TestRunsWithoutIntervals there are enough blocks.
func TestTenBlocksHaveIntervals(t *testing.T) {
	if c := rowOf(t, numbersOf([]*Run{record("a", "w", 10, 1, 0)}), "e2e.mean").Cells[0]; c.CI == nil {
		t.Error("ten requests have no interval")
	}
	if got := round(1.23456); got != 1.235 {
		t.Errorf("1.23456 is rounded to %g", got)
	}
}

// TestMissingRequestsArePaired: a run that lacks requests is still compared with those that it has.
func TestMissingRequestsArePaired(t *testing.T) {
	base, shorter := record("a", "w", 200, 1, 0), record("b", "w", 150, 1, 50)
	ordered := byArrival([]*Run{shorter, base}, []int{0, 1})
	if all := ordered[1]; len(all) != 200 || !slices.Equal(all, base.byArrival()) || all[199].Arrival != 199_000_000 {
		t.Errorf("%d requests", len(all))
	}
	requests := ordered[0]
	if len(requests) != 200 || requests[149] == nil || requests[150] != nil ||
		requests[7].Arrival != 7_000_000 {
		t.Errorf("request 7 is %+v, and 150 %+v", requests[7], requests[150])
	}
	c := rowOf(t, numbersOf([]*Run{base, shorter}), "e2e.mean").Cells[1]
	if c.Diff == nil || !(c.Diff.Lo < 50 && 50 < c.Diff.Hi && c.Diff.Hi-c.Diff.Lo < 20) {
		t.Errorf("the difference is %+v", c.Diff)
	}
}

// TestOrderOfArrivals: requests that arrive at once are in the order of their ids, and attempts that are repeated are
// not there.
func TestOrderOfArrivals(t *testing.T) {
	r := &Run{Collector: figures.NewCollector(&stream.Header{})}
	for i, o := range []stream.Outcome{{ID: "r10", ArrivalUS: 5}, {ID: "b", ArrivalUS: 7, Retried: true},
		{ID: "r9", ArrivalUS: 5}, {ID: "a", ArrivalUS: 9}, {ID: "c", ArrivalUS: 2}} {
		o.State, o.InputTokens = stream.StateRejected, int64(i)
		r.Collector.Outcome(&o, nil)
	}
	var got []int32
	for _, q := range r.byArrival() {
		got = append(got, q.Input)
	}
	if want := []int32{4, 2, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// TestSectionsOfARun: the headline is shown apart, and anomalies with a table are not shown twice.
func TestSectionsOfARun(t *testing.T) {
	r := &Run{Text: []Section{{"", "title"}, {"HEADLINE", "one\ntwo\n"}, {"LOSS", "text"}, {"ANOMALIES", "text"},
		{"EMPTY", " \n"}}}
	names := func() (text string) {
		for _, s := range r.Rest() {
			text += s.Name + " "
		}
		return text
	}
	if got := strings.Join(r.Headline(), "|"); got != "one|two" || names() != "LOSS ANOMALIES " {
		t.Errorf("%q, %q", got, names())
	}
	r.Anomalies = make([]stream.Anomaly, 1)
	if names() != "LOSS " || (&Run{}).Headline() != nil || r.Kind() != "simulation" {
		t.Errorf("%q", names())
	}
	r.Collector = figures.NewCollector(&stream.Header{Recording: &stream.RecordingHeader{}})
	if r.Kind() != "recording of a real server" || r.ReplicaTable() != nil {
		t.Errorf("%q", r.Kind())
	}
	r.Metrics = &metrics.Raw{Replicas: make([]metrics.Replica, figures.ReplicasShown+1)}
	if n := len(r.ReplicaTable()); n != figures.ReplicasShown {
		t.Errorf("%d replicas", n)
	}
}

// TestWrite: a report has 1 to 8 runs, and its tiles the numbers that they have.
func TestWrite(t *testing.T) {
	r := record("run-name", "w", 20, 1, 0)
	many := make([]*Run, MaxRuns+1)
	for i := range many {
		many[i] = r
	}
	var out bytes.Buffer
	for n, ok := range map[int]bool{0: false, 1: true, MaxRuns: true, MaxRuns + 1: false} {
		out.Reset()
		if err := Write(&out, many[:n]); (err == nil) != ok || (out.Len() > 0) != ok {
			t.Errorf("%d runs: %v, %d bytes", n, err, out.Len())
		}
	}
	out.Reset()
	if err := Write(&out, []*Run{r, {Name: "broken", Err: "it is cut"}}); err != nil {
		t.Fatal(err)
	}
	_, tiles, _ := strings.Cut(out.String(), `class="tiles"`)
	tiles, _, _ = strings.Cut(tiles, "</section>")
	for path, want := range map[string]int{"ttft.p50": 2, "e2e.p50": 2, "throughput.rps": 2, "e2e.p99": 0,
		"cost.gpu_s": 0} {
		if got := strings.Count(tiles, `data-path="`+path+`"`); got != want {
			t.Errorf("%s is %d times in\n%s", path, got, tiles)
		}
	}
	if strings.Count(out.String(), `"permilles":`) != 1 || !strings.Contains(out.String(), "it is cut") ||
		strings.Count(out.String(), `"distributions":`) != 1 {
		t.Error("the report lacks data, or has those of a run without metrics")
	}
}

// TestTemplateFunctions format what has no cell.
func TestTemplateFunctions(t *testing.T) {
	half := 0.5
	for _, c := range []struct{ got, want string }{
		{functions["percent"].(func(*float64) string)(&half), "50 %"},
		{functions["seconds"].(func(stream.Micros) string)(1_500_000), "1.5"},
		{functions["number"].(func(int64) string)(12345), "12,345"},
		{functions["title"].(func(string) string)("BY CLASS"), "By class"},
		{functions["title"].(func(string) string)(""), ""}} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
