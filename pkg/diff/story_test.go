package diff

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"

	gocmp "github.com/google/go-cmp/cmp"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// testRun is a run as written by a test.
type testRun struct {
	policy    string
	trace     string // "" is decisions
	workload  string // digest
	source    string // of the step times
	warnings  []string
	outcomes  []stream.Outcome
	decisions []stream.Decision
}

// outcome is a request that completed, with its arrival, queueing, TTFT and E2E in ms.
func outcome(id string, arrival, queue, ttft, e2e int64, output int64, replica stream.Index) stream.Outcome {
	at := stream.Micros(arrival * 1000)
	after := func(ms int64) stream.Micros { return at + stream.Micros(ms*1000) }
	met := ttft <= 100
	return stream.Outcome{Kind: stream.KindOutcome, ID: id, State: stream.StateCompleted, ArrivalUS: at, AdmittedUS: at,
		RoutedUS: at, EnqueuedUS: at,
		ScheduledUS: after(queue), FirstTokenUS: after(ttft), CompletedUS: after(e2e), EndedUS: stream.Never,
		Deployment: "main", Replica: replica,
		SLOClass: "interactive", InputTokens: 100, OutputTokens: output, GeneratedTokens: output,
		ITLMaxUS: stream.Never, SLOMet: stream.BoolPtr(met)}
}

func rejectedOutcome(id string, arrival int64) stream.Outcome {
	o := outcome(id, arrival, 0, 0, 0, 5, stream.NoIndex)
	o.State, o.Reason, o.Deployment, o.GeneratedTokens, o.SLOMet = stream.StateRejected, stream.ReasonAdmission, "", 0,
		stream.BoolPtr(false)
	o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS, o.CompletedUS = stream.Never, stream.Never,
		stream.Never, stream.Never, stream.Never, stream.Never
	o.EndedUS = o.ArrivalUS
	return o
}

func routed(request string, ms int64, to stream.Index, seen ...stream.Candidate) stream.Decision {
	return stream.Decision{Kind: stream.KindDecision, ID: "dec-" + request, Stage: stream.StageRouting,
		AtUS: stream.Micros(ms * 1000), Request: request,
		Deployment: "main", Replica: to, Candidates: 2, Considered: seen}
}

func rejectedDecision(request string, ms int64) stream.Decision {
	return stream.Decision{Kind: stream.KindDecision, ID: "adm-" + request, Stage: stream.StageAdmission,
		AtUS: stream.Micros(ms * 1000), Request: request,
		Verdict: "reject", Replica: stream.NoIndex}
}

func candidate(replica stream.Index, queue int) stream.Candidate {
	c := stream.NewCandidate("main", replica)
	c.QueueDepth = stream.Index(queue)
	return c
}

// stream is the run as bytes.
func (r testRun) stream() []byte {
	var b bytes.Buffer
	w := stream.NewWriter(&b, true)
	classes := []stream.SLOClass{{Name: "interactive", Tier: "standard", Targets: stream.Targets{TTFTMS: 100}}}
	config := map[string]any{"version": 1, "deployments": []any{map[string]any{"id": "main", "replicas": 2,
		"latency": map[string]any{"source": cmp.Or(r.source, "measured")}}},
		"policies": map[string]any{"routing": map[string]any{"type": r.policy}}}
	must(w.Header(&stream.Header{Stream: stream.StreamRun, Tool: "blis-sim", Version: stream.Version,
		SLOClasses: classes,
		Run: &stream.RunHeader{Trace: cmp.Or(r.trace, "decisions"), Key: stream.SimulationKey{Policy: "p" + r.policy},
			ConfigDigest: "c" + r.policy, Config: config}}))
	acc := metrics.New(classes)
	for i := range r.decisions {
		must(w.Decision(&r.decisions[i]))
	}
	for i := range r.outcomes {
		acc.Add(&r.outcomes[i])
		if r.trace != "minimal" {
			must(w.Outcome(&r.outcomes[i]))
		}
	}
	raw := *acc.Raw()
	raw.Warnings = append(raw.Warnings, r.warnings...)
	must(w.Any(&metrics.Record{Kind: stream.KindMetrics, Raw: raw}))
	must(w.End(&stream.End{WorkloadDigest: cmp.Or(r.workload, "w"),
		Requests: &stream.Counts{Offered: int64(len(r.outcomes))}}))
	must(w.Close())
	return b.Bytes()
}

// files opens contents by name.
type files map[string][]byte

func (f files) open(name string) (io.ReadCloser, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return namedReader{io.NopCloser(bytes.NewReader(text)), name}, nil
}

type namedReader struct {
	io.ReadCloser
	name string
}

