package reference

import "testing"

// TestRandomPiecesReachEverything runs random cases with pieces of prompts: each situation must occur in many of them.
func TestRandomPiecesReachEverything(t *testing.T) {
	const cases = 500
	seen := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomPieces(seed)
		r := Run(c, requests)
		x := r.Pieces
		for name, n := range map[string]int{"early": x.Early, "cached": x.Cached, "together": x.Together,
			"prolonged": x.Prolonged, "moving": x.Moving, "between": x.Between, "waiting": x.Waiting, "ready": x.Ready,
			"no room": x.NoRoom} {
			if n > 0 {
				seen[name]++
			}
		}
		for _, o := range r.Outcomes {
			if o.Reason == "transfer_timeout" && c.Disaggregation.inPieces() {
				seen["lease"]++
				break
			}
		}
	}
	t.Log(seen)
	for name, n := range seen {
		if n < 4 {
			t.Errorf("%s: in %d cases", name, n)
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d of 10 situations", len(seen))
	}
}
