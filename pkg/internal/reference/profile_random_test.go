package reference

import "testing"

// TestRandomProfilesCover: each plugin is in enough cases, also with others, and the profiles expect hits and draw.
func TestRandomProfilesCover(t *testing.T) {
	const cases = 500
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomProfiles(seed, Plugins()[seed%uint64(len(Plugins()))])
		r := Run(c, requests)
		seen := map[string]bool{"ties": r.TieDraws > 0, "stale reports": c.SnapshotUS > 0}
		for _, p := range c.Profile {
			seen[p.Name] = true
		}
		for i, o := range r.Outcomes {
			seen["hits"] = seen["hits"] || o.ExpectedCached > 0
			seen["sessions"] = seen["sessions"] || requests[i].Session != ""
		}
		for name, has := range seen {
			if has {
				counts[name]++
			}
		}
	}
	for _, name := range append(Plugins(), "ties", "stale reports", "hits", "sessions") {
		t.Logf("%-30s %4.1f %%", name, 100*float64(counts[name])/cases)
		if counts[name] < cases/20 {
			t.Errorf("%s: in %d of %d cases", name, counts[name], cases)
		}
	}
}
