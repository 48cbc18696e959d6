package diff

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// disk opens a file in files, or else one on disk.
func (f files) disk(name string) (io.ReadCloser, error) {
	if _, ok := f[name]; ok {
		return f.open(name)
	}
	return os.Open(name)
}

// recordedCSV is the table of a client: four requests and one that failed, in two stages.
const recordedCSV = `arrival_s,input_tokens,output_tokens,ttft_s,e2e_s,status,stage
0.0,100,5,0.020,0.100,ok,low
0.1,110,5,0.040,0.160,ok,low
0.2,120,5,0.050,0.150,ok,high
0.3,130,5,0.080,0.200,ok,high
0.4,140,5,,,error,high
`

// simulatedRun has TTFT of 22, 36, 60 and 80 ms, E2E of 100, 150, 200 and 200 ms, and
// completes the request that failed.
func simulatedRun() testRun {
	r := testRun{policy: "x", outcomes: []stream.Outcome{outcome("s0", 0, 1, 22, 100, 5, 0),
		outcome("s1", 100, 1, 36, 150, 5, 0), outcome("s2", 200, 1, 60, 200, 5, 0),
		outcome("s3", 300, 1, 80, 200, 5, 0), outcome("s4", 400, 1, 30, 100, 5, 0)}}
	for i := range r.outcomes {
		r.outcomes[i].InputTokens = int64(100 + 10*i)
		r.outcomes[i].SLOClass = []string{"interactive", "batch"}[i%2]
	}
	return r
}

func compareWithRecording(t *testing.T, table string, run testRun, o Options) (*Document, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "r.csv")
	must(os.WriteFile(name, []byte(table), 0o666))
	if o.Streams == nil {
		o.Streams = []string{"run", name}
	}
	o.RankBy = "ttft.p99"
	must(o.Validate())
	return compare(context.Background(), &comparison{open: files{"run": run.stream()}.disk, options: &o}, o.Streams)
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", what, show(got), want)
	}
}