func (n namedReader) Name() string { return n.name }

// compareFiles is the document about the streams a and b of f.
func compareFiles(t *testing.T, f files, o Options) *Document {
	t.Helper()
	if o.Streams == nil {
		o.Streams = []string{"a", "b"}
	}
	if o.RankBy == "" {
		o.RankBy = "ttft.p99"
	}
	must(o.Validate())
	d, err := compare(context.Background(), &comparison{open: f.open, options: &o}, o.Streams)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Six requests arrive every 100 ms. Side b sends r2 to the other replica, where it
// waits, rejects r4 and makes r5 faster:
//
//	     a: replica TTFT E2E     b: replica TTFT E2E
//	r1      0       20   100        0       20   100
//	r2      1       30   150        0       120  240   +90 ms, and misses 100 ms
//	r3      0       20   100        1       20   100   other replica, same times
//	r4      1       40   200        rejected
//	r5      0       110  300        0       60   250   −50 ms, and meets
//	r6      1       20   100        1       20   100
func story() (a, b testRun) {
	a = testRun{policy: "x", outcomes: []stream.Outcome{outcome("r1", 0, 1, 20, 100, 5, 0),
		outcome("r2", 100, 2, 30, 150, 5, 1), outcome("r3", 200, 1, 20, 100, 5, 0),
		outcome("r4", 300, 3, 40, 200, 5, 1), outcome("r6", 500, 1, 20, 100, 5, 1),
		outcome("r5", 400, 9, 110, 300, 5, 0)},
		decisions: []stream.Decision{routed("r1", 0, 0), routed("r2", 100, 1, candidate(1, 0), candidate(0, 1)),
			routed("r3", 200, 0),
			routed("r4", 300, 1), routed("r5", 400, 0), routed("r6", 500, 1)}}
	b = testRun{policy: "y", outcomes: []stream.Outcome{outcome("r1", 0, 1, 20, 100, 5, 0),
		outcome("r3", 200, 1, 20, 100, 5, 1), outcome("r2", 100, 92, 120, 240, 5, 0),
		rejectedOutcome("r4", 300), outcome("r6", 500, 1, 20, 100, 5, 1), outcome("r5", 400, 9, 60, 250, 5, 0)},
		decisions: []stream.Decision{routed("r1", 0, 0), routed("r2", 100, 0, candidate(0, 3), candidate(1, 0)),
			routed("r3", 200, 1),
			rejectedDecision("r4", 300), routed("r5", 400, 0), routed("r6", 500, 1)}}
	return a, b
}

func ms(v float64) *float64 { return &v }

func TestStory(t *testing.T) {
	a, b := story()
	d := compareFiles(t, files{"a": a.stream(), "b": b.stream()}, Options{})
	if d.Status != "differs" {
		t.Error(d.Status)
	}
	if diff := gocmp.Diff([]Setting{{"policies.routing.type", json.RawMessage(`"x"`), json.RawMessage(`"y"`)}},
		d.Config); diff != "" {
		t.Errorf("settings: %s", diff)
	}
	want := &Requests{Both: 6, Changed: 4, Slower: 1, Faster: 1, States: []StateChange{{"completed", "rejected", 1}},
		SLOLost: 2, SLOGained: 1,
		Regressions: []Change{{"r2", 90, Times{ms(30), ms(150), ms(2), "main/1"},
			Times{ms(120), ms(240), ms(92), "main/0"}}},
		Gains: []Change{{"r5", -50, Times{ms(110), ms(300), ms(9), "main/0"},
			Times{ms(60), ms(250), ms(9), "main/0"}}}}
	if diff := gocmp.Diff(want, d.Requests); diff != "" {
		t.Errorf("requests: %s", diff)
	}
	// Five routing decisions are on both sides; r2's and r3's differ. The routing of r4 is
	// in a only, its rejection in b only.
	c := d.Decisions
	if c.Compared != 5 || c.OnlyA != 1 || c.OnlyB != 1 || c.Differ != 4 {
		t.Errorf("decisions: %+v", c)
	}
	f := c.First
	if f.Request != "r2" || f.Stage != "routing" || f.LaterDiffering != 3 || f.A.Replica != 1 || f.B.Replica != 0 ||
		f.A.ID != "dec-r2" {
		t.Errorf("the first: %+v", f)
	}
	if diff := gocmp.Diff([]string{"main/0 queue_depth"}, f.DifferingSignals); diff != "" {
		t.Errorf("differing signals: %s", diff)
	}
	// TTFT in a: 20 20 20 30 40 110, mean 40, p50 between 20 and 30; in b: 20 20 20 60
	// 120, mean 48, p50 20. Four of six meet 100 ms in b, five in a.
	for path, m := range map[string]Metric{
		"ttft.mean":          {A: ms(40), B: ms(48), Diff: ms(8), RelativeDiff: ms(0.2)},
		"ttft.p50":           {A: ms(25), B: ms(20), Diff: ms(-5), RelativeDiff: ms(-0.2)},
		"goodput.met":        {A: ms(5), B: ms(4), Diff: ms(-1), RelativeDiff: ms(-0.2)},
		"requests.rejected":  {A: ms(0), B: ms(1), Diff: ms(1)},
		"reasons.admission":  {B: ms(1)},
		"requests.completed": {A: ms(6), B: ms(5), Diff: ms(-1), RelativeDiff: ms(-1.0 / 6)},
	} {
		got := *d.Metrics.at(path)
		got.CI, m.Path = nil, path
		if diff := gocmp.Diff(m, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "6 blocks") {
		t.Errorf("warnings: %q", d.Warnings)
	}
	text := string(d.text())
	for _, line := range []string{"states      1 completed -> rejected",
		"SLO         2 met their targets in a and not in b, 1 in b and not in a",
		"decisions   4 of 7 differ; the first is the routing of r2, 3 more follow",
		"different values: main/0 queue_depth"} {
		if !strings.Contains(text, line) {
			t.Errorf("the text lacks %q:\n%s", line, text)
		}
	}
}

// The order of outcomes, their compression, and a lower trace level are not differences.
func TestEqualRuns(t *testing.T) {
	a, _ := story()
	other := a
	other.outcomes = slices.Clone(a.outcomes)
	slices.Reverse(other.outcomes)
	d := compareFiles(t, files{"a": a.stream(), "b": other.stream()}, Options{})
	if d.Status != "same" || d.Requests.Changed != 0 || d.Decisions.Differ != 0 || d.Decisions.First != nil {
		t.Errorf("%s, %+v, %+v", d.Status, d.Requests, d.Decisions)
	}
	if text := string(d.text()); !strings.Contains(text, "result      the same\n") || strings.Contains(text, "TTFT") {
		t.Error(text)
	}
	other.trace, other.decisions = "minimal", nil
	d = compareFiles(t, files{"a": a.stream(), "b": other.stream()}, Options{})
	if d.Status != "same" || d.Requests != nil || d.Decisions != nil || d.Bootstrap != nil || len(d.Warnings) != 1 {
		t.Errorf("minimal: %+v", d)
	}
}

// What a run says about its step times is said of the comparison, once for both runs if both say it.
func TestStepTimesOfRunsAreWarnedOf(t *testing.T) {
	a, b := story()
	a.warnings = []string{"deployment x: extrapolated", "deployment y: computed"}
	b.warnings = []string{"deployment y: computed", "deployment z: computed", "few samples"}
	d := compareFiles(t, files{"a": a.stream(), "b": b.stream()}, Options{})
	want := []string{"a: deployment x: extrapolated", "both runs: deployment y: computed",
		"b: deployment z: computed"}
	got := slices.DeleteFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "6 blocks") })
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A decision of one side counts as a difference, unless it is an admission that admits.
func TestDecisionsOfOneSide(t *testing.T) {
	a, _ := story()
	b := a
	admits := rejectedDecision("r1", 0)
	admits.Verdict = "admit"
	b.decisions = append([]stream.Decision{admits}, a.decisions...)
	if d := compareFiles(t, files{"a": a.stream(), "b": b.stream()}, Options{}); d.Decisions.Differ != 0 ||
		d.Status != "same" {
		t.Errorf("admitted: %+v", d.Decisions)
	}
	delays := admits
	delays.Verdict, delays.DelayUS = "delay", 5
	b.decisions = append([]stream.Decision{delays}, b.decisions...)
	d := compareFiles(t, files{"a": a.stream(), "b": b.stream()}, Options{})
	if c := d.Decisions; c.Differ != 1 || c.OnlyB != 1 || c.First.A != nil || c.First.B.Verdict != "delay" {
		t.Errorf("delayed: %+v", c)
	}
}

