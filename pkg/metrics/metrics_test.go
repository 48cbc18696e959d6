package metrics

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var testClasses = []stream.SLOClass{
	{Name: "critical", Tier: "critical", Targets: stream.Targets{TTFTMS: 0.3, TPOTMS: 0.02}},
	{Name: "standard", Tier: "standard", Targets: stream.Targets{E2EMS: 1.5}},
	{Name: "batch", Tier: "sheddable"},
}

// anyOutcome generates an outcome: how far the request came, and how it ended.
var anyOutcome = rapid.Custom(func(t *rapid.T) stream.Outcome {
	at := stream.Micros(rapid.Int64Range(0, 5000).Draw(t, "arrival"))
	o := stream.Outcome{ID: "r", State: stream.StateCompleted, ArrivalUS: at, AdmittedUS: stream.Never,
		RoutedUS:   stream.Never,
		EnqueuedUS: stream.Never, ScheduledUS: stream.Never, FirstTokenUS: stream.Never, CompletedUS: stream.Never,
		EndedUS:     stream.Never,
		SLOClass:    rapid.SampledFrom([]string{"", "critical", "standard", "batch", "unheard-of"}).Draw(t, "class"),
		Tenant:      rapid.SampledFrom([]string{"", "t1", "t2", "t3"}).Draw(t, "tenant"),
		Model:       rapid.SampledFrom([]string{"m1", "m2"}).Draw(t, "model"),
		InputTokens: rapid.Int64Range(1, 50).Draw(t, "input"), OutputTokens: rapid.Int64Range(1, 30).Draw(t, "output")}
	stages := []*stream.Micros{&o.AdmittedUS, &o.RoutedUS, &o.EnqueuedUS, &o.ScheduledUS, &o.FirstTokenUS,
		&o.CompletedUS}
	reached := rapid.IntRange(0, len(stages)).Draw(t, "reached")
	for _, stage := range stages[:reached] {
		at += stream.Micros(rapid.Int64Range(0, 300).Draw(t, "delay"))
		*stage = at
	}
	if reached >= 4 {
		o.CachedTokens, o.Preemptions = rapid.Int64Range(0, o.InputTokens-1).Draw(t, "cached"),
			rapid.Int64Range(0, 2).Draw(t, "preemptions")
	}
	if reached < len(stages) {
		o.State = rapid.SampledFrom([]string{stream.StateRejected, stream.StateTimedOut, stream.StateFailed,
			stream.StateUnfinished}).Draw(t, "state")
	}
	return o
})

// anySessionOutcome generates sessions of which only the calls that were not issued
// matter.
var anySessionOutcome = rapid.Custom(func(t *rapid.T) stream.SessionOutcome {
	o := stream.SessionOutcome{ID: "s", State: rapid.SampledFrom([]string{stream.StateCompleted, stream.StateBroken,
		stream.StateUnfinished}).Draw(t, "state"),
		SLOClass: rapid.SampledFrom([]string{"", "critical", "batch"}).Draw(t, "class"),
		Tenant:   rapid.SampledFrom([]string{"", "t1", "t9"}).Draw(t, "tenant"),
		Offered:  rapid.Int64Range(1, 9).Draw(t, "offered")}
	o.Calls = o.Offered + rapid.Int64Range(0, 9).Draw(t, "calls")
	return o
})

// approximately lets TPOT, whose values and sums are rounded, differ from exact
// arithmetic in the last digits.
var approximately = cmpopts.EquateApprox(1e-13, 0)

func TestRawMatchesSlowDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(anyOutcome, 1, 150).Draw(t, "outcomes")
		sessions := rapid.SliceOfN(anySessionOutcome, 0, 9).Draw(t, "sessions")
		a := New(testClasses)
		for i := range sessions {
			a.AddNotIssued(&sessions[i])
		}
		first, last := all[0].ArrivalUS, all[0].ArrivalUS
		for i := range all {
			a.Add(&all[i])
			o := &all[i]
			first = min(first, o.ArrivalUS)
			last = max(last, o.ArrivalUS, o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.CompletedUS)
		}
		raw := a.Raw()
		if raw.FromUS != first || raw.UntilUS != last || raw.DurationS != float64(last-first)/1e6 {
			t.Fatalf("run from %d until %d, %v s; want %d, %d", raw.FromUS, raw.UntilUS, raw.DurationS, first, last)
		}
		seconds := big.NewRat(int64(last-first), 1_000_000)
		compare := func(name string, got *Group, keep func(*stream.Outcome) bool) {
			t.Helper()
			want := slowGroup(all, sessions, testClasses, seconds, keep)
			if diff := cmp.Diff(want, got, approximately); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", name, diff)
			}
			// Distributions of integers are exact.
			for _, d := range [][2]*Distribution{{want.TTFT, got.TTFT}, {want.E2E, got.E2E}, {want.Queue, got.Queue}} {
				if diff := cmp.Diff(d[0], d[1]); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", name, diff)
				}
			}
		}
		compare("all", &raw.Group, func(*stream.Outcome) bool { return true })
		compareGroups := func(name string, groups map[string]*Group, of func(*stream.Outcome) string) {
			seen := map[string]bool{}
			for i := range all {
				if of(&all[i]) != "" {
					seen[of(&all[i])] = true
				}
			}
			for _, s := range sessions {
				if g := of(&stream.Outcome{SLOClass: s.SLOClass, Tenant: s.Tenant}); g != "" && s.NotIssued() > 0 {
					seen[g] = true
				}
			}
			if len(seen) != len(groups) {
				t.Fatalf("%s has %d groups, want %d", name, len(groups), len(seen))
			}
			for g := range seen {
				compare(name+" "+g, groups[g], func(o *stream.Outcome) bool { return of(o) == g })
			}
		}
		compareGroups("cls", raw.Cls, func(o *stream.Outcome) string { return o.SLOClass })
		compareGroups("tenants", raw.Tenants, func(o *stream.Outcome) string { return o.Tenant })
		compareGroups("models", raw.Models, func(o *stream.Outcome) string { return o.Model })
	})
}

// The order in which requests end does not change a bit, and JSON loses nothing.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(anyOutcome, 1, 150).Draw(t, "outcomes")
		shuffled := rapid.Permutation(all).Draw(t, "shuffled")
		text := func(outcomes []stream.Outcome) []byte {
			a := New(testClasses)
			for i := range outcomes {
				a.Add(&outcomes[i])
				a.AddGaps(int64(outcomes[i].ArrivalUS), outcomes[i].OutputTokens)
			}
			b, err := json.Marshal(a.Raw())
			if err != nil {
				t.Fatal(err)
			}
			var back Raw
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(a.Raw(), &back); diff != "" {
				t.Fatalf("JSON loses (-before +after):\n%s", diff)
			}
			return b
		}
		if a, b := text(all), text(shuffled); string(a) != string(b) {
			t.Fatalf("in order:  %s\nshuffled: %s", a, b)
		}
	})
}

// An unfinished request has missed a target if it is exceeded already, not otherwise.
func TestMissedByNow(t *testing.T) {
	waits := stream.Outcome{ArrivalUS: 1000, FirstTokenUS: stream.Never, CompletedUS: stream.Never, OutputTokens: 10}
	runs := waits
	runs.FirstTokenUS = 1300 // TTFT 0.3 ms; at 2200 TPOT is 100 µs at least
	for _, c := range []struct {
		o    stream.Outcome
		t    stream.Targets
		want bool
	}{
		{waits, stream.Targets{TTFTMS: 1.2}, false},
		{waits, stream.Targets{TTFTMS: 1.199}, true},
		{waits, stream.Targets{E2EMS: 1.2, TPOTMS: 0.001}, false},
		{waits, stream.Targets{E2EMS: 1.199}, true},
		{waits, stream.Targets{}, false},
		{runs, stream.Targets{TTFTMS: 0.3, TPOTMS: 0.1, E2EMS: 1.2}, false},
		{runs, stream.Targets{TTFTMS: 0.299}, true},
		{runs, stream.Targets{TPOTMS: 0.099}, true},
		{runs, stream.Targets{E2EMS: 1.1}, true},
	} {
		if got := MissedByNow(&c.o, c.t, 2200); got != c.want {
			t.Errorf("%+v, first token at %d: %v", c.t, c.o.FirstTokenUS, got)
		}
	}
}