// Measured TTFT 20 40 50 80, mean 47.5; simulated also 30: 22 36 60 80 30, mean 45.6.
// Pairs differ by 2, −4, 10 and 0: bias 2, relative errors 0.1, 0.1, 0.2, 0. Means of
// pairs 47.5 and 49.5: deviations −27.5 −7.5 2.5 32.5 and −27.5 −13.5 10.5 30.5.
func TestFidelityByHand(t *testing.T) {
	d, err := compareWithRecording(t, recordedCSV, simulatedRun(), Options{})
	must(err)
	f := d.Fidelity
	if f.Measured != "b" || f.Simulated != "a" || f.Pairing != "order" || f.Overall.Measured != 4 ||
		f.Overall.Simulated != 5 {
		t.Errorf("%+v", f)
	}
	ttft := f.Overall.Times[0]
	if ttft.Metric != "ttft" || ttft.Mean.Measured != 47.5 || ttft.Mean.Simulated != 45.6 {
		t.Errorf("%+v", ttft)
	}
	near(t, "the error of the mean", ttft.Mean.Percent, 100*(45.6/47.5-1))
	near(t, "bias", &ttft.PerRequest.BiasMS, 2)
	near(t, "MAPE", ttft.PerRequest.MAPE, 10)
	xy, xx, yy := 27.5*27.5+7.5*13.5+2.5*10.5+32.5*30.5, 2*7.5*7.5/2+27.5*27.5+2.5*2.5+32.5*32.5,
		27.5*27.5+13.5*13.5+10.5*10.5+30.5*30.5
	near(t, "Pearson", ttft.PerRequest.Pearson, xy/math.Sqrt(xx*yy))
	// At 36: 3 of 5 simulated, 1 of 4 measured.
	near(t, "KS", ttft.KS, 0.6-0.25)
	// Differences of metrics are b − a, intervals here simulated − measured.
	m := d.Metrics.at("ttft.mean")
	near(t, "the lower end", &ttft.Mean.CI.Lo, -m.CI.Hi)
	near(t, "the upper end", &ttft.Mean.CI.Hi, -m.CI.Lo)
	// TPOT of four gaps: 20 and 30 ms in the first stage, both sides; E2E of the second
	// measured 150 and 200.
	if len(f.Stages) != 2 || f.Stages[0].Name != "low" || f.Stages[1].Measured != 2 || f.Stages[1].Simulated != 3 {
		t.Fatalf("%+v", f.Stages)
	}
	for _, time := range f.Stages[0].Times {
		if time.Metric == "tpot" && (time.Mean.Measured != 25 || time.P50.Simulated != (19.5+28.5)/2) {
			t.Errorf("%+v", time)
		}
	}
	if len(f.Classes) != 2 || f.Classes[0].Name != "batch" || f.Classes[0].Measured != 2 ||
		f.Classes[0].Times[0].Mean.Measured != 60 {
		t.Errorf("%+v", f.Classes)
	}
	if s := d.Requests.States; len(s) != 1 || s[0] != (StateChange{"completed", "failed", 1}) {
		t.Errorf("%+v", s)
	}
	text := string(d.text())
	for _, part := range []string{"paired by order of arrival", "TTFT mean      47.50      45.60     -4.0",
		"states      1 completed -> failed", "by stage", "by class"} {
		if !strings.Contains(text, part) {
			t.Errorf("the text lacks %q:\n%s", part, text)
		}
	}
	// With the sides swapped the simulation is b.
	name := filepath.Join(t.TempDir(), "r.csv")
	must(os.WriteFile(name, []byte(recordedCSV), 0o666))
	d, err = compareWithRecording(t, recordedCSV, simulatedRun(), Options{Streams: []string{name, "run"}})
	must(err)
	if f := d.Fidelity; f.Simulated != "b" || f.Overall.Times[0].Mean.Measured != 47.5 ||
		d.Requests.States[0] != (StateChange{"failed", "completed", 1}) {
		t.Errorf("swapped: %+v", f)
	}
}

// Given output counts change TPOT: with 11 tokens the first two measured ones are 8 and
// 12 ms.
func TestOutputTokens(t *testing.T) {
	d, err := compareWithRecording(t, recordedCSV, simulatedRun(), Options{OutputTokens: 11})
	must(err)
	for _, time := range d.Fidelity.Stages[0].Times {
		if time.Metric == "tpot" && time.Mean.Measured != 10 {
			t.Errorf("%+v", time)
		}
	}
}

// The output tokens given for a recording are checked against the run; for two runs the
// flag is an error.
func TestOutputTokensWarning(t *testing.T) {
	for n, want := range map[int64]bool{5: false, 11: true} {
		d, err := compareWithRecording(t, recordedCSV, simulatedRun(), Options{OutputTokens: n})
		must(err)
		warned := strings.Contains(strings.Join(d.Warnings, "\n"),
			"--output-tokens 11: 5 of 5 requests of run have a different output length (5 to 5)")
		if warned != want {
			t.Errorf("%d: %q", n, d.Warnings)
		}
	}
	if _, err := compareWithRecording(t, recordedCSV, simulatedRun(),
		Options{OutputTokens: 5, Streams: []string{"run", "run"}}); err == nil ||
		!strings.Contains(err.Error(), "neither run nor run is one") {
		t.Errorf("two runs: %v", err)
	}
}

