package sim

import (
	"bytes"
	"strings"
	"testing"

	"blis/pkg/internal/reference"
)

// TestQuietStores: without records of transfers the ends of stores are no events, and replicas with a tier coast.
// Outcomes and metrics must be those of a run with all these records, also where requests are far apart.
func TestQuietStores(t *testing.T) {
	for _, seed := range seeds(1000, 100, 267, 324, 356, 834, 1075, 3674, 20614) {
		c, requests := reference.RandomHosts(seed)
		compareQuiet(t, seed, c, requests)
	}
}

// TestQuietStoresOfFleets is TestQuietStores with an auto-scaler, replicas that fail, or both.
func TestQuietStoresOfFleets(t *testing.T) {
	for _, seed := range seeds(1000, 100) {
		c, requests := reference.RandomHostFleets(seed)
		compareQuiet(t, seed, c, requests)
	}
}

// TestQuietStoresOfPools is TestQuietStores with prefill and decode pools.
func TestQuietStoresOfPools(t *testing.T) {
	for _, seed := range seeds(1000, 100) {
		c, requests := reference.RandomDisaggregationHosts(seed)
		compareQuiet(t, seed, c, requests)
	}
}

// TestQuietStoresOfStorages is TestQuietStores with a storage below the tiers.
func TestQuietStoresOfStorages(t *testing.T) {
	for _, seed := range seeds(1000, 100) {
		c, requests := reference.RandomStorages(seed)
		compareQuiet(t, seed, c, requests)
	}
}

// TestQuietStoresOfTieredRouting is TestQuietStores with a router that reads the tiers. It must see the ends of stores.
func TestQuietStoresOfTieredRouting(t *testing.T) {
	for _, seed := range seeds(1000, 100) {
		c, requests := reference.RandomTieredRouting(seed)
		compareQuiet(t, seed, c, requests)
	}
}

// compareQuiet compares a run with all records of transfers with those without.
func compareQuiet(t *testing.T, seed uint64, c reference.Config, requests []reference.Request) {
	t.Helper()
	for i := range requests {
		later := requests[i].ArrivalUS * int64(seed%3*seed%20)
		requests[i].ArrivalUS += later
		if requests[i].DeadlineUS > 0 {
			requests[i].DeadlineUS += later
		}
	}
	run := func(trace string, check bool) (lines []string) {
		o := testOptions(c)
		o.Trace, o.Check = trace, check
		var out bytes.Buffer
		must(runCluster(t.Context(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)), &out, o))
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, `{"kind":"outcome"`) || strings.HasPrefix(line, `{"kind":"metrics"`) {
				lines = append(lines, line)
			}
		}
		if len(lines) < 1 {
			t.Fatalf("seed %d: %s", seed, out.String())
		}
		return lines
	}
	full := run("full", false)
	for _, check := range []bool{false, true} {
		if diff := difference(full, run("decisions", check)); diff != "" {
			t.Fatalf("seed %d, check %v: with (-) and without transfers (+):\n%s", seed, check, diff)
		}
	}
}
