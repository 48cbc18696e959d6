package reference

import "testing"

// TestRandomPoolsCover: the cases have what distinguishes the rules of pools.
func TestRandomPoolsCover(t *testing.T) {
	const cases = 200
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomPools(seed)
		r := Run(c, requests)
		replicas, inPool, others := map[int]bool{}, false, false
		for i, o := range r.Outcomes {
			if o.Replica >= 0 {
				replicas[o.Replica] = true
				inPool = inPool || requests[i].Input >= c.Pools.Bounds[0]
				others = others || requests[i].Input < c.Pools.Bounds[0]
			}
		}
		sum := 0.0
		for _, s := range c.Pools.Shares {
			sum += s
		}
		for name, has := range map[string]bool{"several pools": len(c.Pools.Shares) > 1,
			"requests of both kinds": inPool && others,
			"no replica is left":     sum > 0.999, "a pool of less than a replica": c.Pools.Shares[0] < 0.1,
			"it spills": c.Pools.SpillAt > 0, "ties": r.TieDraws > 0, "several replicas": len(replicas) > 1} {
			if has {
				counts[name]++
			}
		}
	}
	for _, name := range []string{"several pools", "requests of both kinds", "no replica is left",
		"a pool of less than a replica", "it spills", "ties", "several replicas"} {
		t.Logf("%-30s %4.1f %%", name, 100*float64(counts[name])/cases)
		if counts[name] < cases/10 {
			t.Errorf("%s: in %d of %d cases", name, counts[name], cases)
		}
	}
}