// A request for which the condition is true on one side is selected on both, and metrics
// cover the selected requests.
func TestWhere(t *testing.T) {
	a, b := story()
	d := compareFiles(t, files{"a": a.stream(), "b": b.stream()}, Options{Where: "ttft_ms > 100"})
	if s := d.Selection; s.Requests != 2 || s.Of != 6 {
		t.Errorf("selection: %+v", s)
	}
	// r2 and r5: TTFT 30 and 110, then 120 and 60.
	if m := d.Metrics.at("ttft.mean"); *m.A != 70 || *m.B != 90 || d.Requests.Both != 2 || d.Decisions.Compared != 2 {
		t.Errorf("%v, %v; %+v", *m.A, *m.B, d.Requests)
	}
}

func TestRejectedInputs(t *testing.T) {
	a, b := story()
	whole := string(a.stream())
	lines := strings.SplitAfter(whole, "\n")
	other := b
	other.workload = "v"
	quiet := a
	quiet.trace = "minimal"
	twice := a
	twice.outcomes = append(slices.Clone(a.outcomes), a.outcomes[0])
	for name, c := range map[string]struct {
		b    string
		o    Options
		want string
	}{
		"other workload": {string(other.stream()), Options{},
			"a and b have different workloads (w and v); --unpaired compares them as independent samples"},
		"truncated": {strings.Join(lines[:len(lines)-2], ""), Options{}, "b: truncated: "},
		"cut":       {whole[:len(whole)/2], Options{}, "b: truncated: "},
		"empty":     {"", Options{}, "b: truncated: the stream is empty"},
		"a workload": {`{"kind":"request","id":"x","arrival_us":0,"input_tokens":1,"output_tokens":1}`, Options{},
			"b:1: this is a workload; expected a run"},
		"no metrics": {strings.Join(slices.DeleteFunc(slices.Clone(lines),
			func(l string) bool { return strings.Contains(l, `"kind":"metrics"`) }), ""), Options{},
			"b: the run has no metrics record"},
		"minimal": {string(quiet.stream()), Options{Where: "ttft_ms > 1"},
			"b: the run was written with --trace minimal"},
		"twice": {string(twice.stream()), Options{}, `b:14: the request "r1" has two outcomes`},
		"strict": {strings.Join(slices.Delete(slices.Clone(lines), 1, 2), ""), Options{Strict: true},
			"b: filtered: the end record counts"},
		"error record": {`{"kind":"error","tool":"blis-sim","file":"c.yaml","line":3,"message":"no such policy"}`,
			Options{}, "blis-sim: c.yaml:3: no such policy"},
		"noise": {"\x28\xb5\x2f\xfdnoise", Options{}, "b: "},
		"a bad line": {strings.Replace(whole, `"arrival_us":100000`, `"arrival_us":"x"`, 1), Options{},
			"b:9: arrival_us"},
		"a bad candidate": {strings.Replace(whole, `"queue_depth":`, `"queue_depth":-`, 1), Options{}, "b:"},
	} {
		c.o.Streams, c.o.RankBy, c.o.Format = []string{"a", "b"}, "ttft.p99", "text"
		var out bytes.Buffer
		_, err := Run(context.Background(), files{"a": a.stream(), "b": []byte(c.b)}.open, &out, c.o)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("%s: %v, want %s; %d bytes of output", name, err, c.want, out.Len())
		}
	}
	d := compareFiles(t, files{"a": a.stream(), "b": other.stream()}, Options{Unpaired: true})
	if d.Requests != nil || d.Decisions != nil || d.Bootstrap.Paired || *d.Metrics.at("ttft.mean").Diff != 8 {
		t.Errorf("unpaired: %+v", d)
	}
}

