package sim

import (
	"cmp"
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
	// fromPrefill is the prefill replica that the blocks come from, or missing. heldSeq is the number of the request in
	// its engine, pullSeq that at the decode replica. pulls: it runs. moved: the request goes on elsewhere.
	fromPrefill, heldSeq, pullSeq int32
	pulls, moved                  bool
	pullProgress                  // of one between pools
	// wakes: it is none, but the end of a store for which the replica waits. failed: one of its ends is lost.
	wakes, failed bool
}

// transfers are the transfers under way; nil if no replica has a tier.
type transfers struct {
	slots []transfer
	spare []int32
	count int64 // so far
	// ending is the slot of the transfer that ended last.
	ending int32
	// expired counts leases that ran out.
	expired int64
	left    map[int32]string // the ids of requests that are final or have left their prefill replica, by tag
	links   []poolLink       // between the pools of disaggregated deployments
	// quiet: stores between a cache and a tier are not among them, unless the replica has a storage.
	quiet bool
	// storages are those below the tiers.
	storages []*engine.Storage
}

// thrashUS is how long after its store a block is loaded again at most if that is thrashing.
const thrashUS = 10 * 1_000_000

// offloadConfig converts the tier of a deployment or its connection to other pools, nil if it has neither.
func offloadConfig(d *cluster.Deployment, tree *kv.Tree, byArrival bool) *engine.OffloadConfig {
	if len(d.KVTiers) == 0 {
		if d.Disaggregates() {
			return &engine.OffloadConfig{Pools: true, WholePrompts: d.ComputesPieces(), ByArrival: byArrival}
		}
		return nil
	}
	t := &d.KVTiers[0]
	return &engine.OffloadConfig{OnEviction: d.KVOffload.Storage == cluster.OnEviction,
		Store:      tier.NewStore(tree, d.Computed.KVTierBlocks, d.KVOffload.Eviction),
		BlockBytes: float64(d.Computed.KVBlockBytes), MinLoadBlocks: d.KVOffload.MinLoadBlocks,
		Threshold: d.KVOffload.UsedShare(), Lazy: d.KVOffload.Policy == cluster.Lazy, Pools: d.Disaggregates(),
		WholePrompts: d.ComputesPieces(),
		Loads:        link.Speed(t.Load), Stores: link.Speed(t.Store), ThrashUS: thrashUS, ByArrival: byArrival}
}

// schedule schedules the ends of the transfers that replica i has just asked for. Those between pools end when their
// link says.
func (all *transfers) schedule(s *simulation, i int32) {
	if list := s.replicas[i].engine.Transfers(); len(list) > 0 {
		all.scheduleAll(s, i, list)
	}
}

// scheduleAll is a function of its own so that schedule is inlined.
func (all *transfers) scheduleAll(s *simulation, i int32, list []engine.Transfer) {
	for _, t := range list {
		id := all.requestOf(s, i, &t)
		x := transfer{Transfer: t, replica: i, request: id, fromPrefill: missing}
		slot := all.add(&x)
		if t.Pull {
			s.startPull(slot, s.deployments[s.replicas[i].deployment].pool)
			continue
		}
		s.events.queue.Push(des.NewEvent(t.Ended, transferEnd, all.order(i, x.number), slot))
	}
}

// order is the place of transfer number n of replica i among those that end at one instant. Copies to one storage are
// asked for in the order of the replicas.
func (all *transfers) order(i int32, n int64) int64 {
	if len(all.storages) == 0 {
		return n
	}
	return int64(i)<<40 | n
}

// requestOf returns the id of the request of a transfer that replica i has just asked for. That of a copy of what has
// just been stored has none, since it may have left.
func (all *transfers) requestOf(s *simulation, i int32, t *engine.Transfer) string {
	if t.Tag < 0 && !t.Storage {
		return "" // the cache has given the blocks away
	}
	if t.Tag < 0 {
		if x := &all.slots[all.ending]; x.stored(i, t.Asked) {
			return x.request
		}
		for k := range all.slots { // the replica noted its end earlier at this instant, at the end of something else
			if x := &all.slots[k]; x.stored(i, t.Asked) {
				return x.request
			}
		}
	}
	if t.Left {
		return all.left[t.Tag]
	}
	return s.request(t.Tag).out.ID
}

