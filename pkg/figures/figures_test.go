package figures

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// same reports a difference from what is wanted.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, wanted (-) and found (+):\n%s", what, diff)
	}
}

// values are the numbers of a row, -1 where there is none.
func values(row []*float64) (all []float64) {
	for _, x := range row {
		if x == nil {
			all = append(all, -1)
		} else {
			all = append(all, *x)
		}
	}
	return all
}

// TestBinWidths: there are at most 160 bins.
func TestBinWidths(t *testing.T) {
	for until, want := range map[stream.Micros]stream.Micros{1: 15_625, 2_500_000: 15_625, 2_500_001: 31_250,
		5_000_000: 31_250, 5_000_001: 62_500, 160_000_000: 1_000_000} {
		if got := binWidth(until); got != want {
			t.Errorf("until %d: %d, want %d", until, got, want)
		}
	}
}

// TestIntegralWidens from the first time on that needs more than 160 bins.
func TestIntegralWidens(t *testing.T) {
	for to, want := range map[stream.Micros]stream.Micros{2_500_000: 15_625, 2_500_001: 31_250} {
		var x integral
		if x.add(to-1, to, 1); x.width != want {
			t.Errorf("up to %d: %d, want %d", to, x.width, want)
		}
	}
}

// TestIntegral compares means of bins with sums over each 125 µs.
func TestIntegral(t *testing.T) {
	const grain = 125
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var x integral
		last := 1 + random.IntN(60_000) // in grains
		sum, covered := make([]float64, last), make([]float64, last)
		for range 30 {
			from := random.IntN(last)
			to, value := from+random.IntN(last-from+1), float64(random.IntN(9))
			x.add(stream.Micros(from*grain), stream.Micros(to*grain), value)
			for i := from; i < to; i++ {
				sum[i], covered[i] = sum[i]+value, covered[i]+1
			}
		}
		until := stream.Micros(last * grain)
		width := binWidth(until)
		perBin, means := x.perBin(width, until), x.means(width, until)
		for i := range perBin {
			a, n := 0.0, 0.0
			first := i * int(width) / grain
			end := min(last, first+int(width)/grain)
			for k := first; k < end; k++ {
				a, n = a+sum[k], n+covered[k]
			}
			if want := a / float64(end-first); perBin[i] < want-1e-9 || perBin[i] > want+1e-9 {
				t.Fatalf("bin %d of %d: %g, want %g", i, len(perBin), perBin[i], want)
			}
			if (means[i] != nil) != (n > 0) || n > 0 && (*means[i] < a/n-1e-9 || *means[i] > a/n+1e-9) {
				t.Fatalf("bin %d of %d: mean of %g over %g", i, len(means), a, n)
			}
		}
	}
}

// TestQuantiles are linear between neighbors, and their list is denser at the end.
func TestQuantiles(t *testing.T) {
	sorted := []float64{10, 20, 40}
	for p, want := range map[int64]float64{0: 10, 250: 15, 500: 20, 750: 30, 990: 39.6, 1000: 40} {
		if got := quantileAt(sorted, p); got < want-1e-12 || got > want+1e-12 {
			t.Errorf("%d thousandths: %g, want %g", p, got, want)
		}
	}
	same(t, "quantiles", []int64{int64(len(Permilles)), Permilles[0], Permilles[1], Permilles[97], Permilles[98],
		Permilles[99], Permilles[118]}, []int64{119, 0, 10, 970, 980, 981, 1000})
	d := describe("ttft", "chat", []float64{1, 2, 3.00049})
	same(t, "distribution", []any{d.Latency, d.Class, d.Count, d.MS[0], d.MS[50], d.MS[118]},
		[]any{"ttft", "chat", int64(3), 1.0, 2.0, 3.0})
}

