package engine

import (
	"hash/fnv"
	"testing"

	"blis/pkg/internal/reference"
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
	compareFeature(t, 2000, reference.RandomSpeculation, func(c *reference.Config) any { return *c.Speculation },
		func(seed uint64, p *harness, want *reference.Result) {
			s := p.engine.Stats()
			have := [3]int64{s.Verifications, s.DraftTokens, s.AcceptedTokens}
			if d := want.Drafts; have != [3]int64{int64(d.Verifications), int64(d.Drafted), int64(d.Accepted)} {
				t.Fatalf("seed %d: %v steps with drafts, drafts and accepted ones, want %+v", seed, have, d)
			}
		})
}
