package engine

import (
	"cmp"
	"slices"
	"testing"

	"blis/pkg/des"
	"blis/pkg/internal/reference"
	"blis/pkg/kv"
	"blis/pkg/link"
	"blis/pkg/tier"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestReferenceWithTier is TestReference with a tier below the cache: transfers must be equal, too. Then stores are
// left out of the transfers, and all else must stay the same, however often the growing sequences are looked at.
func TestReferenceWithTier(t *testing.T) {
	cases := uint64(600)
	if testing.Short() {
		cases = 100
	}
	counts := map[string]int{}
	for seed := range cases {
		c, requests := reference.RandomHosts(seed)
		c.Host.ThrashUS = int64(seed) % 7 * 20_000
		c.Replicas, c.Routing, c.Scorers, c.SnapshotUS = 1, "round-robin", nil, 0
		want := reference.Run(c, requests)
		for _, quiet := range []int{0, 1, 7, 1 << 30} {
			compareWithTier(t, seed, c, requests, want, quiet)
		}
		if abortBetweenSteps(requests, want) {
			counts["aborted between steps"]++
			compareWithTier(t, seed, c, requests, reference.Run(c, requests), 0)
		}
		for _, x := range want.Transfers[0] {
			if x.Load && x.Again > 0 && x.Again < x.Blocks {
				counts["partly again"]++
			}
		}
		h := want.Host
		for name, n := range map[string]int{"late": h.Late, "orphans": h.Orphans, "closed": h.Closed,
			"given": h.Given, "flushed": h.Flushed,
			"waits": h.Waits, "idle": h.Idle, "whole": h.Whole, "stuck": h.Stuck} {
			if n > 0 {
				counts[name]++
			}
		}
	}
	t.Log(counts)
	for _, name := range []string{"partly again", "late", "orphans", "closed", "flushed", "waits", "idle", "whole",
		"given", "stuck", "aborted between steps"} {
		if counts[name] < int(cases)/100 {
			t.Errorf("%s in %d cases, want more", name, counts[name])
		}
	}
}

// compareWithTier compares the engine with a run of the reference.
func compareWithTier(t *testing.T, seed uint64, c reference.Config, requests []reference.Request,
	want reference.Result, quiet int) {
	t.Helper()
	p := newTierHarness(t, c, requests, want, quiet)
	if end, ok := p.run(); !ok {
		t.Fatalf("seed %d: no progress at %d", seed, end)
	}
	differ := func(what, diff string) {
		if diff != "" {
			t.Fatalf("seed %d, quiet %d: %s of the reference (-) and the engine (+):\n%s", seed, quiet, what, diff)
		}
	}
	differ("outcomes", gocmp.Diff(observedOf(want, requests), p.observed))
	differ("steps", gocmp.Diff(want.Steps[0], p.steps))
	differ("transfers", diffTransfers(want.Transfers[0], p.transfers, quiet > 0))
	s := p.engine.Tier()
	differ("evicted blocks", gocmp.Diff(int64(want.Host.Evicted), s.Evicted))
	differ("refused blocks", gocmp.Diff(int64(want.Host.Refused), s.Refused))
	var again int64
	for _, x := range want.Transfers[0] {
		again += int64(x.Again)
	}
	differ("blocks loaded again", gocmp.Diff(again, s.Again))
}

// abortBetweenSteps sets a deadline to the end of a step: that of the first request that has a part of this step and
// none of the next one, although it is not done. It returns false if there is none. With asynchronous scheduling the
// next step is formed by then, without the request.
func abortBetweenSteps(requests []reference.Request, r reference.Result) bool {
	steps := r.Steps[0]
	for k := range steps[:max(len(steps)-1, 0)] {
		for _, x := range steps[k].Shares {
			is := func(y reference.Share) bool { return y.ID == x.ID }
			i := slices.IndexFunc(requests, func(q reference.Request) bool { return q.ID == x.ID })
			o := &r.Outcomes[i]
			if o.State != reference.Completed || o.TokensUS[len(o.TokensUS)-1] == steps[k].EndUS ||
				slices.ContainsFunc(steps[k+1].Shares, is) {
				continue
			}
			requests[i].DeadlineUS = steps[k].EndUS
			return true
		}
	}
	return false
}

// offloadOf converts the tier of the reference, nil if there is none.
func offloadOf(c reference.Config, tree *kv.Tree) *OffloadConfig {
	h := c.Host
	if h == nil {
		return nil
	}
	return &OffloadConfig{Store: tier.NewStore(tree, h.Blocks, h.Eviction), BlockBytes: float64(h.BlockBytes),
		MinLoadBlocks: h.MinLoad, Threshold: h.Threshold, Lazy: h.Lazy,
		Loads: link.Speed(h.Load), Stores: link.Speed(h.Store),
		ThrashUS:  h.ThrashUS,
		ByArrival: c.Scheduler != "" && c.Scheduler != "fcfs"}
}

// endTransfers ends the transfers that are done at now.
func (p *harness) endTransfers(now des.Time) {
	ended := false
	p.underWay = slices.DeleteFunc(p.underWay, func(x Transfer) bool {
		if x.Ended != now {
			return false
		}
		ended = true
		request := ""
		if x.Tag >= 0 {
			request = p.requests[x.Tag].ID
		}
		p.transfers = append(p.transfers, reference.Transfer{Load: x.Load, Pull: x.Pull,
			Request: request, Blocks: int(x.Blocks), AskedUS: x.Asked, StartedUS: x.Started,
			EndedUS: x.Ended})
		return true
	})
	if !ended {
		return
	}
	for _, tag := range p.engine.EndTransfers(now) {
		p.release(tag)
	}
	for _, x := range p.engine.EndedLoads() {
		for i := range p.transfers {
			if y := &p.transfers[i]; y.Load && y.EndedUS == x.Ended && y.StartedUS == x.Started {
				y.Again = int(x.Again)
			}
		}
	}
}

// diffTransfers compares transfers, or only loads. Of those that end at one instant any may be first.
func diffTransfers(want, got []reference.Transfer, onlyLoads bool) string {
	sorted := func(list []reference.Transfer) []reference.Transfer {
		list = slices.DeleteFunc(slices.Clone(list), func(x reference.Transfer) bool { return onlyLoads && !x.Load })
		slices.SortFunc(list, func(a, b reference.Transfer) int {
			return cmp.Or(cmp.Compare(a.EndedUS, b.EndedUS), cmp.Compare(a.StartedUS, b.StartedUS),
				cmp.Compare(a.Blocks, b.Blocks), cmp.Compare(a.Request, b.Request))
		})
		return list
	}
	return gocmp.Diff(sorted(want), sorted(got), cmpopts.EquateEmpty())
}
