package calibrate

import (
	"math"
	"slices"
	"testing"

	"blis/pkg/stream"
)

// spanRun is a run of requests that decode from 1 s to 2 s each, of 100 prompt tokens
// computed in the 10 ms before and 11 tokens of answer.
func spanRun(n int) *run {
	r := &run{replicas: 1}
	for range n {
		r.requests = append(r.requests, stream.Request{InputTokens: 100, OutputTokens: 11})
		r.outcomes = append(r.outcomes, stream.Outcome{State: stream.StateCompleted, ArrivalUS: 980e3, EnqueuedUS: 985e3, ScheduledUS: 990e3, FirstTokenUS: 1e6, CompletedUS: 2e6, EndedUS: stream.Never, Replica: stream.Nowhere})
		r.used = append(r.used, true)
	}
	return r
}

// TestOthersRanBeside: a request that was interrupted, one that did not complete and one
// whose begin is not known ran beside another, but none is a row to fit to. One that
// waited again for half of its time counts half.
func TestOthersRanBeside(t *testing.T) {
	r := spanRun(5)
	r.outcomes[1].Preemptions = 1
	r.outcomes[2].State, r.outcomes[2].CompletedUS, r.outcomes[2].EndedUS = stream.StateTimedOut, stream.Never, 1.5e6
	r.outcomes[3].ScheduledUS = stream.Never
	r.outcomes[4].Preemptions, r.outcomes[4].PreemptedUS = 2, 500e3
	f := phasesOf([]*run{r}, 2048)
	// 10 steps of 1 + 1 + 0.5 + 1 + 0.5 sequences with 105.5 tokens each; and one step of
	// the prompts of four.
	want := [][]float64{{10, 0, 40, 40 * 105.5}, {1, 400, 0, 0}}
	if len(f.decode.rows) != 2 || f.overlap != 4 {
		t.Fatalf("rows %v, %g decode", f.decode.rows, f.overlap)
	}
	for i, row := range f.decode.rows {
		for k, v := range row {
			if math.Abs(v-want[i][k]) > 1e-6 {
				t.Errorf("rows %v, want %v", f.decode.rows, want)
			}
		}
	}
}

// TestBlocksAreNumberedThrough: of two runs, of which the last 40 % is held back, and of one
// without a time of arrival, no block is of two, and none that is drawn is empty.
func TestBlocksAreNumberedThrough(t *testing.T) {
	var runs []*run
	for range 3 {
		r := spanRun(100)
		for i := 60; i < 100; i++ {
			r.used[i] = false
		}
		r.arrivals = len(runs) != 1
		runs = append(runs, r)
	}
	f := phasesOf(runs, 2048)
	at, n := f.decode.drawn()
	if n != 3*spanBlocks || !slices.IsSorted(at) || len(at) != 360 {
		t.Errorf("%d blocks of %d rows: %v", n, len(at), at)
	}
	at, n = f.alpha.drawn()
	if n != 2*spanBlocks || !slices.IsSorted(at) || len(at) != 120 || at[59] == at[60] {
		t.Errorf("alpha: %d blocks of %d rows: %v", n, len(at), at)
	}
	if len(f.held.rows) != 240 {
		t.Errorf("%d rows held back", len(f.held.rows))
	}
}

// TestReplicasAreApart: of five requests, two ran on one replica and three on another;
// where that is not known, each has the mean beside it.
func TestReplicasAreApart(t *testing.T) {
	r := spanRun(5)
	r.replicas = 2
	for _, row := range phasesOf([]*run{r}, 2048).decode.rows {
		if row[0] == 10 && row[2] != 25 || row[0] == 1 && row[1] != 250 {
			t.Errorf("nobody knows where they ran: %v", row)
		}
	}
	for i := range r.outcomes {
		r.outcomes[i].Replica = stream.Index(i % 2)
	}
	if n := replicasOf(r.outcomes); n != 2 {
		t.Errorf("%d replicas", n)
	}
	for i, row := range phasesOf([]*run{r}, 2048).decode.rows {
		n := []float64{3, 2}[i/2%2]
		if row[0] == 10 && row[2] != 10*n || row[0] == 1 && row[1] != 100*n {
			t.Errorf("row %d: %v beside %g", i, row, n)
		}
	}
}
