package reference

import "testing"

// TestRandomAdapters: the random cases have what is rare, and obey the laws.
func TestRandomAdapters(t *testing.T) {
	const cases = 600
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomLoRA(seed)
		if c.Speculation != nil {
			c.Speculation.Draw = func(id string, token int) float64 { return float64((len(id)+7*token)%10) / 10 }
		}
		r := Run(c, requests)
		if c.Groups == nil {
			checkLaws(t, seed, c, requests, r)
		}
		checkAdapters(t, seed, c, requests, r)
		a := r.Adapters
		for name, n := range map[string]int{"skipped": a.Skipped, "overtaken": a.Overtaken, "loads": a.Loads,
			"copied again": a.Copies - a.Loads, "left both": a.LeftBoth} {
			if n > 0 {
				counts[name]++
			}
		}
	}
	t.Logf("of %d cases: %v", cases, counts)
	for name, least := range map[string]int{"skipped": cases / 3, "overtaken": cases / 4, "loads": cases / 2,
		"copied again": cases / 20, "left both": cases / 4} {
		if counts[name] < least {
			t.Errorf("%s in %d of %d cases, want at least %d", name, counts[name], cases, least)
		}
	}
}

// checkAdapters: no step has more adapters than allowed, or loads more than it has, and hits end at another adapter.
func checkAdapters(t *testing.T, seed uint64, c Config, requests []Request, r Result) {
	t.Helper()
	of := map[string]string{}
	alone := map[string]int{}
	for _, q := range requests {
		of[q.ID] = q.Adapter
		alone[q.Adapter]++
	}
	for _, steps := range r.Steps {
		for i, s := range steps {
			seen := map[string]bool{}
			for _, x := range s.Shares {
				if of[x.ID] != "" {
					seen[of[x.ID]] = true
				}
			}
			if int64(len(seen)) != s.Adapters || len(seen) > c.LoRA.Max || s.AdapterLoads > len(seen) ||
				s.AdapterCopies > len(seen) {
				t.Errorf("seed %d: step %d has %d adapters: %+v", seed, i, len(seen), s)
			}
		}
	}
	for i, o := range r.Outcomes {
		if alone[requests[i].Adapter] == 1 && o.Cached > 0 {
			t.Errorf("seed %d: %s is alone with its adapter and has a hit of %d tokens", seed, o.ID, o.Cached)
		}
	}
}
