package metrics

import "blis/pkg/stream"

// PD reports disaggregated deployments. Requests are those whose prompt a prefill replica was to compute, Share their
// share of the requests that were routed. Transfers of KV blocks to decode replicas have ended; Transfer is from the
// start to the end of each. KVWait is from the end of a prompt's computation to the end of its transfer.
//
// Of a run, transfers are all that ended, also those whose request had left. Of selected requests, they are those that
// ended before their request did, and their bytes and times are unknown.
//
// HeldBack are the requests that backpressure kept from being routed at once. HeldBackPeak is the maximum that waited
// at one time without flow control. ExpiredLeases are requests whose blocks were freed before they came to the decode
// replica.
type PD struct {
	Requests          int64         `json:"requests"`
	HeldBack          int64         `json:"held_back,omitempty"`
	HeldBackPeak      int64         `json:"held_back_peak,omitempty"`
	ExpiredLeases     int64         `json:"expired_leases,omitempty"`
	Share             *float64      `json:"share,omitempty"`
	Transfers         int64         `json:"transfers"`
	TransferredBlocks int64         `json:"transferred_blocks"`
	TransferredBytes  *int64        `json:"transferred_bytes,omitempty"`
	Transfer          *Distribution `json:"transfer,omitempty"`
	KVWait            *Distribution `json:"kv_wait,omitempty"`
	Prefill           *PoolUse      `json:"prefill,omitempty"`
	Decode            *PoolUse      `json:"decode,omitempty"`
}

// PoolUse reports the replicas of a pool together: the share of time in which steps ran, and the mean share of used
// KV blocks in that time.
type PoolUse struct {
	Replicas    int64    `json:"replicas"`
	Utilization *float64 `json:"utilization,omitempty"`
	KVUtilMean  *float64 `json:"kv_util_mean,omitempty"`
}

// Pool is the pool of a disaggregated deployment that a replica belongs to.
type Pool uint8

// Pools.
const (
	NoPool Pool = iota
	PrefillPool
	DecodePool
)

// pd gathers PD. Times are in µs. Transfers, with blocks and bytes, are those of the run; waits and waitedBlocks are by
// the outcomes.
type pd struct {
	requests, routed, blocks, bytes, waitedBlocks int64
	transfers, waits                              column
	held, heldPeak, expired                       int64
}

// SetBackpressure sets how many requests backpressure held back, the most at one time, and how many leases ran out.
func (a *Accumulator) SetBackpressure(held, peak, expired int64) {
	a.pd.held, a.pd.heldPeak, a.pd.expired = held, peak, expired
}

func (p *pd) add(o *stream.Outcome, spilled *spilled) {
	if !o.RoutedUS.IsZero() {
		p.routed++
	}
	if o.PrefillReplica.IsZero() {
		return
	}
	p.requests++
	if !o.TransferredUS.IsZero() {
		p.waitedBlocks += o.TransferBlocks
		spilled.add(&p.waits, uint64(o.TransferredUS-o.PrefilledUS))
	}
}

// AddTransfer counts a transfer between pools that took us µs.
func (a *Accumulator) AddTransfer(us, blocks, bytes int64) {
	a.spilled.add(&a.pd.transfers, uint64(us))
	a.pd.blocks, a.pd.bytes = a.pd.blocks+blocks, a.pd.bytes+bytes
}

// tree returns the report, nil if no replica belongs to a pool and no request was disaggregated.
func (p *pd) tree(replicas []ReplicaTotals, spilled *spilled) *PD {
	x := &PD{Requests: p.requests, Share: ratio(p.requests, p.routed),
		Transfers: p.waits.n, TransferredBlocks: p.waitedBlocks,
		HeldBack: p.held, HeldBackPeak: p.heldPeak, ExpiredLeases: p.expired,
		Prefill: poolUse(replicas, PrefillPool), Decode: poolUse(replicas, DecodePool)}
	if x.Prefill == nil && p.requests == 0 {
		return nil
	}
	if x.Prefill != nil { // a run
		bytes := p.bytes
		x.Transfers, x.TransferredBlocks, x.TransferredBytes = p.transfers.n, p.blocks, &bytes
	}
	x.Transfer, x.KVWait = spilled.micros(&p.transfers), spilled.micros(&p.waits)
	return x
}

func poolUse(replicas []ReplicaTotals, of Pool) *PoolUse {
	var x PoolUse
	var up, busy int64
	var blockUS, capacity float64
	for i := range replicas {
		if t := &replicas[i]; t.Pool == of {
			x.Replicas++
			up, busy, blockUS = up+t.UpUS, busy+t.BusyUS, blockUS+t.BlockUS
			capacity += float64(float64(t.Blocks) * float64(t.UpUS))
		}
	}
	if x.Replicas == 0 {
		return nil
	}
	x.Utilization = ratio(busy, up)
	if capacity > 0 {
		mean := blockUS / capacity
		x.KVUtilMean = &mean
	}
	return &x
}