// stored reports whether t is a store of replica i to its tier that ends at a time.
func (t *transfer) stored(i int32, at des.Time) bool {
	return t.replica == i && !t.Load && !t.Storage && !t.wakes && t.Ended == at
}

// requestOfLoad returns the id of the request of a load of replica i that has just ended.
func (all *transfers) requestOfLoad(i int32, t *engine.Transfer) string {
	for k := range all.slots {
		if x := &all.slots[k]; x.replica == i && x.Load && !x.Storage && x.Tag == t.Tag && x.Ended == t.Ended {
			return x.request
		}
	}
	return ""
}

// hasTiers reports whether replicas have tiers.
func (s *simulation) hasTiers() bool {
	return slices.ContainsFunc(s.deployments, func(d deployment) bool { return d.hasTiers })
}

// add numbers a transfer and returns its slot.
func (all *transfers) add(x *transfer) int32 {
	x.number = all.count
	all.count++
	if last := len(all.spare) - 1; last >= 0 {
		slot := all.spare[last]
		all.spare = all.spare[:last]
		all.slots[slot] = *x
		return slot
	}
	all.slots = append(all.slots, *x)
	return int32(len(all.slots) - 1)
}

// wake schedules the end of the next store of replica i, whose requests all wait, unless each end is scheduled.
func (all *transfers) wake(s *simulation, i int32) {
	if at, ok := s.replicas[i].engine.NextStore(); ok {
		x := transfer{replica: i, fromPrefill: missing, wakes: true}
		slot := all.add(&x)
		s.events.queue.Push(des.NewEvent(at, transferEnd, x.number, slot))
	}
}

// endTransfer ends a transfer. Its replica may then have work.
func (s *simulation) endTransfer(slot int32) error {
	i := s.transfers.slots[slot].replica
	s.transfers.ending = slot
	if s.transfers.slots[slot].wakes {
		s.wake(i)
		s.transfers.spare = append(s.transfers.spare, slot)
		return nil
	}
	s.telemetry.beforeChange(s, i, s.instantDone())
	for _, tag := range s.replicas[i].engine.EndTransfers(s.now) {
		s.depart(tag)
	}
	s.telemetry.afterChange(s, i)
	if s.transfers.slots[slot].Load { // the end of a store changes nothing that the router sees
		s.router.flow.schedule(s)
	}
	s.transfers.schedule(s, i)
	s.wakeAll(i, &s.transfers.slots[slot].Transfer)
	s.transfers.spare = append(s.transfers.spare, slot)
	if err := s.observers.notify(s, onTransfer, slot); err != nil {
		return err
	}
	return s.fleet.settle(s, i)
}

// wakeAll wakes replica i, whose transfer t has ended, and the replicas that may find what is now in their storage.
func (s *simulation) wakeAll(i int32, t *engine.Transfer) {
	s.wake(i)
	d := &s.deployments[s.replicas[i].deployment]
	if x := s.replicas[i].engine.Storage(); x != nil && t.Storage && !t.Load {
		for k := d.first; k < d.end; k++ {
			if s.replicas[k].engine.Storage() == x && int32(k) != i {
				s.wake(int32(k))
			}
		}
	}
}

// fail ends the transfers of replica i, which is down or gone, at this instant. Those that were to be asked for later
// are none. all may be nil.
func (all *transfers) fail(s *simulation, i int32) error {
	if all == nil {
		return nil
	}
	var failed []int32
	s.events.queue.Keep(func(e des.Event) bool {
		is := e.Kind() == transferEnd && all.slots[e.Slot].replica == i
		if is {
			failed = append(failed, e.Slot)
		}
		return !is
	})
	slices.SortFunc(failed, func(a, b int32) int { return cmp.Compare(all.slots[a].number, all.slots[b].number) })
	for _, slot := range failed {
		all.spare = append(all.spare, slot)
		x := &all.slots[slot]
		if x.wakes || x.Asked > s.now {
			continue
		}
		x.failed = x.Ended > s.now // else it ends at this instant
		x.Started, x.Ended = min(x.Started, s.now), s.now
		if err := s.observers.notify(s, onTransfer, slot); err != nil {
			return err
		}
	}
	return nil
}

