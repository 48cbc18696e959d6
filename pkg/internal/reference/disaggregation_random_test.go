package reference

import "testing"

// TestRandomDisaggregationReachesEverything runs random cases with a prefill pool: each situation must occur in many of
// them.
func TestRandomDisaggregationReachesEverything(t *testing.T) {
	const cases = 300
	seen := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomDisaggregation(seed)
		r := Run(c, requests)
		in := map[string]bool{"room for a transfer is missing": r.Host.NoRoom > 0,
			"an aborted transfer":            r.Host.Orphans > 0,
			"a victim in the step in flight": r.Host.Stuck > 0, "blocks of an aborted request stay": r.Host.Late > 0,
			"all wait for transfers":           r.Host.Idle > 0,
			"no replica is open for a request": r.HeldBack > 0}
		for _, o := range r.Outcomes {
			switch {
			case o.PrefillReplica == Never:
				in["not disaggregated"] = in["not disaggregated"] || o.RoutedUS != Never &&
					c.Disaggregation.Decider == "prefix"
				continue
			case o.Reason == "transfer_timeout":
				in["a lease that ran out"] = true
			case o.PrefilledUS != Never && o.TransferBlocks == 0 && o.State == Completed:
				in["a prompt computed again after its lease"] = true
			case o.State != TimedOut:
			case o.PrefillEnqueuedUS == Never:
				in["a deadline on the way to the prefill replica"] = true
			case o.PrefilledUS == Never:
				in["a deadline at the prefill replica"] = true
			case o.TransferredUS == Never && o.TransferBlocks == 0:
				in["a deadline before the transfer"] = true
			case o.TransferredUS == Never:
				in["a deadline during the transfer"] = true
			default:
				in["a deadline after the transfer"] = true
			}
			in["hits on both sides"] = in["hits on both sides"] || o.DecodeCached > 0 && o.Cached > 0
			in["preempted"] = in["preempted"] || o.Preemptions > 0 && o.TransferredUS != Never
		}
		in["rejected"] = r.Outcomes[0].Reason == "too_long_for_cache"
		var last Transfer
		for _, list := range r.Transfers {
			for _, x := range list {
				in["transfers at the same time"] = in["transfers at the same time"] || x.StartedUS < last.EndedUS
				last = x
			}
		}
		for name, is := range in {
			if is {
				seen[name]++
			}
		}
	}
	t.Log(seen)
	for name, n := range seen {
		if n < 4 {
			t.Errorf("%s: in %d cases", name, n)
		}
	}
	if len(seen) != 18 {
		t.Errorf("%d of 18 situations", len(seen))
	}
}
