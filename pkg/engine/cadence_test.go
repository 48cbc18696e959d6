package engine

import (
	"testing"

	"blis/pkg/des"
	"blis/pkg/internal/reference"
)

// TestReferenceOnCadence compares random cases with prompts in some steps only. Many of them turn requests away.
func TestReferenceOnCadence(t *testing.T) {
	deferred, turnedAway := 0, 0
	interval := func(c *reference.Config) any { return c.PrefillInterval }
	count := func(_ uint64, _ *harness, want *reference.Result) {
		if want.DeferredBatches > 0 {
			deferred++
		}
		if want.TurnedAway > 0 {
			turnedAway++
		}
	}
	compareFeature(t, 1500, reference.RandomCadenceAlone, interval, count)
	if deferred < 300 || turnedAway < 100 {
		t.Errorf("%d cases have batches without prompts, %d turn requests away, want more", deferred, turnedAway)
	}
}

// TestCadenceCountsCoastedSteps: a request that comes after steps that were run at once is in the next batch, since
// more steps than the interval have only decoded.
func TestCadenceCountsCoastedSteps(t *testing.T) {
	cfg := Config{MaxNumBatchedTokens: 100, MaxNumSeqs: 9, ChunkedPrefill: true, PrefillInterval: 4}
	e, tree := newEngine(t, cfg, 100)
	enqueue(e, tree, 0, 10, 50)
	start := func(now des.Time) {
		if ok, err := e.Start(now); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	start(0)
	for range 2 {
		at := e.WakeAt()
		if _, err := e.Finish(at); err != nil {
			t.Fatal(err)
		}
		start(at)
	}
	if steps, _ := e.Coast(1<<40, 3); steps != 3 {
		t.Fatalf("%d steps at once, want 3", steps)
	}
	enqueue(e, tree, 1, 10, 5)
	at := e.WakeAt()
	if _, err := e.Finish(at); err != nil {
		t.Fatal(err)
	}
	if start(at); e.Step().Prefill != 10 {
		t.Errorf("%d prompt tokens, want 10", e.Step().Prefill)
	}
}