// start schedules the transfers for which replica i asked when it formed batches. If it has requests and no step
// started, they all wait for transfers.
func (all *transfers) start(s *simulation, i int32, started bool) error {
	all.schedule(s, i)
	formed := s.replicas[i].engine.Formed()
	if started || len(formed) == 0 {
		return nil
	}
	for _, step := range formed {
		s.recordBatch(i, step)
	}
	all.wake(s, i)
	s.telemetry.afterChange(s, i)
	return s.observers.notify(s, onWait, i)
}

func (all *transfers) clone() *transfers {
	if all == nil {
		return nil
	}
	c := &transfers{slots: slices.Clone(all.slots), spare: slices.Clone(all.spare), count: all.count,
		ending: all.ending, expired: all.expired, left: maps.Clone(all.left), links: slices.Clone(all.links),
		quiet: all.quiet, storages: slices.Clone(all.storages)}
	for i := range c.links {
		l := &c.links[i]
		l.fair, l.due, l.ready = l.fair.Clone(), slices.Clone(l.due), slices.Clone(l.ready)
	}
	return c
}

// pools returns the links between pools. all may be nil.
func (all *transfers) pools() []poolLink {
	if all == nil {
		return nil
	}
	return all.links
}

// pending returns how many events of transfers may be pending.
func (all *transfers) pending() int {
	if all == nil {
		return 0
	}
	n := len(all.slots) - len(all.spare)
	for i := range all.links {
		n += all.links[i].pending
	}
	return n
}

// tierTotals returns the totals of a replica's tier, nil if it has none.
func tierTotals(e *engine.Engine) *metrics.TierTotals {
	t := e.Tier()
	if t == nil {
		return nil
	}
	totals := totalsOf(t)
	totals.Links = 1
	return totals
}

// storageTotals returns the totals of replica i's storage, nil if it has none. Of one that several replicas share the
// first has the counts of its blocks and links.
func (s *simulation) storageTotals(i int) *metrics.TierTotals {
	e := s.replicas[i].engine
	x := e.Storage()
	if x == nil {
		return nil
	}
	use := e.StorageUse()
	d := &s.deployments[s.replicas[i].deployment]
	if i > d.first && s.replicas[d.first].engine.Storage() == x {
		return totalsOf(&use)
	}
	use.Stats = x.Stats()
	totals := totalsOf(&use)
	totals.Links = 1
	return totals
}

func totalsOf(t *engine.TierStats) *metrics.TierTotals {
	return &metrics.TierTotals{HitTokens: t.HitTokens, StoredBlocks: t.Stored, LoadedBlocks: t.Loaded,
		ThrashedBlocks: t.Again,
		EvictedBlocks:  t.Evicted, RefusedBlocks: t.Refused, PeakBlocks: int64(t.Peak), Blocks: int64(t.Blocks),
		LoadUS: t.LoadUS, StoreUS: t.StoreUS, Loads: t.Loads, LoadWaitUS: t.WaitUS, LongestWaitUS: t.LongestWaitUS}
}

// transfer records a transfer that has ended.
func (o *traceWriter) transfer(s *simulation, t *transfer) error {
	r := &s.replicas[t.replica]
	d := &s.deployments[r.deployment]
	x := stream.Transfer{Kind: stream.KindTransfer, ID: fmt.Sprintf("transfer-%06d", t.number),
		Type: stream.TransferStore, From: stream.MemoryGPU, To: stream.MemoryCPU, Deployment: d.id, Replica: r.index,
		PrefillReplica: stream.NoIndex, EncodeReplica: stream.NoIndex,
		Request: t.request, Blocks: int64(t.Blocks), Bytes: int64(t.Blocks) * d.blockBytes,
		AskedUS: stream.Micros(t.Asked), StartedUS: stream.Micros(t.Started), EndedUS: stream.Micros(t.Ended),
		Incomplete: t.failed}
	switch {
	case t.fromPrefill != missing:
		x.Type, x.To, x.PrefillReplica = stream.TransferPD, stream.MemoryGPU, s.replicas[t.fromPrefill].index
	case t.Load && t.Storage:
		x.Type, x.From, x.To = stream.TransferPromote, stream.MemoryStorage, stream.MemoryCPU
	case t.Storage:
		x.From, x.To = stream.MemoryCPU, stream.MemoryStorage
	case t.Load:
		x.Type, x.From, x.To = stream.TransferLoad, stream.MemoryCPU, stream.MemoryGPU
	}
	return o.records.Any(&x)
}
