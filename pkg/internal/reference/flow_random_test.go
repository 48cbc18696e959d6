package reference

import (
	"slices"
	"testing"
)

// TestRandomFlowCovers: requests wait in flow control, leave it in all ways, and every rule is in enough cases.
func TestRandomFlowCovers(t *testing.T) {
	const cases = 600
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomFlow(seed)
		r := Run(c, requests)
		f := c.Flow
		seen := map[string]bool{"order " + f.Order: true, "fairness " + f.Fairness: true, "bands": f.Bands,
			"stale reports": c.SnapshotUS > 0}
		for _, p := range []*Plugin{f.Detector, f.Limit} {
			if p != nil {
				seen[p.Name+" "+p.Words["concurrencyMode"]+p.Words["domain"]] = true
			}
		}
		var sent []int64
		for _, o := range r.Outcomes {
			if o.RoutedUS != Never && o.RoutedUS > o.AdmittedUS+c.RoutingLatencyUS {
				seen["waits"] = true
				seen["several leave at one instant"] = seen["several leave at one instant"] ||
					slices.Contains(sent, o.RoutedUS)
				sent = append(sent, o.RoutedUS)
			}
			seen[o.State+" "+o.Reason] = true
			seen["deadline in flow"] = seen["deadline in flow"] || o.DeadlineAt == "flow"
		}
		for name, has := range seen {
			if has {
				counts[name]++
			}
		}
	}
	for _, name := range []string{"order fifo", "order priority", "order deadline", "order fcfs-ordering-policy",
		"order edf-ordering-policy", "order slo-deadline-ordering-policy", "fairness none", "fairness round-robin",
		"fairness global-strict-fairness-policy", "fairness round-robin-fairness-policy", "bands", "stale reports",
		"waits", "several leave at one instant", "rejected admission", "timed_out admission_delay", "deadline in flow",
		"utilization-detector ", "concurrency-detector requests", "concurrency-detector tokens",
		"concurrency-detector hybrid", "static-usage-limit-policy ", "priority-holdback-policy rank",
		"priority-holdback-policy value", "soft-reflective-ceiling-policy "} {
		t.Logf("%-40s %4.1f %%", name, 100*float64(counts[name])/cases)
		if counts[name] < cases/20 {
			t.Errorf("%s: in %d of %d cases", name, counts[name], cases)
		}
	}
}