// TestHeat: a request is in the bin whose lower edge is at most its latency; bins that no request needs at the ends are
// left out.
func TestHeat(t *testing.T) {
	points := []point{{0, 1.25}, {31_249, 1.3}, {31_250, 2.4}, {40_000, 2.5}, {62_499, 1.9}}
	h := heatOf("e2e", points, 62_500, 1)
	same(t, "heat map", h, heat{"e2e", 0.03125, []float64{1.25, 1.6, 2, 2.5, 3.2},
		[][3]int{{0, 0, 2}, {1, 1, 1}, {1, 2, 1}, {1, 3, 1}}})
	h = heatOf("e2e", points, 62_500, manyRuns)
	same(t, "heat map of many runs", h, heat{"e2e", 0.0625, []float64{1.25, 1.6, 2, 2.5, 3.2},
		[][3]int{{0, 0, 2}, {0, 1, 1}, {0, 2, 1}, {0, 3, 1}}})
	if h = heatOf("e2e", points, 62_500, manyRuns-1); h.WidthS != 0.03125 {
		t.Errorf("with few runs bins are %g s wide", h.WidthS)
	}
	same(t, "short latencies", heatOf("queue", []point{{0, 0}, {0, 0.09}, {0, 0.1}}, 10, 1), heat{"queue", 0.03125,
		[]float64{0, 0.1, 0.125}, [][3]int{{0, 0, 2}, {0, 1, 1}}})
}

// outcome is a request without any time but its arrival, in ms.
func outcome(id, state string, at stream.Micros) stream.Outcome {
	const never = stream.Never
	return stream.Outcome{ID: id, State: state, ArrivalUS: 1000 * at, AdmittedUS: never, RoutedUS: never,
		EnqueuedUS: never, ScheduledUS: never, FirstTokenUS: never, CompletedUS: never, EndedUS: never,
		PrefillEnqueuedUS: never, PrefillScheduledUS: never, PrefilledUS: never,
		TransferStartedUS: never, TransferredUS: never, Replica: stream.NoIndex, PrefillReplica: stream.NoIndex}
}

// served is a request that completes: it arrives at a time in ms, is scheduled, and gets its first and its last token.
func served(id, class string, replica stream.Index, at, scheduled, first, last stream.Micros) stream.Outcome {
	o := outcome(id, stream.StateCompleted, at)
	o.SLOClass, o.Deployment, o.Replica, o.OutputTokens, o.GeneratedTokens = class, "main", replica, 5, 5
	o.AdmittedUS, o.RoutedUS, o.EnqueuedUS = 1000*at, 1000*at, 1000*at
	o.ScheduledUS, o.FirstTokenUS, o.CompletedUS = 1000*scheduled, 1000*first, 1000*last
	return o
}

// small has two requests that are served and one that is rejected, over 62.5 ms: four bins of time.
func small() *Collector {
	c := NewCollector(&stream.Header{SLOClasses: []stream.SLOClass{
		{Name: "unused", Targets: stream.Targets{TTFTMS: 1}},
		{Name: "chat", Targets: stream.Targets{TTFTMS: 22, E2EMS: 100}}}})
	yes, no := true, false
	a, b := served("a", "chat", 0, 0, 10, 20, 40), served("b", "batch", 1, 5, 20, 30, 62)
	b.CompletedUS = 62_500
	r := outcome("r", stream.StateRejected, 20)
	c.Outcome(&a, &yes)
	c.Outcome(&b, &no)
	c.Outcome(&r, nil)
	return c
}

