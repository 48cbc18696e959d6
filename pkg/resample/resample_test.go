package resample

import (
	"math"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// A throughput counts what completes in the time of the blocks in the sample. Four
// requests arrive at 1/s, in four blocks, and take 500, 600, 700 and 800 ms in a, 1500 ms
// in b: there the second completes while the third arrives, the last two after that, and
// the last block lasts 1.5 s. The third block four times: 1/s on both sides; the last:
// 1/0.8 and 2/1.5.
func TestThroughputIsPerSecondOfTheSample(t *testing.T) {
	var runs [2][]*Request
	raws := [2]*metrics.Raw{{UntilUS: 3_800_000}, {UntilUS: 4_500_000}}
	for i := range runs {
		for k := range int64(4) {
			e2e := int64(1_500_000)
			if i == 0 {
				e2e = 500_000 + 100_000*k
			}
			runs[i] = append(runs[i], &Request{Arrival: 1_000_000 * k, TTFT: 2000, E2E: e2e, Output: 3,
				State: Completed})
		}
	}
	for block, want := range map[int][2]float64{2: {1, 1}, 3: {1 / 0.8, 2 / 1.5}} {
		b := New(func(int) int { return block }, runs[0], runs[1])
		for i, durations := range [][]float64{{1, 1, 1, 0.8}, {1, 1, 1, 1.5}} {
			for k, s := range b.blockDurations(int64(raws[i].FromUS), int64(raws[i].UntilUS)) {
				if math.Abs(s-durations[k]) > 1e-9 {
					t.Errorf("run %d: block %d lasts %v s, want %v", i, k, s, durations[k])
				}
			}
			r := b.Run(i, raws[i])
			if got := r.Statistics(Set{r.All(), true})[0]["throughput.rps"][0]; math.Abs(got-want[i]) > 1e-9 {
				t.Errorf("run %d: %v/s in block %d four times, want %v", i, got, block, want[i])
			}
		}
	}
}

// Calls that were not issued count as misses, but not in groups by model.
func TestNotIssuedCallsAreMisses(t *testing.T) {
	run := []*Request{
		{Arrival: 0, TTFT: 5000, E2E: 9000, State: Completed, targets: targetsMet},
		{Arrival: 1, TTFT: Missing, E2E: Missing, State: Rejected, targets: targetsMissed, NotIssued: 2},
	}
	block := 0
	alternate := func(n int) int { block++; return block % n }
	r := New(alternate, run).Run(0, &metrics.Raw{UntilUS: stream.Micros(10_000)})
	for notIssued, want := range map[bool]float64{true: 1.0 / 4, false: 1.0 / 2} {
		values := r.Statistics(Set{r.All(), notIssued})[0]
		for _, path := range []string{"goodput.ratio", "ttft.coverage"} {
			if got := values[path][0]; got != want {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
	}
	if run[1].NotIssued != 2 {
		t.Error("Statistics changed the request")
	}
}

func TestArrivalTiesAreOrderedByNumber(t *testing.T) {
	for _, c := range []struct {
		atX, atY int64
		idX, idY string
		want     int
	}{{1, 2, "b", "a", -1}, {2, 2, "r9", "r10", -1}, {2, 2, "r10", "r11", -1}, {2, 2, "a", "a", 0}} {
		if got := CompareArrivals(c.atX, c.atY, c.idX, c.idY); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
		if got := CompareArrivals(c.atY, c.atX, c.idY, c.idX); got != -c.want {
			t.Errorf("%+v reversed: %d", c, got)
		}
	}
}

// TestGapsOfCompletedRequests: the mean ITL follows from times if all gaps are those of completed requests: two of
// three tokens, none of one token, and none of requests that were rejected or are of another run.
func TestGapsOfCompletedRequests(t *testing.T) {
	run := []*Request{{Output: 3, State: Completed}, {Output: 1, State: Completed}, {Output: 9, State: Rejected}, nil}
	other := []*Request{{}, {}, {}, {Arrival: 7, Output: 5, State: Completed}}
	b := New(func(int) int { return 0 }, run, other)
	for gaps, want := range map[int64]bool{1: false, 2: true, 3: false, 4: false} {
		raw := &metrics.Raw{ITL: &metrics.Distribution{Count: gaps}}
		if got := b.Run(0, raw).allITL; got != want {
			t.Errorf("%d gaps: %v", gaps, got)
		}
	}
	if b.Run(0, &metrics.Raw{}).allITL {
		t.Error("without ITL there are all gaps")
	}
}

// TestBlocksAreOfValuesToo: runs that are equal have no differences, and their times still need long blocks.
func TestBlocksAreOfValuesToo(t *testing.T) {
	var run []*Request
	for i := range int64(1000) {
		run = append(run, &Request{Arrival: 5 + i, TTFT: i, E2E: 3000, State: Completed})
	}
	b := New(func(int) int { return 0 }, run, run)
	if b.LongEnough || b.Blocks() != 10 || b.SpanUS() != 999 {
		t.Errorf("%d blocks, long enough %v, over %d µs", b.Blocks(), b.LongEnough, b.SpanUS())
	}
}

// TestRequestOfOutcome: times that are equal are no time apart, and an unknown state is none.
func TestRequestOfOutcome(t *testing.T) {
	o := &stream.Outcome{State: "lost", ArrivalUS: 5, FirstTokenUS: 5, CompletedUS: 4, AdmittedUS: 5,
		ScheduledUS: stream.Never}
	q := NewRequest(o, nil)
	if q.TTFT != 0 || q.E2E != Missing || q.State != 0 || q.State.String() != "absent" || !q.Admitted || q.Scheduled ||
		q.HasTargets() {
		t.Errorf("%+v", q)
	}
}

// TestOneRequestWithTarget: it alone counts. If none has a target, all do.
func TestOneRequestWithTarget(t *testing.T) {
	run := []*Request{{TTFT: 5000, E2E: 9000, State: Completed}, {Arrival: 1, TTFT: 7000, E2E: 9000, State: Completed}}
	next := -1
	r := New(func(n int) int { next++; return next % n }, run).Run(0, &metrics.Raw{UntilUS: 10_000})
	for promised, want := range map[int32][2]float64{1: {1, 7}, 2: {2, 6}} {
		values := r.Targeted("ttft", r.All(), true, func(i int32) bool { return i == promised })
		n, mean := values["targeted.ttft.count"][0], values["targeted.ttft.mean"][0]
		if n != want[0] || mean != want[1] {
			t.Errorf("request %d has a target: %v requests with a mean of %v, want %v", promised, n, mean, want)
		}
	}
}
