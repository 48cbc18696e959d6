package engine

import (
	"testing"

	"blis/pkg/link"
)

// TestStoppedBy: what stops the queue is the first limit that a batch has reached, exactly.
func TestStoppedBy(t *testing.T) {
	for name, c := range map[string]struct {
		tokens, seqs int
		chunked      bool
		blocks       int
		inputs       []int
		want         Limit
	}{
		"nothing waits":  {100, 2, true, 100, []int{10, 10}, noLimit},
		"no slot":        {100, 2, true, 100, []int{10, 10, 10}, SlotLimit},
		"no tokens":      {20, 3, true, 100, []int{10, 10, 10}, BudgetLimit},
		"too few tokens": {25, 3, false, 100, []int{10, 10, 10}, BudgetLimit},
		"no blocks":      {100, 3, true, 3, []int{17, 10, 10}, BlockLimit},
	} {
		cfg := Config{MaxNumBatchedTokens: c.tokens, MaxNumSeqs: c.seqs, ChunkedPrefill: c.chunked}
		e, tree := newEngine(t, cfg, c.blocks)
		for i, input := range c.inputs {
			enqueue(e, tree, int32(i), input, 2)
		}
		if ok, err := e.Start(0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if got := e.StoppedBy(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestChunkLimits: the tokens of a sequence in a step are limited by the threshold and by MaxSequenceTokens.
func TestChunkLimits(t *testing.T) {
	for _, c := range []struct{ threshold, most, want int }{
		{0, 0, 64}, {20, 0, 20}, {0, 30, 30}, {20, 30, 20}, {40, 30, 30}, {30, 30, 30},
	} {
		e, _ := newEngine(t, Config{MaxNumBatchedTokens: 100, MaxNumSeqs: 2, ChunkedPrefill: true,
			LongPrefillTokenThreshold: c.threshold, MaxSequenceTokens: c.most}, 100)
		e.limitChunks()
		if got := e.limitChunk(64); got != c.want {
			t.Errorf("threshold %d, most %d: %d tokens, want %d", c.threshold, c.most, got, c.want)
		}
	}
}

// TestTierStats adds a store and two loads.
func TestTierStats(t *testing.T) {
	var got TierStats
	for _, x := range []Transfer{{Transfer: link.Transfer{Asked: 10, Started: 20, Ended: 50}, Blocks: 4},
		{Transfer: link.Transfer{Asked: 10, Started: 15, Ended: 40}, Load: true, Blocks: 3},
		{Transfer: link.Transfer{Asked: 30, Started: 40, Ended: 50}, Load: true, Blocks: 5}} {
		got.count(&x)
	}
	want := TierStats{Stored: 4, StoreUS: 30, Loaded: 8, LoadUS: 35, Loads: 2, WaitUS: 50, LongestWaitUS: 30}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestEstimate: a prompt of 20 tokens on an idle replica takes 100 + 10·20 µs, and each later token 101.
func TestEstimate(t *testing.T) {
	e, _ := newEngine(t, Config{MaxNumBatchedTokens: 100, MaxNumSeqs: 2}, 100)
	o := Forecast{Budget: 100, MaxSeqs: 2, StepRemaining: 7}
	for output, want := range map[int64]int64{1: 307, 2: 408, 3: 509} {
		if first, last := o.Estimate(e.model, 20, output); first != 307 || last != want {
			t.Errorf("%d tokens: from %d to %d, want 307 to %d", output, first, last, want)
		}
	}
}