// TestSeriesOfSmallRun: bins are 15.625 ms wide. The first one has 10 + 10.625 ms of waiting, the second one 4.375, and
// so on.
func TestSeriesOfSmallRun(t *testing.T) {
	f := small().Run("run", 1)
	same(t, "classes", f.Classes, []targets{{Name: "chat", TTFTMS: 22, E2EMS: 100}, {Name: "batch"}})
	x := f.Time
	same(t, "counts", [][]int{x.Arrived, x.Completed, x.Missed}, [][]int{{2, 1, 0, 0}, {0, 0, 1, 1}, {1, 0, 0, 0}})
	same(t, "waiting", x.Waiting, []float64{1.32, 0.28, 0, 0})
	same(t, "running", x.Running, []float64{0.36, 1.72, 1.56, 1})
	for i, want := range []struct {
		latency  string
		p50, p99 float64
	}{{"ttft", 22.5, 24.95}, {"tpot", 6.563, 8.094}, {"e2e", 48.75, 57.325}, {"queue", 12.5, 14.95}} {
		p := x.Percentiles[i]
		same(t, want.latency, []any{p.Latency, values(p.P50), values(p.P99)},
			[]any{want.latency, []float64{want.p50, -1, -1, -1}, []float64{want.p99, -1, -1, -1}})
	}
	if x.WidthS != 0.015625 || f.UntilS != 0.0625 || f.Measured {
		t.Errorf("bins of %g s until %g, measured %v", x.WidthS, f.UntilS, f.Measured)
	}
	r := f.Replicas
	same(t, "replicas", r, replicaSeries{WidthS: 0.03125, Names: []string{"main/0", "main/1"}, KVShare: true, Of: 2,
		Waiting: [][]float64{{0.32, 0}, {0.48, 0}}, Running: [][]float64{{0.68, 0.28}, {0.36, 1}}})
	if len(f.Distributions) != 4*3 || f.Distributions[0].Count != 2 || f.Distributions[1].Class != "chat" ||
		f.Distributions[2].Class != "batch" || f.Distributions[2].MS[0] != 25 {
		t.Errorf("distributions %+v", f.Distributions)
	}
	same(t, "heat", f.Heat[0].Cells, [][3]int{{0, 0, 1}, {0, 1, 1}})
}

// TestSeriesOfOneClass: requests need not come in the order of their latencies. One class has no distribution of its
// own, and latencies that no request has are left out.
func TestSeriesOfOneClass(t *testing.T) {
	c := NewCollector(&stream.Header{})
	for i, ttft := range []stream.Micros{30, 10, 20} {
		o := served(fmt.Sprint(i), "chat", 0, 0, 5, ttft, 40)
		o.OutputTokens = 1
		c.Outcome(&o, nil)
	}
	f := c.Run("run", 1)
	p := f.Time.Percentiles
	if len(p) != 3 || p[1].Latency != "e2e" {
		t.Fatalf("percentiles %+v", p)
	}
	same(t, "percentiles", []float64{*p[0].P50[0], *p[0].P99[0]}, []float64{20, 29.8})
	if len(f.Distributions) != 3 || f.Distributions[0].MS[0] != 10 || f.Distributions[0].MS[118] != 30 {
		t.Errorf("distributions %+v", f.Distributions)
	}
}

