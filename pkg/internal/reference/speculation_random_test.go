package reference

import "testing"

// TestRandomSpeculations: the random cases have what is rare, and obey the laws.
func TestRandomSpeculations(t *testing.T) {
	const cases = 600
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomSpeculation(seed)
		c.Speculation.Draw = func(id string, token int) float64 { return float64((len(id)+7*token)%10) / 10 }
		r := Run(c, requests)
		checkLaws(t, seed, c, requests, r)
		d := r.Drafts
		for name, n := range map[string]int{"verified": d.Verifications, "accepted": d.Accepted,
			"rejected": d.Drafted - d.Accepted, "padded": d.Padded, "cut": d.Cut,
			"stale": d.Stale, "dropped hits": d.Dropped, "unused": d.Unused,
			"victims undone": r.UndoneVictims, "late lookups": r.Async.LateLookups} {
			if n > 0 {
				counts[name]++
			}
		}
	}
	t.Logf("of %d cases: %v", cases, counts)
	for name, least := range map[string]int{"verified": cases / 2, "accepted": cases / 3, "rejected": cases / 2,
		"padded": cases / 10, "cut": cases / 20, "stale": cases / 50, "dropped hits": cases / 50, "unused": cases / 3,
		"victims undone": cases / 100} {
		if counts[name] < least {
			t.Errorf("%s in %d of %d cases, want at least %d", name, counts[name], cases, least)
		}
	}
}