func TestSLOMet(t *testing.T) {
	// TTFT 0.3 ms, TPOT (1200 - 300) / 9 = 100 µs, E2E 1.2 ms.
	done := stream.Outcome{State: stream.StateCompleted, ArrivalUS: 1000, FirstTokenUS: 1300, CompletedUS: 2200,
		OutputTokens: 10}
	single := done
	single.OutputTokens = 1
	rejected := stream.Outcome{State: stream.StateRejected, ArrivalUS: 1000, FirstTokenUS: stream.Never,
		CompletedUS: stream.Never, EndedUS: stream.Never}
	late := done
	late.State, late.CompletedUS = stream.StateTimedOut, stream.Never
	for _, c := range []struct {
		name    string
		o       stream.Outcome
		targets stream.Targets
		want    string
	}{
		{"no targets", done, stream.Targets{}, "nil"},
		{"equal meets", done, stream.Targets{TTFTMS: 0.3, TPOTMS: 0.1, E2EMS: 1.2}, "true"},
		{"ttft", done, stream.Targets{TTFTMS: 0.299}, "false"},
		{"tpot", done, stream.Targets{TTFTMS: 1, TPOTMS: 0.0999}, "false"},
		{"e2e", done, stream.Targets{E2EMS: 1.199}, "false"},
		{"one token has no tpot", single, stream.Targets{TPOTMS: 0.001}, "true"},
		{"rejected", rejected, stream.Targets{TTFTMS: 1000}, "false"},
		{"first token in time, then timed out", late, stream.Targets{TTFTMS: 1000}, "false"},
	} {
		got := "nil"
		if met := SLOMet(&c.o, c.targets); met != nil {
			got = fmt.Sprint(*met)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestEmptyRun(t *testing.T) {
	text, err := json.Marshal(New(testClasses).Raw())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"duration_s":0,"requests":{"offered":0,"admitted":0,"completed":0,` +
		`"rejected":0,"timed_out":0,"failed":0,"unfinished":0,"not_issued":0},"kv":{"preemptions":0}}`
	if string(text) != want {
		t.Errorf("the metrics of an empty run are %s", text)
	}
}

// TestUnrecordedFieldsAreMissing: a field that no outcome of a recording has is missing
// in all groups; a field that one outcome has is reported as for a run.
func TestUnrecordedFieldsAreMissing(t *testing.T) {
	plain := stream.Outcome{ID: "r", State: stream.StateCompleted, SLOClass: "c", ArrivalUS: 0,
		AdmittedUS: stream.Never, RoutedUS: stream.Never,
		EnqueuedUS: 1, ScheduledUS: 2, FirstTokenUS: 4, CompletedUS: 9, EndedUS: stream.Never, InputTokens: 5,
		OutputTokens: 2}
	full := plain
	full.AdmittedUS, full.CachedTokens, full.Preemptions = 0, 5, 3
	for _, c := range []struct {
		outcomes []stream.Outcome
		want     string
	}{
		{[]stream.Outcome{plain, plain}, `null null null null null`},
		{[]stream.Outcome{plain, full}, `1 0.5 0.5 3 1.5`},
	} {
		a := New(nil)
		a.MarkRecording()
		for i := range c.outcomes {
			a.Add(&c.outcomes[i])
		}
		raw := a.Raw()
		for _, g := range []*Group{&raw.Group, raw.Cls["c"]} {
			var got []string
			for _, x := range []any{g.Requests.Admitted, g.AdmissionRate, g.KV.PrefixHitRatio, g.KV.Preemptions,
				g.PreemptionRate} {
				text, err := json.Marshal(x)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(text))
			}
			if is := strings.Join(got, " "); is != c.want {
				t.Errorf("admitted, rate, cached, preemptions, rate are %s, want %s", is, c.want)
			}
		}
	}
}

func TestExtendTo(t *testing.T) {
	a := New(nil)
	o := stream.Outcome{State: stream.StateTimedOut, ArrivalUS: 1_000_000, AdmittedUS: stream.Never,
		RoutedUS:   stream.Never,
		EnqueuedUS: stream.Never, ScheduledUS: stream.Never, FirstTokenUS: stream.Never, CompletedUS: stream.Never,
		EndedUS: stream.Never, OutputTokens: 1}
	a.Add(&o)
	if raw := a.Raw(); raw.DurationS != 0 || raw.Throughput != nil {
		t.Errorf("duration %v s, throughput %v", raw.DurationS, raw.Throughput)
	}
	a.ExtendTo(5_000_000)
	a.ExtendTo(3_000_000)
	if raw := a.Raw(); raw.DurationS != 4 || raw.UntilUS != 5_000_000 || raw.Throughput == nil ||
		raw.Throughput.RPS != 0 {
		t.Errorf("%+v", raw)
	}
}

func TestReplicas(t *testing.T) {
	a := New(nil)
	a.AddReplica(ReplicaTotals{Deployment: "main", Index: 0, GPUs: 2, Requests: 5, Completed: 4, PrefillTokens: 300,
		DecodeTokens:  100,
		QueriedTokens: 400, CachedTokens: 100, Preemptions: 1, PeakQueue: 3, PeakBatch: 2, BlockUS: 30_000_000,
		PeakBlocks: 40,
		Blocks:     50, UpUS: 2_000_000, BusyUS: 500_000})
	a.AddReplica(ReplicaTotals{Deployment: "main", Index: 1, GPUs: 2, Blocks: 50, UpUS: 1_000_000})
	raw := a.Raw()
	// 3 replica seconds on 2 GPUs each; 30 of 50·(2 + 1) block seconds; at most 40 of 50.
	if !cmp.Equal(*raw.Cost, Cost{GPUS: 6, ReplicaS: 3}) || *raw.KV.UtilMean != 0.2 || *raw.KV.UtilMax != 0.8 {
		t.Errorf("cost %+v, util mean %v, max %v", *raw.Cost, *raw.KV.UtilMean, *raw.KV.UtilMax)
	}
	quarter, share, peak := 0.25, 0.3, 0.8
	want := Replica{Deployment: "main", Requests: 5, Completed: 4, Tokens: 400, PrefillTokens: 300, DecodeTokens: 100,
		PrefixHitRatio: &quarter, Preemptions: 1, PeakQueue: 3, PeakBatch: 2, Utilization: &quarter, KVUtilMean: &share,
		KVUtilMax: &peak}
	if diff := cmp.Diff(want, raw.Replicas[0]); diff != "" {
		t.Errorf("replica 0 (-want +got):\n%s", diff)
	}
	if r := raw.Replicas[1]; r.PrefixHitRatio != nil || *r.Utilization != 0 {
		t.Errorf("replica 1: %+v", r)
	}
}

func TestFairness(t *testing.T) {
	a := New(nil)
	add := func(tenant, state string, output int64) {
		o := stream.Outcome{State: state, Tenant: tenant, OutputTokens: output, InputTokens: 1,
			CompletedUS: stream.Never, EndedUS: stream.Never, FirstTokenUS: stream.Never}
		a.Add(&o)
	}
	add("", stream.StateRejected, 1000) // without a tenant
	if a.Raw().Fairness != nil {
		t.Error("a run without tenants has a fairness index")
	}
	add("a", stream.StateCompleted, 30)
	add("b", stream.StateCompleted, 10)
	add("b", stream.StateTimedOut, 10)
	// Shares 1 and 1/2: 1.5² / (2 · 1.25).
	if f := a.Raw().Fairness; f == nil || f.Jain != 0.9 {
		t.Errorf("fairness %+v, want 0.9", f)
	}
}

func TestGaps(t *testing.T) {
	a := New(nil)
	a.AddGaps(10_000, 98)
	a.AddGaps(20_000, 1)
	a.AddGaps(2_000_000, 1)
	// p99 is at position 98.01: 1 % of the way from 20 to 2000 ms.
	a.Add(&stream.Outcome{ID: "a", State: stream.StateCompleted, OutputTokens: 101, ScheduledUS: stream.Never,
		FirstTokenUS: stream.Never})
	a.Add(&stream.Outcome{ID: "b", State: stream.StateRejected, OutputTokens: 26, ScheduledUS: stream.Never,
		FirstTokenUS: stream.Never})
	a.AddNotIssued(&stream.SessionOutcome{State: stream.StateBroken, Calls: 5, Offered: 3})
	// 100 of 125 requested gaps, and two of four calls: 0.8 · 0.5.
	covered := 0.4
	want := &Distribution{Count: 100, Mean: 30, P50: 10, P90: 10, P95: 10, P99: 39.8, Max: 2000, Coverage: &covered}
	if diff := cmp.Diff(want, a.Raw().ITL); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	warningsOf := func(n int) []string {
		a := New(nil)
		for range n {
			o := stream.Outcome{State: stream.StateCompleted, SLOClass: "c", InputTokens: 1, OutputTokens: 1}
			a.Add(&o)
		}
		return a.Raw().Warnings
	}
	want := []string{
		"ttft: 150 samples are too few for p95 (needs 200), p99 (needs 1000)",
		"e2e: 150 samples are too few for p95 (needs 200), p99 (needs 1000)",
		"queue: 150 samples are too few for p95 (needs 200), p99 (needs 1000)",
		"cls: 1 of 1 groups have percentiles of too few samples (p99 needs 1000; minimum 150: ttft of c)",
	}
	if diff := cmp.Diff(want, warningsOf(150)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w := warningsOf(1000); w != nil {
		t.Errorf("1000 samples: %q", w)
	}
	if w := warningsOf(999); len(w) != 4 || strings.Contains(w[0], "p95") {
		t.Errorf("999 samples: %q", w)
	}
}

func TestDeploymentWarnings(t *testing.T) {
	r := &Raw{Warnings: []string{"deployment a: x", "ttft: of deployment b", "deployment c: y"}}
	if diff := cmp.Diff([]string{"deployment a: x", "deployment c: y"}, r.DeploymentWarnings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// manyRequests returns n requests of many tenants.
func manyRequests(n int) []stream.Outcome {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]stream.Outcome, n)
	for i := range all {
		at := stream.Micros(i * 1000)
		first := at + 20_000 + stream.Micros(r.IntN(400_000))
		output := 1 + r.Int64N(500)
		all[i] = stream.Outcome{State: stream.StateCompleted, ArrivalUS: at, AdmittedUS: at, RoutedUS: at,
			EnqueuedUS:  at + 2000,
			ScheduledUS: at + 2000 + stream.Micros(r.IntN(9000)), FirstTokenUS: first, CompletedUS: first +
				stream.Micros(output*(12_000+r.Int64N(5000))),
			SLOClass: "standard", Tenant: fmt.Sprintf("tenant-%02d", r.IntN(40)),
			Model:       "meta-llama/Llama-3.1-8B-Instruct",
			EncodedUS:   stream.Never,
			InputTokens: 1 + r.Int64N(2000), OutputTokens: output}
	}
	return all
}

func TestAddDoesNotAllocate(t *testing.T) {
	requests := manyRequests(1000)
	a := New(testClasses)
	add := func() {
		for i := range requests {
			a.Add(&requests[i])
		}
		a.AddGaps(12_000, 200)
		a.AddGaps(1_000_000, 1)
	}
	add()
	// One chunk per 4096 requests, nothing else.
	if n := testing.AllocsPerRun(100, add); n > 1 {
		t.Errorf("1000 requests allocate %v times", n)
	}
}

func TestMemoryPerRequest(t *testing.T) {
	if size := unsafe.Sizeof(row{}); size > 40 {
		t.Errorf("a row has %d bytes", size)
	}
	all := manyRequests(1000)
	a := New(testClasses)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	const requests = 200_000
	for range requests / len(all) {
		for i := range all {
			a.Add(&all[i])
		}
	}
	if grown := int64(heap()) - int64(before); grown > 40*requests {
		t.Errorf("%d requests keep %d bytes, %d per request", requests, grown, grown/requests)
	}
	runtime.KeepAlive(a)
}

// Stored values do not refer to memory of the caller.
func TestAddCopies(t *testing.T) {
	name := []byte("gold")
	o := stream.Outcome{State: stream.StateCompleted, SLOClass: unsafe.String(&name[0], len(name)), InputTokens: 1,
		OutputTokens: 1}
	a := New(nil)
	a.Add(&o)
	copy(name, "lead")
	if raw := a.Raw(); raw.Cls["gold"] == nil {
		t.Errorf("classes %v", slices.Collect(func(yield func(string) bool) {
			for n := range raw.Cls {
				yield(n)
			}
		}))
	}
}

func BenchmarkAdd(b *testing.B) {
	all := manyRequests(100_000)
	a := New(testClasses)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%(10*len(all)) == 0 {
			a = New(testClasses)
		}
		a.Add(&all[i%len(all)])
	}
}

func BenchmarkGap(b *testing.B) {
	a := New(nil)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		a.AddGaps(12_000+i&1023, 17)
	}
}

func BenchmarkRaw(b *testing.B) {
	all := manyRequests(1_000_000)
	a := New(testClasses)
	for i := range all {
		a.Add(&all[i])
	}
	for b.Loop() {
		a.Raw()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)), "ns/request")
}

// TestReasons: requests that did not complete are counted by reason.
func TestReasons(t *testing.T) {
	a := New(nil)
	for _, reason := range []string{"", "deadline", "too_long_for_model", "deadline"} {
		o := stream.Outcome{ID: "r", State: stream.StateTimedOut, Reason: reason}
		if reason == "" {
			o.State = stream.StateCompleted
		}
		a.Add(&o)
	}
	r := a.Raw()
	if want := map[string]int64{"deadline": 2, "too_long_for_model": 1}; !cmp.Equal(r.Reasons, want) {
		t.Errorf("reasons %v, want %v", r.Reasons, want)
	}
}