// A recording that the step times of the run were fitted to has a warning, also if its folder is named; one of another
// name has none.
func TestFittedRecordingWarns(t *testing.T) {
	for source, want := range map[string]bool{"recordings a.csv, r.csv": true, "recordings ar.csv": false} {
		run := simulatedRun()
		run.source = source
		d, err := compareWithRecording(t, recordedCSV, run, Options{})
		must(err)
		warning := "the step times of run were fitted to r.csv"
		if got := strings.Contains(strings.Join(d.Warnings, "\n"), warning); got != want {
			t.Errorf("%s: %q", source, d.Warnings)
		}
		dir := t.TempDir()
		must(os.WriteFile(filepath.Join(dir, "r.csv"), []byte(recordedCSV), 0o666))
		d, err = compareWithRecording(t, recordedCSV, run, Options{Streams: []string{"run", "recording:" + dir}})
		must(err)
		if got := strings.Contains(strings.Join(d.Warnings, "\n"), warning); got != want {
			t.Errorf("%s, folder: %q", source, d.Warnings)
		}
	}
}

// A truncated recording is compared only on the common requests: TTFT of the first two
// was 20 and 40 ms, and is simulated as 22 and 36.
func TestTruncatedRecording(t *testing.T) {
	cut := "request_id,stage,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n" +
		"s0,low,0,100,5,0.020,0.100\ns1,low,0.1,110,5,0.040,0.160\n"
	d, err := compareWithRecording(t, cut, simulatedRun(), Options{})
	must(err)
	whole := d.Fidelity.Overall
	if whole.Measured != 2 || whole.Simulated != 2 || whole.Times[0].Mean.Simulated != 29 {
		t.Errorf("%+v", whole)
	}
	near(t, "the metric", d.Metrics.at("ttft.mean").A, 29)
	near(t, "throughput", d.Metrics.at("requests.completed").A, 2)
	if d.Requests.OnlyA != 3 || d.Requests.OnlyB != 0 {
		t.Errorf("%+v", d.Requests)
	}
	if want := "only the 2 requests on both sides are compared: run has 5, "; !strings.Contains(strings.Join(d.Warnings,
		"\n"), want) {
		t.Errorf("%q", d.Warnings)
	}
	// All requests are on both sides: there is no warning.
	d, err = compareWithRecording(t, recordedCSV, simulatedRun(), Options{})
	must(err)
	if got := strings.Join(d.Warnings, "\n"); strings.Contains(got, "on both sides") ||
		strings.Contains(got, "the same benchmark") {
		t.Errorf("%q", got)
	}
	// The same requests at twice the rate are a different benchmark.
	fast := strings.NewReplacer("0.1,", "0.05,", "0.2,", "0.1,", "0.3,", "0.15,", "0.4,", "0.2,").Replace(recordedCSV)
	d, err = compareWithRecording(t, fast, simulatedRun(), Options{})
	must(err)
	if got := strings.Join(d.Warnings, "\n"); !strings.Contains(got,
		"arrive within 0.4 s in run and within 0.2 s in ") {
		t.Errorf("%q", got)
	}
}

// Requests are paired by id if they have ids, by order if lengths agree, and otherwise
// not at all, which needs --unpaired.
func TestPairing(t *testing.T) {
	run := simulatedRun()
	ids := strings.NewReplacer("arrival_s", "request_id,arrival_s", "\n0.", "\ns0,0.").Replace(recordedCSV)
	ids = strings.Replace(strings.Replace(strings.Replace(strings.Replace(ids, "s0,0.1", "s1,0.1", 1), "s0,0.2",
		"s3,0.2", 1), "s0,0.3", "s2,0.3", 1), "s0,0.4", "s4,0.4", 1)
	ids = strings.NewReplacer("s3,0.2,120", "s3,0.2,130", "s2,0.3,130", "s2,0.3,120").Replace(ids)
	d, err := compareWithRecording(t, ids, run, Options{})
	must(err)
	// s3 has 80 simulated and 50 measured, s2 60 and 80.
	if f := d.Fidelity; f.Pairing == "id" {
		near(t, "bias", &f.Overall.Times[0].PerRequest.BiasMS, (2-4+30-20)/4.0)
	} else {
		t.Errorf("paired by %s", f.Pairing)
	}
	other := strings.ReplaceAll(recordedCSV, ",1", ",2") // with different lengths
	_, err = compareWithRecording(t, other, run, Options{})
	if err == nil || !strings.Contains(err.Error(), "r.csv and run do not have the same requests (5 and 5;") {
		t.Errorf("other lengths: %v", err)
	}
	d, err = compareWithRecording(t, other, run, Options{Unpaired: true})
	must(err)
	if f := d.Fidelity; f.Pairing != "none" || f.Overall.Times[0].PerRequest != nil || d.Requests != nil ||
		len(f.Stages) != 2 {
		t.Errorf("unpaired: %+v", f)
	}
}

