package metrics

// KVTiers reports the tiers below the KV caches, of all replicas that have them.
type KVTiers struct {
	CPU KVTier `json:"cpu"`
	// Storage is absent if no replica has any. Its transfers are those to and from the memory of the host: it loads
	// blocks when they are promoted.
	Storage *KVTier `json:"storage,omitempty"`
}

// KVTier reports a tier. HitTokens are the prompt and generated tokens that requests loaded when they first entered a
// batch, HitRatio their share of the prompt tokens of the requests that ask for them: all at replicas with a tier but
// those whose prompts come from a prefill replica. Blocks count each time: StoredBlocks and LoadedBlocks in transfers
// that have ended, EvictedBlocks removed for others, RefusedBlocks not stored for lack of room. UtilMax is the largest
// share of a replica's tier in use. LoadBusy and StoreBusy are the shares of time in which the links ran transfers that
// have ended. LoadWaitMS is the time from the request for a load to its end.
type KVTier struct {
	HitTokens     int64    `json:"hit_tokens"`
	HitRatio      *float64 `json:"hit_ratio,omitempty"`
	StoredBlocks  int64    `json:"stored_blocks"`
	LoadedBlocks  int64    `json:"loaded_blocks"`
	EvictedBlocks int64    `json:"evicted_blocks"`
	RefusedBlocks int64    `json:"refused_blocks"`
	UtilMax       *float64 `json:"util_max,omitempty"`
	LoadBusy      *float64 `json:"load_busy,omitempty"`
	StoreBusy     *float64 `json:"store_busy,omitempty"`
	LoadWaitMS    *Wait    `json:"load_wait_ms,omitempty"`
}

// Wait summarizes waiting times, in ms.
type Wait struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// TierTotals are the totals of a replica's tier. Times are in µs.
type TierTotals struct {
	HitTokens, StoredBlocks, LoadedBlocks, EvictedBlocks, RefusedBlocks int64
	ThrashedBlocks                                                      int64 // see KV.ThrashingRate
	PeakBlocks, Blocks                                                  int64
	LoadUS, StoreUS                                                     int64
	Loads, LoadWaitUS, LongestWaitUS                                    int64
	// Links is the number of links in each direction. It is 0, as the counts of blocks that are not in transfers, where
	// another replica has them.
	Links int64
}

// tiers returns the report of the replicas' tiers, nil if there are none.
func tiers(replicas []ReplicaTotals) *KVTiers {
	cpu := tierOf(replicas, func(r *ReplicaTotals) *TierTotals { return r.Tier })
	if cpu == nil {
		return nil
	}
	return &KVTiers{*cpu, tierOf(replicas, func(r *ReplicaTotals) *TierTotals { return r.Storage })}
}

// thrashingRate returns the share of loaded blocks that thrash, nil if none are loaded.
func thrashingRate(replicas []ReplicaTotals) *float64 {
	var thrashed, loaded int64
	for i := range replicas {
		if t := replicas[i].Tier; t != nil {
			thrashed, loaded = thrashed+t.ThrashedBlocks, loaded+t.LoadedBlocks
		}
	}
	return ratio(thrashed, loaded)
}

// tierOf returns the report of one tier, nil if no replica has it.
func tierOf(replicas []ReplicaTotals, of func(*ReplicaTotals) *TierTotals) *KVTier {
	var c KVTier
	var peak float64
	var queried, up, loadUS, storeUS, loads, waitUS, longest int64
	for i := range replicas {
		r := &replicas[i]
		t := of(r)
		if t == nil {
			continue
		}
		c.HitTokens += t.HitTokens
		c.StoredBlocks += t.StoredBlocks
		c.LoadedBlocks += t.LoadedBlocks
		c.EvictedBlocks += t.EvictedBlocks
		c.RefusedBlocks += t.RefusedBlocks
		peak = max(peak, float64(t.PeakBlocks)/float64(max(1, t.Blocks)))
		c.UtilMax = &peak
		queried += r.QueriedTokens - r.PulledTokens
		up += t.Links * r.UpUS
		loadUS, storeUS = loadUS+t.LoadUS, storeUS+t.StoreUS
		loads, waitUS, longest = loads+t.Loads, waitUS+t.LoadWaitUS, max(longest, t.LongestWaitUS)
	}
	if c.UtilMax == nil {
		return nil
	}
	c.HitRatio, c.LoadBusy, c.StoreBusy = ratio(c.HitTokens, queried), ratio(loadUS, up), ratio(storeUS, up)
	if loads > 0 {
		c.LoadWaitMS = &Wait{Mean: float64(waitUS) / float64(loads) / 1000, Max: float64(longest) / 1000}
	}
	return &c
}
