package reference

import (
	"reflect"
	"slices"
	"testing"
)

// TestRandomHostsReachEverything runs random cases with memory of the hosts: each rule must apply in many of them.
func TestRandomHostsReachEverything(t *testing.T) {
	seen := countCases(RandomHosts)
	t.Log(seen)
	for i := range reflect.TypeFor[HostCounts]().NumField() - 1 { // the last one is for storages
		name := reflect.TypeFor[HostCounts]().Field(i).Name
		if fleet := slices.Contains([]string{"Failed", "Moved"}, name); seen[name] < 4 && !fleet {
			t.Errorf("%s in %d cases", name, seen[name])
		}
	}
	if seen["Loaded"] < 100 {
		t.Errorf("loads in %d cases", seen["Loaded"])
	}
}

// TestRandomHostFleetsReachEverything is TestRandomHostsReachEverything with replicas that come, go and fail.
func TestRandomHostFleetsReachEverything(t *testing.T) {
	seen := countCases(RandomHostFleets)
	t.Log(seen)
	for _, name := range []string{"Failed", "Moved", "Orphans", "Late", "Waits", "Loaded"} {
		if seen[name] < 2 {
			t.Errorf("%s in %d cases", name, seen[name])
		}
	}
}

// TestRandomDisaggregationHostsReachEverything is TestRandomHostsReachEverything with prefill and decode pools.
func TestRandomDisaggregationHostsReachEverything(t *testing.T) {
	seen := countCases(RandomDisaggregationHosts)
	t.Log(seen)
	for _, name := range []string{"Refused", "Evicted", "Busy", "Unfinished", "NoRoom", "Waits", "Orphans", "Whole",
		"Idle", "Last", "Flushed", "Failed", "Moved", "Loaded"} {
		if seen[name] < 4 {
			t.Errorf("%s in %d cases", name, seen[name])
		}
	}
}

// countCases returns in how many of 400 cases each of HostCounts is above 0.
func countCases(draw func(uint64) (Config, []Request)) map[string]int {
	seen := map[string]int{}
	for seed := range uint64(400) {
		c, requests := draw(seed)
		r := Run(c, requests)
		counts := reflect.ValueOf(r.Host)
		for i := range counts.NumField() {
			if x := counts.Field(i); x.CanInt() && x.Int() > 0 {
				seen[counts.Type().Field(i).Name]++
			}
		}
		if slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Loaded > 0 }) {
			seen["Loaded"]++
		}
	}
	return seen
}

// TestRandomStoragesReachEverything is TestRandomHostsReachEverything with a storage below the memory of the hosts.
func TestRandomStoragesReachEverything(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(400) {
		c, requests := RandomStorages(seed)
		r := Run(c, requests)
		counts := reflect.ValueOf(r.Host.Below)
		for i := range counts.NumField() {
			if counts.Field(i).Int() > 0 {
				seen[counts.Type().Field(i).Name]++
			}
		}
		if slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.FromStorage > 0 }) {
			seen["Loaded"]++
		}
		both := func(o Outcome) bool { return o.FromStorage > 0 && o.FromStorage < o.Loaded }
		if slices.ContainsFunc(r.Outcomes, both) {
			seen["LoadedFromBoth"]++
		}
	}
	t.Log(seen)
	for _, name := range []string{"Refused", "Evicted", "Promoted", "NoRoom", "Fetched", "Pinned", "Known", "Mixed",
		"Loaded", "LoadedFromBoth"} {
		if seen[name] < 4 {
			t.Errorf("%s in %d cases", name, seen[name])
		}
	}
}

// TestRandomTieredRoutingReachesEverything: the router expects blocks of each tier, rightly and, if what it has read is
// old, wrongly.
func TestRandomTieredRoutingReachesEverything(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(600) {
		c, requests := RandomTieredRouting(seed)
		r := Run(c, requests)
		any := func(name string, holds func(o Outcome) bool) {
			if slices.ContainsFunc(r.Outcomes, holds) {
				seen[name]++
			}
		}
		any("loaded as expected", func(o Outcome) bool { return o.Loaded > 0 && o.ExpectedCached == o.Cached+o.Loaded })
		any("promoted as expected", func(o Outcome) bool {
			return o.FromStorage > 0 && o.ExpectedCached == o.Cached+o.Loaded
		})
		if c.SnapshotUS > 0 {
			any("stale", func(o Outcome) bool { return o.ScheduledUS != Never && o.ExpectedCached > o.Cached+o.Loaded })
		}
	}
	t.Log(seen)
	for _, name := range []string{"loaded as expected", "promoted as expected", "stale"} {
		if seen[name] < 10 {
			t.Errorf("%s in %d cases", name, seen[name])
		}
	}
}