// A recording without arrivals has no throughput.
func TestNoArrivals(t *testing.T) {
	bench := `{"date":"x","completed":3,"input_lens":[100,110,120],"output_lens":[5,5,5],` +
		`"ttfts":[0.02,0.03,0.04],` +
		`"itls":[[0.01,0.01,0.01,0.01],[0.01,0.01,0.01,0.01],[0.01,0.01,0.01,0.01]],` +
		`"errors":["","",""],"generated_texts":["a","b","c"]}`
	run := simulatedRun()
	run.outcomes = run.outcomes[:3]
	d, err := compareWithRecording(t, bench, run, Options{})
	must(err)
	if f := d.Fidelity; f.Pairing != "order" || f.Overall.RPS != nil || f.Overall.Times[0].Mean.Measured != 30 ||
		d.Metrics.at("throughput.rps").B != nil {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(strings.Join(d.Warnings, "\n"), "has no arrival times") {
		t.Errorf("%q", d.Warnings)
	}
}

// Unreadable recordings are rejected with the file and the reason.
func TestUnreadableRecordings(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"empty.csv": {"", "is empty"},
		"other.csv": {"a,b\n1,2\n", "has no known format"},
		"cut.csv":   {strings.Join(strings.Split(recordedCSV, "\n")[:3], "\n") + "\n0.2,120", ".csv:4: "},
		"mixed.csv": {strings.Replace(recordedCSV, "0.020,0.100", "0.100,0.020", 1), ".csv:2: "},
		"steps.csv": {"gpu,model,tp,prefill_tokens,decode_seqs,kv_context_tokens,step_ms,note\nH100,m,1,0,1,5,7,\n",
			""},
		"noise.jsonl": {"{\"kind\":", "kind must be a string"},
	} {
		path := filepath.Join(dir, name)
		must(os.WriteFile(path, []byte(c.text), 0o666))
		var out bytes.Buffer
		_, err := Run(context.Background(), files{"run": simulatedRun().stream()}.disk, &out,
			Options{Streams: []string{"run", path}, RankBy: "ttft.p99", Format: "text"})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name) ||
			out.Len() > 0 {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Simulated 22, 30, 31; measured 20, 50, 40: two of three pairs are concordant. The
// winner is the best: no regret. Gaps 2, 20, 9; ranks 1 2 3 and 1 3 2.
func TestRankingByHand(t *testing.T) {
	r := &Ranking{Metric: "ttft.mean", Pairs: []RankedPair{{"a", "x", 20, 22, ms(10)}, {"b", "y", 50, 30, ms(-40)},
		{"c", "z", 40, 31, ms(-22.5)}}}
	r.compute()
	near(t, "Spearman", r.Spearman, 0.5)
	near(t, "Kendall", r.Kendall, 1.0/3)
	near(t, "gap", &r.Gap, 31.0/3)
	near(t, "gap in %", r.GapPercent, 72.5/3)
	if r.ConcordantPairs != 2 || r.ComparablePairs != 3 || r.Winner != 0 || r.Best != 0 || r.Regret != 0 {
		t.Errorf("%+v", r)
	}
	// If higher is better, c simulates best but b was measured best: the regret is 10 of 50.
	r = &Ranking{Metric: "goodput.rps", HigherIsBetter: true, Pairs: r.Pairs}
	r.compute()
	if r.Winner != 2 || r.Best != 1 || r.Regret != 10 || *r.RegretPercent != 20 {
		t.Errorf("%+v", r)
	}
	if text := string(r.text()); !strings.Contains(text, "2 of 3 pairs in the measured order") ||
		!strings.Contains(text, "simulated best") {
		t.Error(text)
	}
}

// Pairs are read in either order of run and recording.
func TestRankReadsPairs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.csv")
	must(os.WriteFile(name, []byte(recordedCSV), 0o666))
	a, b := story()
	f := files{"run": simulatedRun().stream(), "a": a.stream(), "b": b.stream()}
	var out bytes.Buffer
	o := Options{Streams: []string{name, "run", "a", "b"}, Rank: true, RankBy: "goodput.ratio", Format: "json"}
	_, err := Run(context.Background(), f.disk, &out, o)
	if err == nil || err.Error() != name+" has no goodput.ratio" {
		t.Errorf("%v", err)
	}
	for by, higher := range map[string]bool{"requests.completed": true, "e2e.p99": false} {
		o.RankBy = by
		out.Reset()
		if _, err := Run(context.Background(), f.disk, &out, o); err != nil ||
			strings.Contains(out.String(), `"higher_is_better": true`) != higher {
			t.Errorf("by %s: %v\n%s", by, err, out.String())
		}
	}
	o.RankBy = "ttft.mean"
	out.Reset()
	crossed := o
	crossed.Streams = []string{"a", name, "run", "b"}
	if _, err = Run(context.Background(), f.disk, &out, crossed); err == nil ||
		!strings.Contains(err.Error(), "r.csv and a do not have the same requests") {
		t.Errorf("crossed: %v", err)
	}
	other := a
	other.workload = "v"
	f["other"] = other.stream()
	crossed.Streams = []string{"run", name, "a", "other"}
	if _, err = Run(context.Background(), f.disk, &out, crossed); err == nil ||
		!strings.Contains(err.Error(), "a and other have different workloads") {
		t.Errorf("crossed: %v", err)
	}
	crossed.Unpaired = true
	if _, err = Run(context.Background(), f.disk, &out, crossed); err != nil {
		t.Errorf("--unpaired: %v", err)
	}
	crossed.Streams, crossed.Unpaired = []string{"run", name, name, name}, false
	if _, err = Run(context.Background(), f.disk, &out, crossed); err == nil ||
		!strings.Contains(err.Error(), "are two recordings") {
		t.Errorf("two recordings: %v", err)
	}
	out.Reset()
	if _, err = Run(context.Background(), f.disk, &out, o); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"name": "run"`, `"measured": 47.5`, `"simulated": 45.6`, `"measured": 48`,
		`"simulated": 40`, `"concordant_pairs": 0`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the ranking lacks %s: %s", part, out.String())
		}
	}
}

// TestMeasuredZeroHasNoRelativeError: a measured time of 0 counts in the bias and not in the relative error.
func TestMeasuredZeroHasNoRelativeError(t *testing.T) {
	e := perRequest([]float64{0, 10, 20}, []float64{3, 11, 22})
	near(t, "bias", &e.BiasMS, 2)
	near(t, "MAPE", e.MAPE, 10)
	if e = perRequest([]float64{0}, []float64{3}); e.MAPE != nil {
		t.Errorf("MAPE %v of nothing", *e.MAPE)
	}
}

// TestOneClassIsNotListed: the only class is the same as all requests.
func TestOneClassIsNotListed(t *testing.T) {
	run := simulatedRun()
	for _, want := range []int{2, 0} {
		d, err := compareWithRecording(t, recordedCSV, run, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(d.Fidelity.Classes); got != want {
			t.Errorf("%d classes, want %d", got, want)
		}
		for i := range run.outcomes {
			run.outcomes[i].SLOClass = "batch"
		}
	}
}