// TestRecordsOfARun: steps give the KV blocks of replicas, decisions and regrets the details of the slowest requests.
func TestRecordsOfARun(t *testing.T) {
	var text bytes.Buffer
	w := stream.NewWriter(&text, true)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(w.Header(&stream.Header{Stream: stream.StreamRun, Tool: "blis-sim", Version: "1"}))
	for i := range stream.Micros(2) {
		do(w.Step(&stream.Step{Deployment: "main", StartUS: 20_000 * i, EndUS: 20_000*i + 10_000,
			UsedBlocks: int64(100 * (i + 1))}))
	}
	c := stream.NewCandidate("main", 1)
	c.KVUtil, c.Score, c.Inflight, c.Terms = 0.5, 1.23456789, 3, []float64{0.12345}
	other := stream.NewCandidate("main", 0)
	prefill := stream.NewCandidate("main.prefill", 2)
	prefill.KVUtil = 0.75
	do(w.Decision(&stream.Decision{ID: "dec-000002", Stage: stream.StagePrefillRouting, Request: "b", AtUS: 5_000,
		Deployment: "main.prefill", Replica: 2, Candidates: 1, Considered: []stream.Candidate{prefill}}))
	do(w.Decision(&stream.Decision{ID: "dec-000001", Stage: stream.StageRouting, Request: "b", AtUS: 5_000,
		Deployment: "main", Replica: 1, Candidates: 2, Rule: "root", Scorers: []string{"queue"},
		Considered: []stream.Candidate{c, other}}))
	x, y, z := 40.0, 30.0, 55.0
	do(w.Regret(&stream.Regret{Decision: "dec-000001", Request: "b", Stage: stream.StageRouting,
		Method: stream.MethodEstimated, HindsightMS: &x, AvoidableMS: &y, Alternatives: []stream.Alternative{
			{Deployment: "main", Replica: 0, E2EMS: &z, TTFTMS: &y}, {Deployment: "main", Replica: 2, E2EMS: &x}}}))
	for _, x := range []stream.SessionOutcome{{ID: "s1", State: stream.StateBroken, Step: "x", Calls: 5, Offered: 2},
		{ID: "s2", State: stream.StateBroken, Step: "x", Calls: 2, Offered: 2}, {ID: "s3", State: stream.StateCompleted,
			Calls: 5, Offered: 5}} {
		if x.Kind = stream.KindSessionOutcome; x.State == stream.StateBroken {
			x.CompletedUS = stream.Never
		}
		do(w.Any(&x))
	}
	do(w.End(&stream.End{}))
	do(w.Close())
	r := stream.NewReader(&text)
	k := small()
	for r.Next() {
		do(k.Record(r))
	}
	do(r.Err())
	seen := k.signals[k.replica("main.prefill", 2)]
	same(t, "KV use that the choice of a prefill replica saw", seen != nil, true)
	same(t, "calls that were not issued", k.notIssued, map[string]int32{"s1/x": 3})
	no := false
	b := served("b", "batch", 1, 5, 20, 30, 300)
	k.Outcome(&b, &no)
	f := k.Run("run", 1)
	// The run ends at 300 ms, so that there are 10 bins of 31.25 ms. Steps are from 0 to 10 and from 20 to 30 ms.
	same(t, "KV blocks", []any{f.Replicas.KVShare, values(f.Replicas.KV[0])[:2], values(f.Replicas.KV[1])[0]},
		[]any{false, []float64{150, -1}, -1.0})
	if len(f.Worst) != 4 || f.Worst[0].ID != "b" || f.Worst[1].SpentMS != 57.5 || f.Worst[2].ID != "a" ||
		len(f.Regrets) != 1 {
		t.Fatalf("worst %+v, regrets %+v", f.Worst, f.Regrets)
	}
	q := f.Worst[0]
	same(t, "parts", q.Parts, []part{{"queue", 0, 15}, {"prefill", 15, 25}, {"decode", 25, 295}})
	inflight, score, kv := int64(3), 1.2345679, 0.5
	same(t, "choice", *q.Choice, choice{Decision: "dec-000001", AtMS: 5, Replica: "main/1", Rule: "root", Of: 2,
		Scorers: []string{"queue"}, HindsightMS: &x, AvoidableMS: &y, Method: stream.MethodEstimated,
		Candidates: []candidate{{Replica: "main/1", Chosen: true, Score: &score, Terms: []float64{0.123},
			Inflight: &inflight, KV: &kv}, {Replica: "main/0", E2EMS: &z, TTFTMS: &y, Inflight: new(int64)},
			{Replica: "main/2", E2EMS: &x}}})
	k.steps = false
	s := k.replicaSeries(300_000, 15_625)
	same(t, "KV share that routing saw", []any{s.KVShare, values(s.KV[0])[0], values(s.KV[1])[:2]},
		[]any{true, -1.0, []float64{0.5, -1}})
}

