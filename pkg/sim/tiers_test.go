package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/metrics"
	"blis/pkg/stream"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestReferenceOnTiers is TestReference with a tier below the cache: all times, counts, steps and transfers must be
// equal.
func TestReferenceOnTiers(t *testing.T) {
	compareSeeds(t, 3000, 200, reference.RandomHosts, 2109, 3534, 6213, 6312)
}

// TestReferenceOnTiersOfFleets is TestReferenceOnTiers with an auto-scaler, replicas that fail, or both.
func TestReferenceOnTiersOfFleets(t *testing.T) {
	compareSeeds(t, 3000, 200, reference.RandomHostFleets, 1487, 3488)
}

// TestReferenceOnStorages is TestReferenceOnTiers with a storage below the tiers.
func TestReferenceOnStorages(t *testing.T) {
	compareSeeds(t, 3000, 200, reference.RandomStorages)
}

// TestReferenceOnTieredRouting is TestReferenceOnTiers with a router that reads the tiers, fresh or stale.
func TestReferenceOnTieredRouting(t *testing.T) {
	compareSeeds(t, 3000, 200, reference.RandomTieredRouting)
}

// setTier sets the tier of the reference's configuration.
func setTier(d *cluster.Deployment, c *reference.Config) {
	h := c.Host
	if h == nil {
		return
	}
	d.KVTiers = []cluster.KVTier{{Tier: cluster.TierCPU, Blocks: h.Blocks, Load: cluster.KVLink(h.Load),
		Store: cluster.KVLink(h.Store)}}
	d.KVOffload = &cluster.KVOffload{Policy: "eager", Eviction: h.Eviction, MinLoadBlocks: h.MinLoad}
	if h.Lazy {
		d.KVOffload.Policy = cluster.Lazy
	}
	if h.Threshold > 0 {
		d.KVOffload.Policy, d.KVOffload.Threshold = "threshold", h.Threshold
	}
	d.Computed.KVBlockBytes, d.Computed.KVTierBlocks = int64(h.BlockBytes), h.Blocks
	if x := h.Storage; x != nil {
		d.KVTiers = append(d.KVTiers, cluster.KVTier{Tier: cluster.TierStorage, Blocks: x.Blocks, Shared: x.Shared,
			Load: cluster.KVLink(x.Load), Store: cluster.KVLink(x.Store)})
		d.KVOffload.Storage, d.Computed.KVStorageBlocks = "write-through", x.Blocks
		if x.OnEviction {
			d.KVOffload.Storage = cluster.OnEviction
		}
	}
}

func loadedTokens(o *stream.Outcome) int {
	return int(o.LoadedTokens.Total())
}

func promotedTokens(o *stream.Outcome) int {
	if o.LoadedTokens == nil {
		return 0
	}
	return int(o.LoadedTokens.Storage)
}

func transferOf(x *stream.Transfer) reference.Transfer {
	return reference.Transfer{Load: x.Type != stream.TransferStore, Pull: x.Type == stream.TransferPD,
		Storage: x.From == stream.MemoryStorage || x.To == stream.MemoryStorage,
		Request: x.Request, Blocks: int(x.Blocks),
		AskedUS: int64(x.AskedUS), StartedUS: int64(x.StartedUS), EndedUS: int64(x.EndedUS),
		Failed: x.Incomplete}
}

// tierTotals reports metrics of the tiers that are not the sums over all transfers.
func (got *runFields) tierTotals(want reference.Result) string {
	tiers := got.metrics.KV.Tiers
	if tiers == nil {
		return ""
	}
	var again, loaded float64
	for _, list := range want.Transfers {
		for _, x := range list {
			if x.Load && !x.Storage && !x.Pull && !x.Failed {
				again, loaded = again+float64(x.Again), loaded+float64(x.Blocks)
			}
		}
	}
	if rate := got.metrics.KV.ThrashingRate; (rate == nil) != (loaded == 0) || rate != nil && *rate != again/loaded {
		return fmt.Sprintf("%g of %g blocks are loaded again; the metrics are %v", again, loaded, rate)
	}
	h := want.Host
	cpu := movedBlocks(want, false)
	cpu.EvictedBlocks, cpu.RefusedBlocks = int64(h.Evicted), int64(h.Refused)
	if diff := diffTier(cpu, &tiers.CPU); diff != "" || tiers.Storage == nil {
		return diff
	}
	below := movedBlocks(want, true)
	below.EvictedBlocks, below.RefusedBlocks = int64(h.Below.Evicted), int64(h.Below.Refused)
	return diffTier(below, tiers.Storage)
}

// movedBlocks sums the blocks of transfers to and from the storage, or above it.
func movedBlocks(want reference.Result, storage bool) (sum metrics.KVTier) {
	for _, list := range want.Transfers {
		for _, x := range list {
			switch {
			case x.Failed || x.Pull || x.Storage != storage:
			case x.Load:
				sum.LoadedBlocks += int64(x.Blocks)
			default:
				sum.StoredBlocks += int64(x.Blocks)
			}
		}
	}
	return sum
}

func diffTier(want metrics.KVTier, t *metrics.KVTier) string {
	if t.StoredBlocks != want.StoredBlocks || t.LoadedBlocks != want.LoadedBlocks ||
		t.EvictedBlocks != want.EvictedBlocks || t.RefusedBlocks != want.RefusedBlocks {
		return fmt.Sprintf("%d blocks stored, %d loaded, %d evicted and %d refused; the metrics are %+v",
			want.StoredBlocks, want.LoadedBlocks, want.EvictedBlocks, want.RefusedBlocks, t)
	}
	return ""
}

// diffTransfers compares the transfers of each replica. Of those that end at one instant any may be first.
func diffTransfers(want, got [][]reference.Transfer) string {
	for i := range want {
		for _, list := range [][]reference.Transfer{want[i], got[i]} {
			slices.SortFunc(list, func(a, b reference.Transfer) int {
				return cmp.Or(cmp.Compare(a.EndedUS, b.EndedUS), cmp.Compare(a.StartedUS, b.StartedUS),
					cmp.Compare(a.Blocks, b.Blocks), cmp.Compare(a.Request, b.Request),
					cmp.Compare(kindOf(a), kindOf(b)))
			})
		}
		again := cmpopts.IgnoreFields(reference.Transfer{}, "Again") // which metrics sum
		if diff := gocmp.Diff(want[i], got[i], cmpopts.EquateEmpty(), again); diff != "" {
			return fmt.Sprintf("transfers of replica %d: %s", i, diff)
		}
	}
	return ""
}

// kindOf orders transfers that are equal otherwise.
func kindOf(t reference.Transfer) string { return fmt.Sprint(t.Storage, t.Load, t.Pull) }
