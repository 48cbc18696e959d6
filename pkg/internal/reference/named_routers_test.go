package reference

import "testing"

// TestRandomRoutersCover: the cases have what distinguishes the routers.
func TestRandomRoutersCover(t *testing.T) {
	const cases = 300
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomRouters(seed)
		r := Run(c, requests)
		seen := map[string]bool{c.Routing: true, c.Routing + " with ties": r.TieDraws > 0,
			"llm-d with another picker": c.Routing == "llm-d" && c.Picker != "max-score",
			"a temperature":             c.Routing == "dynamo-kv" && c.Named.Temperature > 0,
			"a decaying credit":         c.Routing == "dynamo-kv" && c.Named.Decay > 0}
		for i, o := range r.Outcomes {
			seen[c.Routing+" expects hits"] = seen[c.Routing+" expects hits"] || o.ExpectedCached > 0
			seen["several blocks of the index"] = seen["several blocks of the index"] ||
				c.Routing == "llm-d" && requests[i].Input > 2*smallestBlock && o.ExpectedCached > smallestBlock
		}
		for name, has := range seen {
			if has {
				counts[name]++
			}
		}
	}
	for _, name := range []string{"llm-d", "llm-d with ties", "llm-d expects hits", "llm-d with another picker",
		"several blocks of the index", "dynamo-kv", "dynamo-kv with ties", "dynamo-kv expects hits", "a temperature",
		"a decaying credit", "stateful"} {
		t.Logf("%-30s %4.1f %%", name, 100*float64(counts[name])/cases)
		if counts[name] < cases/20 {
			t.Errorf("%s: in %d of %d cases", name, counts[name], cases)
		}
	}
}
