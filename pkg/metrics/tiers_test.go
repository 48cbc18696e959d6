package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTiersByHand: of three replicas two have a tier. Shares are of the time of these, and of the prompt tokens that
// they do not get from prefill replicas.
func TestTiersByHand(t *testing.T) {
	got := tiers([]ReplicaTotals{
		{UpUS: 1000, QueriedTokens: 100, Tier: &TierTotals{HitTokens: 20, StoredBlocks: 3, LoadedBlocks: 2,
			EvictedBlocks: 1, RefusedBlocks: 4, PeakBlocks: 5, Blocks: 10, LoadUS: 100, StoreUS: 50, Loads: 2,
			Links: 1, LoadWaitUS: 3000, LongestWaitUS: 2000}},
		{UpUS: 5000, QueriedTokens: 500},
		{UpUS: 3000, QueriedTokens: 500, PulledTokens: 200, Tier: &TierTotals{HitTokens: 60, StoredBlocks: 30,
			LoadedBlocks: 20, EvictedBlocks: 10, RefusedBlocks: 40, PeakBlocks: 2, Blocks: 10, LoadUS: 300,
			StoreUS: 150, Loads: 2, Links: 1, LoadWaitUS: 5000, LongestWaitUS: 4000}},
	})
	want := &KVTiers{CPU: KVTier{HitTokens: 80, HitRatio: new(0.2), StoredBlocks: 33, LoadedBlocks: 22,
		EvictedBlocks: 11, RefusedBlocks: 44, UtilMax: new(0.5), LoadBusy: new(0.1), StoreBusy: new(0.05),
		LoadWaitMS: &Wait{2, 4}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if none := tiers([]ReplicaTotals{{UpUS: 5000}}); none != nil {
		t.Errorf("without tiers: %+v", none)
	}
	idle := tiers([]ReplicaTotals{{Tier: &TierTotals{Blocks: 4}}})
	if idle == nil || idle.CPU.LoadWaitMS != nil || idle.CPU.HitRatio != nil || *idle.CPU.UtilMax != 0 {
		t.Errorf("a tier without use: %+v", idle)
	}
}

// TestSharedStorageByHand: the first of two replicas has the blocks and the links of a storage that both use.
func TestSharedStorageByHand(t *testing.T) {
	got := tiers([]ReplicaTotals{
		{UpUS: 1000, QueriedTokens: 100, Tier: &TierTotals{Blocks: 10}, Storage: &TierTotals{HitTokens: 20,
			StoredBlocks: 3, LoadedBlocks: 2, EvictedBlocks: 1, RefusedBlocks: 4, PeakBlocks: 5, Blocks: 10,
			LoadUS: 100, StoreUS: 50, Loads: 1, LoadWaitUS: 1000, LongestWaitUS: 1000, Links: 1}},
		{UpUS: 1000, QueriedTokens: 100, Tier: &TierTotals{Blocks: 10}, Storage: &TierTotals{HitTokens: 30,
			StoredBlocks: 30, LoadedBlocks: 20, LoadUS: 300, StoreUS: 150, Loads: 1, LoadWaitUS: 3000,
			LongestWaitUS: 3000}},
	})
	want := &KVTier{HitTokens: 50, HitRatio: new(0.25), StoredBlocks: 33, LoadedBlocks: 22, EvictedBlocks: 1,
		RefusedBlocks: 4, UtilMax: new(0.5), LoadBusy: new(0.4), StoreBusy: new(0.2), LoadWaitMS: &Wait{2, 3}}
	if diff := cmp.Diff(want, got.Storage); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
