package reference

import "testing"

// TestRandomEncodePools: the random cases have what is rare, and obey the laws.
func TestRandomEncodePools(t *testing.T) {
	const cases = 600
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomEncodePool(seed)
		r := Run(c, requests)
		if c.Groups == nil {
			checkLaws(t, seed, c, requests, r)
		}
		if r.Items.Encoded > 0 {
			t.Errorf("seed %d: replicas encode %d items", seed, r.Items.Encoded)
		}
		a := r.EncodePool
		for name, n := range map[string]int{"encoded": a.Encoded, "hits": a.Hits, "passed": a.Passed,
			"ended": a.Ended, "unneeded": a.Unneeded, "shared": a.Shared, "lost": a.Lost,
			"transfers": len(r.Embeddings)} {
			if n > 0 {
				counts[name]++
			}
		}
	}
	t.Logf("of %d cases: %v", cases, counts)
	for name, least := range map[string]int{"encoded": cases / 2, "hits": cases / 3, "passed": cases / 20,
		"ended": cases / 20, "unneeded": cases / 60, "shared": cases / 10, "lost": 1, "transfers": cases / 2} {
		if counts[name] < least {
			t.Errorf("%s in %d of %d cases, want at least %d", name, counts[name], cases, least)
		}
	}
}

// TestRandomEncodePrefill: the random cases with a prefill pool have transfers of embeddings to replicas of both pools.
func TestRandomEncodePrefill(t *testing.T) {
	const cases = 400
	prefill, decode := 0, 0
	for seed := range uint64(cases) {
		c, requests := RandomEncodePrefill(seed)
		toPrefill, toDecode := false, false
		for _, x := range Run(c, requests).Embeddings {
			toPrefill, toDecode = toPrefill || x.To >= c.Replicas, toDecode || x.To < c.Replicas
		}
		if toPrefill {
			prefill++
		}
		if toDecode {
			decode++
		}
	}
	if prefill < cases/3 || decode < cases/5 {
		t.Errorf("of %d cases %d have transfers to prefill replicas and %d to decode replicas", cases, prefill, decode)
	}
}
