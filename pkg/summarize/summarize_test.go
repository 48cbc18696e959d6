package summarize

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var classes = []stream.SLOClass{
	{Name: "critical", Tier: "critical", Targets: stream.Targets{TTFTMS: 150}},
	{Name: "batch", Tier: "sheddable"},
}

// run is a run to be written.
type run struct {
	trace    string
	outcomes []stream.Outcome
	until    stream.Micros
	beyond   int64
	// config is the configuration in the header, more are lines behind the outcomes.
	config any
	more   []string
}

// fill adds everything that the run contains to a, including all inter-token gaps.
func (r *run) fill(a *metrics.Accumulator) {
	for i := range r.outcomes {
		a.Add(&r.outcomes[i])
		for _, gap := range r.outcomes[i].ITLUS {
			a.AddGaps(gap[0], gap[1])
		}
	}
	a.ExtendTo(r.until)
	a.AddReplica(metrics.ReplicaTotals{Deployment: "main", GPUs: 2, Requests: 3, Completed: 2, PrefillTokens: 1500,
		DecodeTokens:  18,
		QueriedTokens: 2000, CachedTokens: 500, PeakQueue: 1, PeakBatch: 2, BlockUS: 40_000_000, PeakBlocks: 60,
		Blocks: 100,
		UpUS:   4_000_000, BusyUS: 1_000_000})
}

// data returns the run as blis-sim writes it, uncompressed.
func (r *run) data(t interface{ Fatal(...any) }) []byte {
	var b bytes.Buffer
	w := stream.NewWriter(&b, true)
	a := metrics.New(classes)
	r.fill(a)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(
		w.Header(
			&stream.Header{
				Stream:        stream.StreamRun,
				StreamVersion: stream.StreamVersion,
				Tool:          "blis-sim",
				Version:       "0.1.0",
				Seed:          42,
				SLOClasses:    classes,
				Run: &stream.RunHeader{
					Key: stream.SimulationKey{Policy: strings.Repeat("ab", 32), WorkloadSeed: 7, SimSeed: 42,
						JitterSeed: 42},
					Trace:        r.trace,
					Workload:     stream.Source{Tool: "blis-gen", Seed: 7},
					ConfigDigest: strings.Repeat("cd", 32),
					Config:       r.config,
				},
			},
		),
	)
	counts := &stream.Counts{BeyondHorizon: r.beyond}
	for i := range r.outcomes {
		o := &r.outcomes[i]
		counts.Offered++
		*map[string]*int64{"completed": &counts.Completed, "rejected": &counts.Rejected, "timed_out": &counts.TimedOut,
			"failed": &counts.Failed, "unfinished": &counts.Unfinished}[o.State]++
		if r.trace != "minimal" {
			check(w.Outcome(o))
		}
	}
	for _, line := range r.more {
		check(w.Raw([]byte(line)))
	}
	check(w.Any(&metrics.Record{Kind: stream.KindMetrics, Raw: *a.Raw()}))
	check(w.End(&stream.End{Requests: counts, WorkloadDigest: strings.Repeat("ef", 32)}))
	check(w.Close())
	return b.Bytes()
}

// outcome is a request that arrives at a time in ms and receives its first token after
// ttft ms, then the others every 10 ms. With ttft 0 it is rejected.
func outcome(id, class, tenant string, arrival, ttft, input, output int64) stream.Outcome {
	at := stream.Micros(1000 * arrival)
	o := stream.Outcome{ID: id, State: stream.StateRejected, Reason: "admission", ArrivalUS: at,
		AdmittedUS: stream.Never, RoutedUS: stream.Never,
		EnqueuedUS: stream.Never, ScheduledUS: stream.Never, FirstTokenUS: stream.Never, CompletedUS: stream.Never,
		EndedUS: stream.Never, Replica: stream.NoIndex,
		SLOClass: class, Tenant: tenant, Model: "m", InputTokens: input, OutputTokens: output, ITLMaxUS: stream.Never}
	o.ClearPrefill()
	if ttft == 0 {
		return o
	}
	o.State, o.Reason = stream.StateCompleted, ""
	o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS = at, at, at+2000, at+5000
	o.FirstTokenUS = at + stream.Micros(1000*ttft)
	o.CompletedUS = o.FirstTokenUS + stream.Micros(10_000*(output-1))
	o.Deployment, o.Replica, o.GeneratedTokens = "main", 0, output
	if output > 1 {
		o.ITLUS, o.ITLMaxUS = [][2]int64{{10_000, output - 1}}, 10_000
	}
	return o
}

