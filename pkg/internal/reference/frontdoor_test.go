package reference

import "testing"

// TestRandomFrontDoors: the random cases have what is rare, and no server has more requests than its limit.
func TestRandomFrontDoors(t *testing.T) {
	const cases = 600
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomFrontDoor(seed)
		r := Run(c, requests)
		found := map[string]bool{}
		for _, o := range r.Outcomes {
			found[o.Reason] = true
			if o.State == Rejected && o.Retried && o.Reason != "admission" {
				found["retried"] = true
			}
			if o.State != Completed {
				continue
			}
			found["served"] = true
			if d := c.Door.Reqs; d != nil && servedAt(r.Outcomes, &o) > *d {
				t.Errorf("seed %d: %+v exceeds the limit of %d requests", seed, o, *d)
			}
		}
		for name := range found {
			counts[name]++
		}
	}
	t.Logf("of %d cases: %v", cases, counts)
	for name, least := range map[string]int{"max_num_queued_reqs": cases / 4, "max_num_queued_tokens": cases / 5,
		"retried": cases / 60, "served": cases / 2, "deadline": cases / 4, "replica_lost": cases / 60} {
		if counts[name] < least {
			t.Errorf("%s in %d of %d cases, want at least %d", name, counts[name], cases, least)
		}
	}
}

// servedAt is the number of completed requests that o's replica had when o came there, itself included.
func servedAt(all []Outcome, o *Outcome) (n int) {
	for _, x := range all {
		if x.State == Completed && len(x.TokensUS) > 0 && x.Replica == o.Replica && x.EnqueuedUS <= o.EnqueuedUS &&
			x.TokensUS[len(x.TokensUS)-1] > o.EnqueuedUS {
			n++
		}
	}
	return n
}
