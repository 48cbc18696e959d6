package engine

import (
	"testing"

	"blis/pkg/internal/reference"

	"github.com/google/go-cmp/cmp"
)

// loraOf converts that of the reference.
func loraOf(c reference.Config) *LoRA {
	l := c.LoRA
	if l == nil {
		return nil
	}
	return &LoRA{MaxLoras: l.Max, MaxCPULoras: l.MaxHost, LoadUS: l.LoadUS, CopyUS: l.CopyUS,
		ByArrival: c.Scheduler != "" && c.Scheduler != "fcfs"}
}

// TestReferenceOnLoRA is TestReference with adapters.
func TestReferenceOnLoRA(t *testing.T) {
	cases := uint64(4000)
	if testing.Short() {
		cases = 300
	}
	livelocked := 0
	for seed := range cases {
		c, requests := reference.RandomLoRA(seed)
		c.Replicas, c.Routing, c.Scorers, c.SnapshotUS = 1, "round-robin", nil, 0
		setDraws(&c)
		unchanged := reference.Run(c, requests)
		if seed%3 == 0 {
			c.Victim = victims[seed/3%uint64(len(victims))]
		}
		p := newHarness(t, c, requests, unchanged)
		if end, ok := p.run(); !ok {
			c.HorizonUS = end
			livelocked++
		}
		want := reference.Run(c, requests)
		if diff := cmp.Diff(observedOf(want, requests), p.observed); diff != "" {
			t.Fatalf("seed %d: outcomes of the reference (-) and the engine (+) differ:\n%+v %+v\n%s", seed, c, *c.LoRA,
				diff)
		}
		if diff := cmp.Diff(want.Steps[0], p.steps); diff != "" {
			t.Fatalf("seed %d: steps of the reference (-) and the engine (+) differ:\n%+v %+v\n%s", seed, c, *c.LoRA,
				diff)
		}
	}
	if livelocked > int(cases)/20 {
		t.Errorf("%d of %d cases without progress", livelocked, cases)
	}
}