// A canceled context ends the comparison; the output is deterministic.
func TestContext(t *testing.T) {
	a, b := story()
	f := files{"a": a.stream(), "b": b.stream()}
	o := Options{Streams: []string{"a", "b"}, RankBy: "ttft.p99", Format: "json"}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, f.open, io.Discard, o); err != context.Canceled {
		t.Errorf("canceled: %v", err)
	}
	var one, two bytes.Buffer
	for _, out := range []*bytes.Buffer{&one, &two} {
		if v, err := Run(context.Background(), f.open, out, o); err != nil || !v.Differs || v.Failed {
			t.Fatal(v, err)
		}
	}
	if one.String() != two.String() || !json.Valid(one.Bytes()) {
		t.Errorf("two calls differ, or this is not JSON: %s", one.String())
	}
}

// Paths of settings are those of blis-sim --set; a list of numbers is one value.
func TestSettings(t *testing.T) {
	leaves := map[string]json.RawMessage{}
	var tree any
	must(json.Unmarshal([]byte(
		`{"tool":"t","config":{"deployments":[{"id":"main","latency":{"beta_us":[1,2]}},`+
			`{"id":"b"}],"steps":[[1],{"x":null}]}}`), &tree))
	flatten(tree, "", leaves)
	var got []string
	for path, v := range leaves {
		got = append(got, fmt.Sprintf("%s=%s", path, v))
	}
	slices.Sort(got)
	want := []string{`deployments.b.id="b"`, `deployments.main.id="main"`, `deployments.main.latency.beta_us=[1,2]`,
		"steps.0=[1]", "steps.1.x=null", `tool="t"`}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
