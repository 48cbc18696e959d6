package calibrate

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"blis/pkg/leastsq"
	"blis/pkg/stream"
)

// spanRun is a run of requests that decode from 1 s to 2 s each, with 100 prompt tokens computed
// in the 10 ms before and 11 output tokens.
func spanRun(n int) *replay {
	r := &replay{engine: engine{replicas: 1}}
	for range n {
		r.requests = append(r.requests, stream.Request{InputTokens: 100, OutputTokens: 11})
		r.outcomes = append(r.outcomes, stream.Outcome{State: stream.StateCompleted, ArrivalUS: 980e3,
			EnqueuedUS: 985e3, ScheduledUS: 990e3, FirstTokenUS: 1e6, CompletedUS: 2e6,
			EndedUS: stream.Never, Replica: stream.NoIndex})
		r.fitted = append(r.fitted, true)
	}
	return r
}

// rowsOf are the rows of decode phases of 1 s and prefill phases of 10 ms in turn, of which the
// errors at unit vectors are one column each.
func rowsOf(r *leastsq.Regression) [][]float64 {
	rows := make([][]float64, r.Len())
	for k := range r.Names {
		unit := make([]float64, len(r.Names))
		unit[k] = 1
		for i, e := range r.Errors(unit) {
			rows[i] = append(rows[i], math.Round(1e6*(e+1)*[]float64{1e6, 1e4}[i%2])/1e6)
		}
	}
	return rows
}

// blocksOf are the blocks of rows.
func blocksOf(r *leastsq.Regression) (blocks []int) {
	r.Where(func(block int) bool {
		blocks = append(blocks, block)
		return false
	})
	return blocks
}

// TestConcurrentWorkIsCounted: a request that was preempted, one that did not complete and one
// whose start is unknown count as concurrent work, but are not fitted. One that waited for half
// of its time counts half.
func TestConcurrentWorkIsCounted(t *testing.T) {
	r := spanRun(5)
	r.outcomes[1].Preemptions = 1
	r.outcomes[2].State, r.outcomes[2].CompletedUS, r.outcomes[2].EndedUS = stream.StateTimedOut, stream.Never, 1.5e6
	r.outcomes[3].ScheduledUS = stream.Never
	r.outcomes[4].Preemptions, r.outcomes[4].PreemptedUS = 2, 500e3
	d := newSpanData([]*replay{r}, 2048)
	// 10 steps of 1 + 1 + 0.5 + 1 + 0.5 sequences with 105.5 tokens each, and one step of the
	// prompts of four.
	want := [][]float64{{10, 0, 40, 40 * 105.5}, {1, 400, 0, 0}}
	if d.fit.Len() != 2 || d.load.sequences != 4 {
		t.Fatalf("%d rows, %g sequences decode", d.fit.Len(), d.load.sequences)
	}
	for i, row := range rowsOf(&d.fit) {
		if !slices.Equal(row, want[i]) {
			t.Errorf("row %d: %v, want %v", i, row, want[i])
		}
	}
}

// TestBlocksAreOfOneRun: of three runs with 40 % held out, one of them without arrivals, no block
// is of two runs.
func TestBlocksAreOfOneRun(t *testing.T) {
	var runs []*replay
	for range 3 {
		r := spanRun(100)
		for i := 60; i < 100; i++ {
			r.fitted[i] = false
		}
		r.hasArrivals = len(runs) != 1
		runs = append(runs, r)
	}
	d := newSpanData(runs, 2048)
	at := blocksOf(&d.fit)
	if n := len(slices.Compact(slices.Clone(at))); n != 3*spanBlocks || !slices.IsSorted(at) || len(at) != 360 {
		t.Errorf("%d blocks of %d rows: %v", n, len(at), at)
	}
	at = blocksOf(&d.alpha)
	n := len(slices.Compact(slices.Clone(at)))
	if n != 2*spanBlocks || !slices.IsSorted(at) || len(at) != 120 || at[59] == at[60] {
		t.Errorf("alpha: %d blocks of %d rows: %v", n, len(at), at)
	}
	if d.heldOut.Len() != 240 {
		t.Errorf("%d rows held out", d.heldOut.Len())
	}
}