// A run without steps ends 1 µs after its last arrival, so that each arrival is within it.
func TestRunEndsAfterItsLastArrival(t *testing.T) {
	c := NewCollector(&stream.Header{})
	c.Outcome(&stream.Outcome{ID: "a", State: stream.StateUnfinished, ArrivalUS: 2_000_000, AdmittedUS: stream.Never,
		RoutedUS: stream.Never, EnqueuedUS: stream.Never, ScheduledUS: stream.Never, FirstTokenUS: stream.Never,
		CompletedUS: stream.Never, EndedUS: stream.Never}, nil)
	if until := c.Run("run", 1).UntilS; until != 2.000001 {
		t.Errorf("it ends at %v s", until)
	}
}

// TestNotIssuedCalls are those of the request that broke their session.
func TestNotIssuedCalls(t *testing.T) {
	c := small()
	c.notIssued["r"] = 3
	rows := c.Rows()
	same(t, "not issued", []int32{rows[0].NotIssued, rows[1].NotIssued, rows[2].NotIssued}, []int32{0, 0, 3})
}

// TestPartsOfARequest: each part ends at a time of the outcome; those that took no time are left out.
func TestPartsOfARequest(t *testing.T) {
	o := served("a", "chat", 0, 10, 30, 40, 60)
	o.RetryUS, o.RoutedUS, o.EnqueuedUS = 10_000, 12_000, 15_000
	same(t, "one replica", partsOf(&o), []part{{"retries", 0, 10}, {"admission and routing", 10, 12},
		{"frontend", 12, 15}, {"queue", 15, 30}, {"prefill", 30, 40}, {"decode", 40, 60}})
	o.RetryUS, o.PrefillEnqueuedUS, o.PrefillScheduledUS, o.PrefilledUS = 0, 13_000, 15_000, 20_000
	o.EnqueuedUS, o.TransferStartedUS, o.TransferredUS = 21_000, 22_000, 24_000
	same(t, "two replicas", partsOf(&o), []part{{"admission and routing", 0, 2}, {"frontend", 2, 3}, {"queue", 3, 5},
		{"prefill", 5, 10}, {"transfer wait", 10, 12}, {"transfer", 12, 14}, {"transfer wait", 14, 20},
		{"prefill", 20, 30}, {"decode", 30, 50}})
	q := outcome("q", stream.StateTimedOut, 10)
	q.EnqueuedUS, q.EndedUS = 11_000, 50_000
	same(t, "timed out in the queue", partsOf(&q), []part{{"frontend", 0, 1}, {"queue", 1, 40}})
	q.ScheduledUS = 20_000
	same(t, "timed out in prefill", partsOf(&q), []part{{"frontend", 0, 1}, {"queue", 1, 10}, {"prefill", 10, 40}})
}

// TestStaysOfAttempts: an attempt that is retried only counts as time on replicas, and one with a prefill replica has
// two stays.
func TestStaysOfAttempts(t *testing.T) {
	c := NewCollector(&stream.Header{})
	a := served("a", "", 0, 0, 10, 20, 40)
	a.Retried = true
	c.Outcome(&a, nil)
	b := served("b", "", 1, 0, 30, 40, 60)
	b.PrefillReplica, b.PrefillEnqueuedUS, b.PrefillScheduledUS, b.PrefilledUS = 2, 1_000, 2_000, 5_000
	c.Outcome(&b, nil)
	rows := c.Rows()
	if rows[0].State != 0 || rows[0].TTFT >= 0 || rows[1].State == 0 {
		t.Errorf("%+v", rows)
	}
	same(t, "replicas", c.replicas, []string{"main/0", "main.prefill/2", "main/1"})
	var sums [][2]float64
	for i := range c.loads {
		sums = append(sums, [2]float64{total(&c.loads[i].waiting), total(&c.loads[i].running)})
	}
	same(t, "waiting and running", sums, [][2]float64{{10_000, 30_000}, {1_000, 3_000}, {30_000, 30_000}})
	f := c.Run("run", 1)
	same(t, "counts", [][]int{f.Time.Arrived, f.Time.Completed}, [][]int{{1, 0, 0, 0}, {0, 0, 0, 1}})
	same(t, "names", f.Replicas.Names, []string{"main/0", "main/1", "main.prefill/2"})
}

