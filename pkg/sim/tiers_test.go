package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
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
	compareSeeds(t, 3000, 200, reference.RandomHostFleets, 3488)
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
	if h.Threshold > 0 {
		d.KVOffload.Policy, d.KVOffload.Threshold = "threshold", h.Threshold
	}
	d.Computed.KVBlockBytes, d.Computed.KVTierBlocks = int64(h.BlockBytes), h.Blocks
}

func loadedTokens(o *stream.Outcome) int {
	if o.LoadedTokens == nil {
		return 0
	}
	return int(o.LoadedTokens.CPU)
}

func transferOf(x *stream.Transfer) reference.Transfer {
	return reference.Transfer{Load: x.Type != stream.TransferStore, Pull: x.Type == stream.TransferPD,
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
	var stored, loaded int64
	for _, list := range want.Transfers {
		for _, x := range list {
			switch {
			case x.Failed || x.Pull:
			case x.Load:
				loaded += int64(x.Blocks)
			default:
				stored += int64(x.Blocks)
			}
		}
	}
	h, t := want.Host, tiers.CPU
	if t.StoredBlocks != stored || t.LoadedBlocks != loaded || t.EvictedBlocks != int64(h.Evicted) ||
		t.RefusedBlocks != int64(h.Refused) {
		return fmt.Sprintf("%d blocks stored, %d loaded, %d evicted and %d refused; the metrics are %+v", stored,
			loaded, h.Evicted, h.Refused, t)
	}
	return ""
}

// diffTransfers compares the transfers of each replica. Of those that end at one instant any may be first.
func diffTransfers(want, got [][]reference.Transfer) string {
	for i := range want {
		for _, list := range [][]reference.Transfer{want[i], got[i]} {
			slices.SortFunc(list, func(a, b reference.Transfer) int {
				return cmp.Or(cmp.Compare(a.EndedUS, b.EndedUS), cmp.Compare(a.StartedUS, b.StartedUS),
					cmp.Compare(a.Blocks, b.Blocks), cmp.Compare(a.Request, b.Request))
			})
		}
		if diff := gocmp.Diff(want[i], got[i], cmpopts.EquateEmpty()); diff != "" {
			return fmt.Sprintf("transfers of replica %d: %s", i, diff)
		}
	}
	return ""
}
