package reference

import "testing"

// TestRandomEncoders: the random cases have what is rare, and obey the laws.
func TestRandomEncoders(t *testing.T) {
	const cases = 600
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomEncoder(seed)
		r := Run(c, requests)
		if c.Groups == nil {
			checkLaws(t, seed, c, requests, r)
		}
		checkEncoders(t, seed, c, r)
		a := r.Items
		for name, n := range map[string]int{"encoded": a.Encoded, "hits": a.Hits, "repeated": a.Repeated,
			"cuts":   a.Cuts,
			"passed": a.Passed, "evicted": a.Evicted, "withdrawn": a.Withdrawn, "early": a.Early} {
			if n > 0 {
				counts[name]++
			}
		}
	}
	t.Logf("of %d cases: %v", cases, counts)
	for name, least := range map[string]int{"encoded": cases / 2, "hits": cases / 4, "repeated": cases / 8,
		"cuts":   cases / 6,
		"passed": cases / 20, "evicted": cases / 8, "withdrawn": 1, "early": cases / 40} {
		if counts[name] < least {
			t.Errorf("%s in %d of %d cases, want at least %d", name, counts[name], cases, least)
		}
	}
}

// checkEncoders: no step encodes more than the budget.
func checkEncoders(t *testing.T, seed uint64, c Config, r Result) {
	t.Helper()
	for _, steps := range r.Steps {
		for i, s := range steps {
			if s.EncodedTokens > int64(c.Encoder.Budget) || (s.EncodedItems == 0) != (s.EncodedTokens == 0) ||
				s.EncodedItems == 0 && s.EncoderUS != 0 {
				t.Errorf("seed %d: step %d encodes %d tokens of at most %d: %+v", seed, i, s.EncodedTokens,
					c.Encoder.Budget, s)
			}
		}
	}
}
