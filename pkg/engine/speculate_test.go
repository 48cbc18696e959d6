package engine

import (
	"hash/fnv"
	"testing"

	"blis/pkg/internal/reference"

	"github.com/google/go-cmp/cmp"
)

// draftSeed is the seed of a request's drafts in tests.
func draftSeed(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()
}

// draftsOf converts those of the reference.
func draftsOf(r *reference.Request) Drafts {
	d := Drafts{Seed: draftSeed(r.ID), Acceptance: -1}
	if r.DraftAcceptance != nil {
		d.Acceptance = *r.DraftAcceptance
	}
	return d
}

// setDraws makes the reference accept the drafts that the engine accepts.
func setDraws(c *reference.Config) {
	if c.Speculation != nil {
		c.Speculation.Draw = func(id string, token int) float64 { return draw(draftSeed(id), uint64(token)) }
	}
}

// speculationOf converts that of the reference.
func speculationOf(c reference.Config) *Speculation {
	s := c.Speculation
	if s == nil {
		return nil
	}
	return &Speculation{Tokens: s.Tokens, Schedule: s.Schedule, Lookahead: s.Lookahead, BudgetSlots: s.BudgetSlots,
		HashLookahead: s.HashLookahead, MaxModelLen: c.MaxModelLen, Rates: s.Rates}
}

// TestReferenceOnSpeculation is TestReference with speculative decoding.
func TestReferenceOnSpeculation(t *testing.T) {
	cases := uint64(4000)
	if testing.Short() {
		cases = 300
	}
	livelocked := 0
	for seed := range cases {
		c, requests := reference.RandomSpeculation(seed)
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
			t.Fatalf("seed %d: outcomes of the reference (-) and the engine (+) differ:\n%+v %+v\n%s", seed, c,
				*c.Speculation, diff)
		}
		if diff := cmp.Diff(want.Steps[0], p.steps); diff != "" {
			t.Fatalf("seed %d: steps of the reference (-) and the engine (+) differ:\n%+v %+v\n%s", seed, c,
				*c.Speculation, diff)
		}
		s := p.engine.Stats()
		have := [3]int64{s.Verifications, s.DraftTokens, s.AcceptedTokens}
		if d := want.Drafts; have != [3]int64{int64(d.Verifications), int64(d.Drafted), int64(d.Accepted)} {
			t.Fatalf("seed %d: %v steps with drafts, drafts and accepted ones, want %+v", seed, have, d)
		}
	}
	if livelocked > int(cases)/20 {
		t.Errorf("%d of %d cases without progress", livelocked, cases)
	}
}
