package sim

import (
	"fmt"
	"maps"
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/link"
	"blis/pkg/metrics"
	"blis/pkg/stream"
	"blis/pkg/tier"
)

// transfer is a transfer between a replica's cache and its tier.
type transfer struct {
	engine.Transfer
	number  int64
	replica int32
	request string // id
}

// transfers are the transfers under way; nil if no replica has a tier.
type transfers struct {
	slots []transfer
	spare []int32
	count int64            // so far
	left  map[int32]string // the ids of requests that are final, by tag
}

// offloadConfig converts the tier of a deployment, nil if it has none.
func offloadConfig(d *cluster.Deployment, tree *kv.Tree, byArrival bool) *engine.OffloadConfig {
	if len(d.KVTiers) == 0 {
		return nil
	}
	t := &d.KVTiers[0]
	return &engine.OffloadConfig{Store: tier.NewStore(tree, d.Computed.KVTierBlocks, d.KVOffload.Eviction),
		BlockBytes: float64(d.Computed.KVBlockBytes), MinLoadBlocks: d.KVOffload.MinLoadBlocks,
		Threshold: d.KVOffload.UsedShare(),
		Loads:     link.Speed(t.Load), Stores: link.Speed(t.Store), ByArrival: byArrival}
}

// schedule schedules the ends of the transfers that replica i has just asked for.
func (all *transfers) schedule(s *simulation, i int32) {
	for _, t := range s.replicas[i].engine.Transfers() {
		id := all.left[t.Tag]
		if !t.Left {
			id = s.request(t.Tag).out.ID
		}
		x := transfer{t, all.count, i, id}
		all.count++
		slot := int32(len(all.slots))
		if last := len(all.spare) - 1; last >= 0 {
			slot, all.spare = all.spare[last], all.spare[:last]
			all.slots[slot] = x
		} else {
			all.slots = append(all.slots, x)
		}
		s.events.queue.Push(des.NewEvent(t.Ended, transferEnd, x.number, slot))
	}
}

// endTransfer ends a transfer. Its replica may then have work.
func (s *simulation) endTransfer(slot int32) error {
	i := s.transfers.slots[slot].replica
	s.telemetry.beforeChange(s, i, s.events.instantDone)
	for _, tag := range s.replicas[i].engine.EndTransfers(s.now) {
		s.depart(tag)
	}
	s.telemetry.afterChange(s, i)
	s.router.flow.schedule(s)
	s.markReady(i)
	s.transfers.spare = append(s.transfers.spare, slot)
	return s.observers.notify(s, onTransfer, slot)
}

// start schedules the transfers for which replica i asked when it formed batches. If it has requests and no step
// started, they all wait for transfers.
func (all *transfers) start(s *simulation, i int32, started bool) error {
	all.schedule(s, i)
	formed := s.replicas[i].engine.Formed()
	for _, step := range formed {
		for _, a := range step.Admitted {
			if a.Loaded > 0 {
				s.request(a.Tag).out.LoadedTokens = &stream.LoadedTokens{CPU: int64(a.Loaded)}
			}
		}
	}
	if started || len(formed) == 0 {
		return nil
	}
	for _, step := range formed {
		s.recordBatch(i, step)
	}
	s.telemetry.afterChange(s, i)
	return s.observers.notify(s, onWait, i)
}

func (all *transfers) clone() *transfers {
	if all == nil {
		return nil
	}
	return &transfers{slices.Clone(all.slots), slices.Clone(all.spare), all.count, maps.Clone(all.left)}
}

// pending returns how many transfers are under way.
func (all *transfers) pending() int {
	if all == nil {
		return 0
	}
	return len(all.slots) - len(all.spare)
}

// tierTotals returns the totals of a replica's tier, nil if it has none.
func tierTotals(e *engine.Engine) *metrics.TierTotals {
	t := e.Tier()
	if t == nil {
		return nil
	}
	return &metrics.TierTotals{HitTokens: t.HitTokens, StoredBlocks: t.Stored, LoadedBlocks: t.Loaded,
		EvictedBlocks: t.Evicted, RefusedBlocks: t.Refused, PeakBlocks: int64(t.Peak), Blocks: int64(t.Blocks),
		LoadUS: t.LoadUS, StoreUS: t.StoreUS, Loads: t.Loads, LoadWaitUS: t.WaitUS, LongestWaitUS: t.LongestWaitUS}
}

// transfer records a transfer that has ended.
func (o *traceWriter) transfer(s *simulation, t *transfer) error {
	r := &s.replicas[t.replica]
	d := &s.deployments[r.deployment]
	x := stream.Transfer{Kind: stream.KindTransfer, ID: fmt.Sprintf("transfer-%06d", t.number),
		Type: stream.TransferStore, From: stream.MemoryGPU, To: stream.MemoryCPU, Deployment: d.id, Replica: r.index,
		Request: t.request, Blocks: int64(t.Blocks), Bytes: int64(t.Blocks) * d.blockBytes,
		AskedUS: stream.Micros(t.Asked), StartedUS: stream.Micros(t.Started), EndedUS: stream.Micros(t.Ended)}
	if t.Load {
		x.Type, x.From, x.To = stream.TransferLoad, stream.MemoryCPU, stream.MemoryGPU
	}
	return o.w.Any(&x)
}