// TestWorkIsPerReplica: of five requests, two run on one replica and three on another; where
// that is not recorded, each has the mean as concurrent work.
func TestWorkIsPerReplica(t *testing.T) {
	r := spanRun(5)
	r.engine.replicas = 2
	for _, row := range rowsOf(&newSpanData([]*replay{r}, 2048).fit) {
		if row[0] == 10 && row[2] != 25 || row[0] == 1 && row[1] != 250 {
			t.Errorf("unknown replicas: %v", row)
		}
	}
	for i := range r.outcomes {
		r.outcomes[i].Replica = stream.Index(i % 2)
	}
	if n := replicasOf(r.outcomes); n != 2 {
		t.Errorf("%d replicas", n)
	}
	for i, row := range rowsOf(&newSpanData([]*replay{r}, 2048).fit) {
		n := []float64{3, 2}[i/2%2]
		if row[0] == 10 && row[2] != 10*n || row[0] == 1 && row[1] != 100*n {
			t.Errorf("row %d: %v, want %g requests", i, row, n)
		}
	}
}

// TestTokenTimesPerReplica: on two replicas, groups of one to four requests, ten in all, decode in turn. A step takes
// 5000 + 100·d + 0.5·c µs where half of the group, d, and half of its context, c, are at each replica.
func TestTokenTimesPerReplica(t *testing.T) {
	r := &replay{engine: engine{replicas: 2}}
	for n := 1; n <= 4; n++ {
		q := stream.Request{ArrivalUS: stream.Micros(n) * 1e6, InputTokens: 100, OutputTokens: 11}
		each := float64(n) / 2
		step := 5000 + 100*each + 0.5*each*105.5
		for range n {
			r.requests = append(r.requests, q)
			r.measured = append(r.measured, timing{ttft: 50e3, e2e: 50e3 + 10*step})
			r.fitted = append(r.fitted, true)
		}
	}
	c, ok := tokenTimes([]*replay{r}, false, 0.5)
	if !ok || math.Abs(c[beta0]-5000) > 1e-3 || math.Abs(c[beta2]-100) > 1e-3 || c[beta3] != 0.5 || c[beta1] != 0 {
		t.Errorf("%v, %v", c, ok)
	}
	r.fitted[9] = false
	if _, ok := tokenTimes([]*replay{r}, false, 0.5); ok {
		t.Error("nine requests are enough")
	}
}

// TestAlphaByHand: TTFT without queue and prefill is 300 µs and 2 µs per input token. Where it falls with the input,
// alpha[1] is 0, and where all inputs are equal, they cannot be distinguished: alpha[0] is all of it. 20 requests are
// enough.
func TestAlphaByHand(t *testing.T) {
	for _, c := range []struct {
		n             int
		offset, slope float64
		constant      bool
		value, source string
		warnings      int
	}{
		{20, 300, 2, false, "300 2", "fitted: the same, by input tokens", 0},
		{20, 300, -2, false, "259 0", negative, 0},
		{20, 300, 2, true, "322 0", negative, 1},
		{19, 300, 2, false, "0 0", "0: unknown without times of arrival and of queueing", 1},
	} {
		d := &spanData{}
		d.alpha.Names = names[:alpha2]
		for i := range c.n {
			input := float64(11 + i)
			if c.constant {
				input = 11
			}
			d.inputs.Widen(input)
			d.alpha.AddScaled(1000, i, c.offset+c.slope*input, 1, input)
		}
		r := &report{setup: &setup{}}
		r.fitAlpha(d)
		got := fmt.Sprintf("%.0f %.0f", r.fit.value[alpha0], r.fit.value[alpha1])
		if got != c.value || r.fit.source[alpha1] != c.source || len(r.setup.warnings) != c.warnings {
			t.Errorf("%+v: %s, source %q, warnings %q", c, got, r.fit.source[alpha1], r.setup.warnings)
		}
	}
}
