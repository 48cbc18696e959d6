package stream

import "math"

// Snapshot is what the router read of a replica at an instant, written at trace level
// full if it is periodic or on demand. Of several readings between which the replica
// did not change only the last one is written, and later than it was made; what was
// not read is absent.
type Snapshot struct {
	Kind       string `json:"kind"`
	AtUS       Micros `json:"at_us"`
	Deployment string `json:"deployment"`
	Replica    Index  `json:"replica"`
	QueueDepth Index  `json:"queue_depth,omitzero"`
	Running    Index  `json:"running,omitzero"`
	// KVUtil is the share of its blocks in use, HitRate that of prompt tokens found
	// cached; the Recent are means, all three over the last 10 s.
	KVUtil       Number `json:"kv_util,omitzero"`
	HitRate      Number `json:"hit_rate,omitzero"`
	RecentTTFTMS Number `json:"recent_ttft_ms,omitzero"`
	RecentTPOTMS Number `json:"recent_tpot_ms,omitzero"`
	EstWaitMS    Number `json:"est_wait_ms,omitzero"`
	// Cache: the content of the block cache was read.
	Cache bool `json:"cache,omitempty"`
}

// NewSnapshot is one in which nothing was read.
func NewSnapshot(at Micros, deployment string, replica Index) Snapshot {
	none := Number(math.NaN())
	return Snapshot{Kind: KindSnapshot, AtUS: at, Deployment: deployment, Replica: replica, QueueDepth: Nowhere, Running: Nowhere,
		KVUtil: none, HitRate: none, RecentTTFTMS: none, RecentTPOTMS: none, EstWaitMS: none}
}
