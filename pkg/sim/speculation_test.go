package sim

import (
	"cmp"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
)

// TestReferenceOnSpeculation compares random clusters with speculative decoding.
func TestReferenceOnSpeculation(t *testing.T) {
	for seed := range randomCases(2000, 150) {
		c, requests := reference.RandomSpeculation(seed)
		if diff := compare(t, c, requests); diff != "" {
			t.Fatalf("seed %d: the reference (-) and the simulator (+) differ:\n%+v %+v\n%s", seed, c,
				*c.Speculation, diff)
		}
	}
}

// setDraws makes the reference accept the drafts that a run with this seed accepts: those for which the SplitMix64
// number of a token, seeded by the FNV-1a hash of the request's id that begins with the seed, is below their rate.
func setDraws(c *reference.Config, seed uint64) {
	if c.Speculation == nil {
		return
	}
	s := *c.Speculation
	s.Draw = func(id string, token int) float64 {
		h := 0xcbf29ce484222325 ^ 0x9e3779b97f4a7c15*seed
		for _, c := range []byte(id) {
			h = 0x100000001b3 * (h ^ uint64(c))
		}
		x := h + 0x9e3779b97f4a7c15*uint64(token+1)
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return float64((x^x>>31)>>11) / (1 << 53)
	}
	c.Speculation = &s
}

// speculativeConfigOf converts that of the reference; nil if there is none.
func speculativeConfigOf(s *reference.Speculation) *cluster.SpeculativeConfig {
	if s == nil {
		return nil
	}
	c := &cluster.SpeculativeConfig{Method: "mtp", NumSpeculativeTokens: s.Tokens, DraftPassUS: &s.DraftUS[0],
		DraftSequenceUS: &s.DraftUS[1], DisableLookaheadBlockHashes: s.DropLastHit}
	switch {
	case s.Lookahead == 0:
		c.Method = "ngram"
	case s.BudgetSlots > 0:
		c.Method = "draft_model"
	}
	share := 1.0
	for _, r := range s.Rates {
		share *= r
		c.SyntheticAcceptanceRates = append(c.SyntheticAcceptanceRates, share)
	}
	for n := 1; n < len(s.Schedule); n++ {
		end := cmp.Or(map[int]int{len(s.Schedule) - 1: 1000}[n], n)
		c.NumSpeculativeTokensPerBatchSize = append(c.NumSpeculativeTokensPerBatchSize, []int{n, end, s.Schedule[n]})
	}
	return c
}