// total is the sum of an integral.
func total(x *integral) (sum float64) {
	for _, part := range x.sum {
		sum += part
	}
	return sum
}

// TestRecordingWithoutQueues has one server, and no numbers of waiting requests.
func TestRecordingWithoutQueues(t *testing.T) {
	c := NewCollector(&stream.Header{Recording: &stream.RecordingHeader{}})
	o := outcome("a", stream.StateCompleted, 0)
	o.FirstTokenUS, o.CompletedUS = 10_000, 15_625
	c.Outcome(&o, nil)
	f := c.Run("run", 1)
	if !f.Measured || f.Time.Waiting != nil || f.Replicas.Waiting != nil {
		t.Errorf("%+v", f)
	}
	same(t, "running", []any{f.Time.Running, f.Replicas.Names}, []any{[]float64{1}, []string{"server"}})
	o = outcome("b", stream.StateCompleted, 0)
	o.EnqueuedUS, o.ScheduledUS, o.CompletedUS = 0, 5_000, 15_625
	c.Outcome(&o, nil)
	if f = c.Run("run", 1); f.Time.Waiting == nil || f.Time.Waiting[0] != 0.32 {
		t.Errorf("%+v", f.Time.Waiting)
	}
}

// TestBusiestReplicasHaveRows: those with the longest queues, by name.
func TestBusiestReplicasHaveRows(t *testing.T) {
	c := NewCollector(&stream.Header{})
	for i := range stream.Index(ReplicasShown + 2) {
		o := served(fmt.Sprint(i), "", i, 0, stream.Micros(10+i), 50, 60)
		if i == 3 || i == 7 {
			o.ScheduledUS = 1
		}
		c.Outcome(&o, nil)
	}
	names := c.Run("run", 1).Replicas.Names
	if len(names) != ReplicasShown || names[2] != "main/2" || names[3] != "main/4" || names[5] != "main/6" ||
		names[6] != "main/8" || names[ReplicasShown-1] != "main/33" {
		t.Errorf("%q", names)
	}
}

// TestWorstRequests: those with the largest keys stay, of equal ones the first.
func TestWorstRequests(t *testing.T) {
	w := worstRequests{limit: 3}
	for i, key := range []float64{5, 1, 5, 7, 2, 5} {
		if w.wants(key) {
			w.add(request{key: key, sequence: int64(i)})
		}
	}
	var got []int64
	for _, q := range w.all {
		got = append(got, q.sequence)
	}
	same(t, "order", got, []int64{3, 0, 2})
	c := NewCollector(&stream.Header{})
	for i, regret := range []float64{30, 0, 20, 40} {
		o := outcome(fmt.Sprint(i), stream.StateRejected, 0)
		o.EndedUS = stream.Micros(1000 * (i + 1))
		c.pending[o.ID] = &decided{choice: &choice{HindsightMS: &regret}}
		c.Outcome(&o, nil)
	}
	regrets := c.Run("run", 1).Regrets
	if len(regrets) != 3 || regrets[0].ID != "3" || regrets[1].ID != "0" || regrets[2].ID != "2" ||
		len(c.pending) != 0 {
		t.Errorf("regrets %+v, pending %v", regrets, c.pending)
	}
	c = NewCollector(&stream.Header{})
	for i := range 130 {
		o := outcome(fmt.Sprint(i), stream.StateRejected, 0)
		o.EndedUS = stream.Micros(1000 * (i + 1))
		c.Outcome(&o, nil)
	}
	if all, of4 := c.Run("run", 1).Worst, c.Run("run", 4).Worst; len(all) != worstShown || all[0].SpentMS != 130 ||
		len(of4) != worstOfAll/4 {
		t.Errorf("%d and %d requests, the first with %g ms", len(all), len(of4), all[0].SpentMS)
	}
}