// story is a run of four requests, small enough to check by hand.
func story() *run {
	return &run{trace: "decisions", outcomes: []stream.Outcome{
		outcome("a", "critical", "t1", 1000, 100, 500, 11),  // done at 1.2 s
		outcome("b", "critical", "t2", 2000, 200, 1500, 21), // misses its target; completes at 2.4 s
		outcome("c", "batch", "t1", 3000, 300, 100, 1),      // completes at 3.3 s
		outcome("d", "critical", "t2", 4000, 0, 700, 9),
	}, until: 4_000_000, beyond: 3}
}

// options parses options as a command line does.
func options(t *testing.T, where, from, to, format string) Options {
	t.Helper()
	o := Options{Format: format}
	for _, set := range []struct {
		text string
		into interface{ UnmarshalText([]byte) error }
	}{{where, &o.Where}, {from, &o.From}, {to, &o.To}} {
		if set.text != "" {
			if err := set.into.UnmarshalText([]byte(set.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

func summarize(data []byte, o Options) (string, error) {
	var out bytes.Buffer
	err := Run(context.Background(), bytes.NewReader(data), &out, o)
	return out.String(), err
}

// document summarizes as JSON and decodes the document.
func document(t *testing.T, data []byte, o Options) (*Document, *metrics.Raw) {
	t.Helper()
	o.Format = "json"
	text, err := summarize(data, o)
	if err != nil {
		t.Fatal(err)
	}
	raw := &metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}
	d := &Document{Metrics: metrics.WithNulls{Raw: raw}}
	dec := json.NewDecoder(bytes.NewReader(pruneEmpty(t, text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(d); err != nil {
		t.Fatal(err)
	}
	return d, raw
}

// pruneEmpty removes everything null or empty from a document, so that it decodes into
// its types.
func pruneEmpty(t *testing.T, text string) []byte {
	t.Helper()
	var prune func(v any) any
	prune = func(v any) any {
		if list, ok := v.([]any); ok && len(list) == 0 {
			return nil
		}
		object, ok := v.(map[string]any)
		if !ok {
			return v
		}
		for k, x := range object {
			if x = prune(x); x == nil {
				delete(object, k)
			} else {
				object[k] = x
			}
		}
		if len(object) == 0 {
			return nil
		}
		return object
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	pruned, err := json.Marshal(prune(v))
	if err != nil {
		t.Fatal(err)
	}
	return pruned
}

func TestText(t *testing.T) {
	got, err := summarize(story().data(t), Options{Format: "table"})
	if err != nil {
		t.Fatal(err)
	}
	// TTFT 100, 200, 300 ms; E2E 200, 400, 300 ms; p90 at position 1.8: 280 and 380.
	// 3 s from 1 s to 4 s; 33 output tokens and 2100 input tokens completed.
	// Tenant t1 got 12 of 12 tokens, t2 21 of 30: 1.7^2 / (2 * 1.49) = 0.9698.
	const want = `run         blis-sim 0.1.0, policy abababababab, config cdcdcdcdcdcd, ` +
		`workload efefefefefef, seeds 7 (workload) 42 (simulation)
requests    4 offered = 3 completed + 1 rejected + 0 timed out + 0 failed + 0 unfinished; 3 admitted (75.0 %)
not done    1 admission
duration    3.000 s, from the first arrival to the last final state

latency, ms    mean     p50      p90      p95      p99      max  count
TTFT         200.00  200.00?  280.00?  290.00?  298.00?  300.00      3
TPOT          10.00   10.00?   10.00?   10.00?   10.00?   10.00      2
ITL           10.00   10.00    10.00?   10.00?   10.00?   10.00     30
E2E          300.00  300.00?  380.00?  390.00?  398.00?  400.00      3
queue          3.00    3.00?    3.00?    3.00?    3.00?    3.00      3

throughput  1.00 requests/s, 11 output tokens/s, 711 tokens/s including prompts; completed requests only
goodput     0.33 requests/s; 1 of 3 offered requests with targets met them (33.3 %)
KV cache    10.0 % of the blocks in use (at most 60.0 %), ` +
		`0.0 % of prompt tokens found cached, 0 preemptions (0.000 per request)
fairness    0.9698 Jain over 2 tenants, of completed/offered output tokens
tail        p99 of E2E is 1.33 x p50
cost        8.0 GPU seconds, 4.0 replica seconds

by class     offered  completed     met  requests/s  TTFT ms p50      p99   TPOT ms p50     p99   E2E ms p50      p99
batch              1          1       -        0.33       300.00?  300.00?            -       -       300.00?  300.00?
critical           3          2  33.3 %        0.67       150.00?  199.00?        10.00?  10.00?      300.00?  398.00?

by tenant    offered  completed      met  requests/s  TTFT ms p50      p99   TPOT ms p50     p99   E2E ms p50      p99
t1                 2          2  100.0 %        0.67       200.00?  298.00?        10.00?  10.00?      250.00?  299.00?
t2                 2          1    0.0 %        0.33       200.00?  200.00?        10.00?  10.00?      400.00?  400.00?

by replica   requests  completed  tokens    busy  peak queue  peak batch  KV mean  KV max  cached  preemptions
main/0              3          2    1518  25.0 %           1           2   10.0 %  60.0 %  25.0 %            0

warnings (? marks percentiles of fewer than 10/(1-p) samples)
  3 requests arrive after the horizon and were not offered
  ttft: 3 samples are too few for p50 (needs 20), p90 (needs 100), p95 (needs 200), p99 (needs 1000)
  tpot: 2 samples are too few for p50 (needs 20), p90 (needs 100), p95 (needs 200), p99 (needs 1000)
  e2e: 3 samples are too few for p50 (needs 20), p90 (needs 100), p95 (needs 200), p99 (needs 1000)
  queue: 3 samples are too few for p50 (needs 20), p90 (needs 100), p95 (needs 200), p99 (needs 1000)
  itl: 30 samples are too few for p90 (needs 100), p95 (needs 200), p99 (needs 1000)
  cls: 2 of 2 groups have percentiles of too few samples (p99 needs 1000; minimum 1: ttft of batch)
  tenants: 2 of 2 groups have percentiles of too few samples (p99 needs 1000; minimum 1: tpot of t1)
  models: 1 of 1 groups have percentiles of too few samples (p99 needs 1000; minimum 2: tpot of m)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSelection(t *testing.T) {
	data := story().data(t)
	for _, c := range []struct {
		where, from, to string
		offered, done   int64
		from_, until    stream.Micros
	}{
		{"ttft_ms >= 200", "", "", 2, 2, 2_000_000, 3_300_000},
		{"slo_class == 'critical'", "", "", 3, 2, 1_000_000, 4_000_000},
		{"", "2s", "", 3, 2, 2_000_000, 4_000_000},
		{"", "", "2s", 1, 1, 1_000_000, 1_200_000},
		{"", "2s", "4s", 2, 2, 2_000_000, 3_300_000},
		{"tenant == 't1'", "1500ms", "1h", 1, 1, 3_000_000, 3_300_000},
		{"input_tokens > 1e9", "", "", 0, 0, stream.Never, stream.Never},
	} {
		o := options(t, c.where, c.from, c.to, "json")
		d, raw := document(t, data, o)
		if raw.Requests.Offered != c.offered || raw.Requests.Completed != c.done || d.Selection.Requests != c.offered ||
			d.Selection.Of != 4 {
			t.Errorf("%q from %q to %q: %+v, %+v", c.where, c.from, c.to, raw.Requests, d.Selection)
		}
		if c.offered > 0 && (raw.FromUS != c.from_ || raw.UntilUS != c.until) {
			t.Errorf("%q from %q to %q: run from %d until %d", c.where, c.from, c.to, raw.FromUS, raw.UntilUS)
		}
		if raw.Cost != nil || raw.Replicas != nil || raw.KV.UtilMean != nil {
			t.Errorf("%q: a part of a run has replica metrics", c.where)
		}
		o.Format = "table"
		if text, err := summarize(data, o); err != nil ||
			!strings.Contains(text, fmt.Sprintf("\nselection   %d of 4 requests", c.offered)) {
			t.Errorf("%q: %v\n%s", c.where, err, text)
		}
	}
}

// anyRun generates a run.
var anyRun = rapid.Custom(func(t *rapid.T) *run {
	r := &run{trace: "decisions"}
	itl := rapid.Bool().Draw(t, "itl")
	for i := range rapid.IntRange(1, 60).Draw(t, "requests") {
		n := func(name string, low, high int64) int64 { return rapid.Int64Range(low, high).Draw(t, name) }
		o := outcome(fmt.Sprint(i), rapid.SampledFrom([]string{"", "critical", "batch"}).Draw(t, "class"),
			rapid.SampledFrom([]string{"", "t1", "t2", "t3"}).Draw(t, "tenant"), n("arrival", 0, 5000),
			n("ttft", 0, 400), n("input", 1, 2000), n("output", 1, 50))
		if o.State == stream.StateRejected {
			o.State = rapid.SampledFrom([]string{stream.StateRejected, stream.StateTimedOut, stream.StateFailed,
				stream.StateUnfinished}).Draw(t, "state")
		} else {
			o.CachedTokens, o.Preemptions = n("cached", 0, o.InputTokens-1), n("preemptions", 0, 2)
		}
		o.SLOMet = metrics.SLOMet(&o, stream.Targets{TTFTMS: map[string]float64{"critical": 150}[o.SLOClass]})
		if !itl {
			o.ITLUS = nil
		}
		r.outcomes = append(r.outcomes, o)
		r.until = max(r.until, o.ArrivalUS+stream.Micros(n("left after", 0, 1_000_000)))
	}
	return r
})

// Metrics that are computed from all outcomes equal those that the run carries, to the
// bit, except those of replicas.
func TestComputedAgreesWithCarried(t *testing.T) {
	everything := options(t, "true", "0s", "1h", "json")
	rapid.Check(t, func(rt *rapid.T) {
		data := anyRun.Draw(rt, "run").data(rt)
		_, carried := document(t, data, Options{})
		_, computed := document(t, data, everything)
		carried.Replicas, carried.Cost, carried.KV.UtilMean, carried.KV.UtilMax = nil, nil, nil, nil
		if diff := cmp.Diff(carried, computed); diff != "" {
			rt.Fatalf("(-carried +computed):\n%s", diff)
		}
	})
}

// Metrics and filters define latencies separately; both must agree: a filter on a latency
// splits the requests at the maximum that the metrics report.
func TestFiltersMeasureAsMetricsDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		data := anyRun.Draw(rt, "run").data(rt)
		_, raw := document(t, data, Options{})
		for name, d := range map[string]*metrics.Distribution{"ttft_ms": raw.TTFT, "tpot_ms": raw.TPOT,
			"e2e_ms": raw.E2E, "queue_ms": raw.Queue} {
			if d == nil {
				continue
			}
			for op, want := range map[string]bool{"<=": true, ">": false} {
				where := fmt.Sprintf("%s %s double('%v')", name, op, d.Max)
				doc, _ := document(t, data, options(t, where, "", "", "json"))
				if want && doc.Selection.Requests != d.Count || !want && doc.Selection.Requests != 0 {
					rt.Fatalf("%s: %d of %d requests", where, doc.Selection.Requests, d.Count)
				}
			}
		}
		if raw.Goodput != nil {
			doc, _ := document(t, data, options(t, "slo_met", "", "", "json"))
			if doc.Selection.Requests != raw.Goodput.Met {
				rt.Fatalf("%d requests met their targets, of goodput's %d", doc.Selection.Requests, raw.Goodput.Met)
			}
		}
	})
}

// Order, compression and trace level do not change a byte of the summary.
func TestOrderAndTraceLevelDoNotMatter(t *testing.T) {
	r := story()
	want, err := summarize(r.data(t), Options{Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	// Only outcomes explain causes.
	r.trace = "minimal"
	few, err := summarize(r.data(t), Options{Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(text string) map[string]any {
		d := decode(t, text)
		for _, explained := range []string{"artifacts", "hints", "patterns", "regret", "examples"} {
			delete(d, explained)
		}
		return d
	}
	if diff := cmp.Diff(numbers(want), numbers(few)); diff != "" {
		t.Errorf("minimal:\n%s", diff)
	}
	r.trace = "decisions"
	first, last := &r.outcomes[0], &r.outcomes[len(r.outcomes)-1]
	*first, *last = *last, *first
	if got, err := summarize(r.data(t), Options{Format: "json"}); err != nil || got != want {
		t.Errorf("in another order: %v\n%s", err, cmp.Diff(want, got))
	}
}

func TestITLWithoutGaps(t *testing.T) {
	r := story()
	r.outcomes[0].ITLUS = nil
	d, raw := document(t, r.data(t), options(t, "true", "", "", "json"))
	if raw.ITL == nil || raw.ITL.Count != 20 ||
		!strings.Contains(strings.Join(d.Warnings, "\n"), "itl covers 1 of 2 requests") {
		t.Errorf("ITL %+v, warnings %q", raw.ITL, d.Warnings)
	}
	r.outcomes[1].ITLUS = nil
	d, raw = document(t, r.data(t), options(t, "true", "", "", "json"))
	if raw.ITL != nil || !strings.Contains(strings.Join(d.Warnings, "\n"), "itl is missing") {
		t.Errorf("ITL %+v, warnings %q", raw.ITL, d.Warnings)
	}
}

// Outcomes do not contain the time at which a request timed out; a partial summary warns
// about it.
func TestUnknownEndOfTimedOutRequests(t *testing.T) {
	r := story()
	r.outcomes[3].State, r.outcomes[3].Reason, r.until = stream.StateTimedOut, "deadline", 9_000_000
	const caveat = "the end of 1 requests that timed out or failed is unknown"
	d, raw := document(t, r.data(t), options(t, "true", "", "", "json"))
	if raw.UntilUS != 9_000_000 || strings.Contains(strings.Join(d.Warnings, "\n"), caveat) {
		t.Errorf("all: until %d, warnings %q", raw.UntilUS, d.Warnings)
	}
	d, raw = document(t, r.data(t), options(t, "tenant == 't2'", "", "", "json"))
	if raw.UntilUS != 4_000_000 || !strings.Contains(strings.Join(d.Warnings, "\n"), caveat) {
		t.Errorf("part: until %d, warnings %q", raw.UntilUS, d.Warnings)
	}
	r.outcomes[3].State = stream.StateUnfinished
	if _, raw = document(t, r.data(t), options(t, "tenant == 't2'", "", "", "json")); raw.UntilUS != 9_000_000 {
		t.Errorf("unfinished: until %d", raw.UntilUS)
	}
}
