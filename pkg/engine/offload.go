package engine

import (
	"slices"

	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/link"
	"blis/pkg/tier"
)

// OffloadConfig is a tier below the KV cache: the memory of the host. At the end of each step its requests offer the
// blocks that are full, and requests that are not running load what the cache lacks. The rules are those of vLLM's
// OffloadingConnector (vllm/distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py in 0.33). Without a Store
// there is no tier.
type OffloadConfig struct {
	Store *tier.Store
	// Storage is a tier below that of Store, nil if there is none (see storage.go). OnEviction: blocks go there when
	// the tier above evicts them, else when they have been stored in that.
	Storage    *Storage
	OnEviction bool
	// Pools: blocks move between replicas (see pull.go). WholePrompts admits a request only with blocks for its whole
	// prompt, so that none is preempted, and results have how much is computed, since parts of it move before the rest
	// is.
	Pools, WholePrompts bool
	// BlockBytes is the size of a block.
	BlockBytes float64
	// A request loads at least MinLoadBlocks.
	MinLoadBlocks int
	// Threshold is the share of the cache's blocks that must be in use for an offer.
	Threshold float64
	// Lazy: there are no offers. Blocks are stored when the cache gives them to others. The tier evicts by lru.
	Lazy          bool
	Loads, Stores link.Speed
	// ThrashUS is how long after its store a block is loaded again at most if that is thrashing.
	ThrashUS des.Time
	// QuietStores leaves stores out of Transfers. Their ends then need no call of EndTransfers, but a replica whose
	// requests all wait must be started when the next one ends.
	QuietStores bool
	// ByArrival: of requests with the same order, the one that arrived first is the first in all queues, also after a
	// preemption or a load.
	ByArrival bool
}

// Transfer is a transfer between the cache and the tier, between the tier and the storage below, or to the cache from
// that of another replica.
type Transfer struct {
	link.Transfer
	Load    bool
	Storage bool  // between the tier and the storage
	Pull    bool  // from another replica
	Left    bool  // the request has left
	Tag     int32 // of the request
	Blocks  int32
	// Again are those of the blocks of a load that were stored at most ThrashUS before, or all of them if the request
	// has left when it ends.
	Again int32
}

// offload is the state of a replica with a tier.
type offload struct {
	// What each step needs comes first.
	//
	// shares: other replicas send requests, or use the link of a storage, or the router sees the ends of stores.
	// canGrow: see growing. always: offers need no share of the cache.
	shares, canGrow, always bool
	// open: there are enough blocks in use for offers. missed: decoding sequences have not offered all their blocks,
	// since there were not.
	open, missed bool
	// ending: the aborts of a step that ends are processed, before its tokens.
	ending bool
	// blocked is the first request that did not fit into the last batch, or none.
	blocked   int32
	blockSize int32
	store     *tier.Store
	// wait is when stores end for which the next step waits.
	wait   des.Time
	stores link.FIFO
	// blockTime is how long the store of a block takes.
	blockTime des.Time
	// loading and storing are the transfers that have not ended, each in order, and pulling those from other replicas.
	// started are those since the last call of Transfers.
	storing, loading []underWay
	// left are the requests that have left since a batch was formed last, in any order; leaving counts those that began
	// to leave.
	left []leaver
	// orphans are sequences aborted during their loads, late those whose blocks are freed when the next step ends.
	orphans, late []int32
	// fills has, for each phase of the cache's clock, the decoding sequences that fill a block then. refused are the
	// sequences whose last offer was refused.
	fills   [][]int32
	refused []int32
	growths growths
	// offers is scratch, skipped are the waiting requests that the batch being formed has passed.
	offers   []offer
	skipped  []waiter
	started  []Transfer
	uses     []use // by sequence
	cfg      *OffloadConfig
	loads    link.FIFO
	pulling  []underWay
	leaving  int64
	held     int // sequences in this state that are not released
	released []int32
	recent   recentStores
	loaded   []Transfer // the loads that ended in the last call of EndTransfers
	below    below
	stats    TierStats
}

const none int32 = -1

// use is what a sequence does with the tier.
type use struct {
	// Blocks before offered are not offered in this admission.
	offered int32
	// noted is the number of the batch for which an offer was noted last, entered that of the batch in which it began
	// to run.
	noted, entered int32
	// decoded: it has computed the tokens with which it was admitted. computing: it is in the step in flight. ended:
	// it has left the tier. grows: see growing.
	decoded, computing, ended, grows bool
	growing                          growing
	// storesEnd is when the last store of blocks ends that it holds or held.
	storesEnd des.Time
	// arrival orders the requests as they came, leaving as they began to leave.
	arrival, leaving int64
	tier.User
	// A load ends at loadEnd. It gives it hit blocks from the cache and loaded ones from the tier. fromStorage are
	// those of the loaded blocks that the storage gave to the tier for it. reached: its blocks are published.
	loadEnd                  des.Time
	hit, loaded, fromStorage int32
	reached                  bool
}

// leaver is a request that has left. It may still offer blocks lo to hi, which are marked in the cache.
type leaver struct {
	tier.User
	number int64
	tag    int32
	path   kv.Path
	lo, hi int32
	marked []kv.Marked
}

// underWay is a transfer that has not ended.
type underWay struct {
	Transfer
	seq     int32
	rank    int32 // of a store to the tier
	extents []tier.Extent
}

// pendingStore is a store that begins when the step of its batch ends, of a sequence or of a request that has left.
type pendingStore struct {
	seq, tag, rank int32
	marked         []kv.Marked
	extents        []tier.Extent
}

func newOffload(cfg *OffloadConfig, cache *kv.Cache) *offload {
	if cfg == nil {
		return nil
	}
	if cfg.Store != nil {
		cache.KeepFences()
	}
	if cfg.Lazy {
		cache.KeepGiven()
		cfg.Store.Remember()
	}
	if cfg.Storage != nil && cfg.OnEviction {
		cfg.Store.KeepEvicted()
	}
	recent := recentStores{window: cfg.ThrashUS}
	if cfg.Storage != nil {
		recent.tree = cache.Tree()
	}
	return &offload{recent: recent, shares: cfg.Pools || !cfg.QuietStores, always: cfg.Threshold <= 0 && !cfg.Lazy,
		canGrow: cfg.QuietStores && cfg.Threshold <= 0 && !cfg.Lazy && cache.BlockSize() > 1, cfg: cfg,
		store: cfg.Store, loads: link.NewFIFO(cfg.Loads), stores: link.NewFIFO(cfg.Stores),
		blockTime: cfg.Stores.Time(cfg.BlockBytes),
		blockSize: int32(cache.BlockSize()),
		fills:     make([][]int32, cache.BlockSize()), growths: newGrowths(cache.BlockSize())}
}

// use returns the use of sequence s.
func (o *offload) use(s int32) *use {
	for int(s) >= len(o.uses) {
		o.uses = append(o.uses, use{})
	}
	return &o.uses[s]
}

// busy reports whether a transfer is under way, or will be.
func (o *offload) busy() bool {
	return len(o.loading)+len(o.pulling)+len(o.storing)+len(o.growths.active)+o.held > 0 ||
		len(o.below.promoting)+len(o.below.copying) > 0
}

// Transfers returns the transfers that were asked for since the last call. They are valid until the next one.
func (e *Engine) Transfers() []Transfer {
	if e.offload == nil {
		return nil
	}
	list := e.offload.started
	e.offload.started = e.offload.started[:0]
	return list
}

// EndedLoads returns the loads from the tier that ended in the last call of EndTransfers, once.
func (e *Engine) EndedLoads() []Transfer {
	if e.offload == nil {
		return nil
	}
	list := e.offload.loaded
	e.offload.loaded = list[:0]
	return list
}

// TierStats are totals of a replica's tier. Times are in µs.
type TierStats struct {
	tier.Stats
	// HitTokens counts tokens loaded for requests at their first admission, Stored and Loaded blocks of transfers that
	// have ended, Again those of Transfer.Again, StoreUS and LoadUS their time on the links, Loads the loads among
	// them, WaitUS the times from the request for a load to its end.
	HitTokens, Stored, Loaded, Again, Loads int64
	StoreUS, LoadUS, WaitUS, LongestWaitUS  int64
}

// Tier returns the totals of the tier, nil if there is none.
func (e *Engine) Tier() *TierStats {
	if e.offload == nil || e.offload.store == nil {
		return nil
	}
	t := e.offload.stats
	t.Stats = e.offload.store.Stats()
	return &t
}

// count adds a transfer that has ended.
func (t *TierStats) count(x *Transfer) {
	us := x.Ended - x.Started
	if !x.Load {
		t.Stored += int64(x.Blocks)
		t.StoreUS += us
		return
	}
	t.Loaded += int64(x.Blocks)
	t.Again += int64(x.Again)
	t.LoadUS += us
	t.Loads++
	t.WaitUS += x.Ended - x.Asked
	t.LongestWaitUS = max(t.LongestWaitUS, x.Ended-x.Asked)
}

// TierStore returns the blocks of the tier, nil without one.
func (e *Engine) TierStore() *tier.Store {
	if e.offload == nil {
		return nil
	}
	return e.offload.store
}

// TierUse returns the share of the tier's blocks in use, 0 without one.
func (e *Engine) TierUse() float64 {
	if e.offload == nil || e.offload.store == nil {
		return 0
	}
	t := e.offload.store.Stats()
	return float64(t.Used) / float64(t.Blocks)
}

// Loading returns how many requests hold blocks for a load from the tier.
func (e *Engine) Loading() int { return len(e.loaders) }

// Orphans returns how many aborted requests, those that have moved included, keep blocks until their loads end.
func (e *Engine) Orphans() int {
	if e.offload == nil {
		return 0
	}
	return len(e.offload.orphans)
}

// WaitsForTransfers reports whether requests may wait for transfers.
func (e *Engine) WaitsForTransfers() bool { return e.offload != nil }

// asks reports whether requests that had left stored blocks when b was formed.
func (o *offload) asks(b *batch) bool { return o != nil && o.store != nil && b.storesLeft }

// takes reports whether the batch being formed takes blocks of a store.
func (e *Engine) takes(p *pendingStore) bool {
	for _, taken := range e.cache.TakenMarks() {
		for _, m := range p.marked {
			for _, x := range p.extents {
				if taken.Mark == m.Mark && max(taken.Lo, m.Lo, x.Lo) < min(taken.Hi, m.Hi, x.Hi) {
					return true
				}
			}
		}
	}
	return false
}

// startWithTier is start if there is a tier: the step waits for stores, and its own begin when it ends.
func (e *Engine) startWithTier(now des.Time) {
	e.start(max(now, e.current.notBefore))
	e.askAll(e.current, e.current.End)
}

// coasts reports whether no request loads, and none has left since a batch was formed last. Other replicas could send
// requests to one of a pool at any end of a step, and use the link of a storage.
func (o *offload) coasts() bool {
	return o == nil || !o.shares &&
		len(o.loading)+len(o.left)+len(o.orphans)+len(o.late) == 0
}

// askAll asks for the stores of b, whose step ends at end.
func (e *Engine) askAll(b *batch, end des.Time) {
	e.offload.recent.now = e.now
	if b.grows {
		e.offload.askGrowth(end)
		b.grows = false
	}
	for i := range b.stores {
		e.ask(&b.stores[i], end)
	}
	b.stores = b.stores[:0]
	if len(e.offload.left) == 0 { // else the marks are theirs
		e.cache.DropMarks()
	}
}

// ask starts a store at a time, or when the link is free, and returns its end.
func (e *Engine) ask(p *pendingStore, at des.Time) des.Time {
	o, n := e.offload, tier.Blocks(p.extents)
	// A copy of what was just written would wait for that to reach the processor's cache.
	o.storing = append(o.storing, underWay{})
	x := &o.storing[len(o.storing)-1]
	x.Transfer.Transfer = o.stores.Ask(at, float64(float64(n)*o.cfg.BlockBytes))
	x.Tag, x.Left, x.Blocks = p.tag, p.seq == none, n
	x.seq, x.rank, x.extents = p.seq, p.rank, p.extents
	if !o.cfg.QuietStores {
		o.started = append(o.started, x.Transfer)
	}
	for _, m := range p.extents {
		o.recent.add(m, at)
	}
	if x.Left {
		for _, m := range p.marked {
			for _, y := range p.extents {
				e.cache.Resolve(m, y.Lo, y.Hi, x.Ended)
			}
		}
		return x.Ended
	}
	o.uses[p.seq].storesEnd = x.Ended
	return x.Ended
}

// preempted notes that s loses its blocks in a batch formed at now. The batch waits for its stores.
func (o *offload) preempted(s int32) {
	o.settle(s)
	u := o.use(s)
	if o.store != nil {
		o.store.Known(&u.User)
	}
	o.wait = max(o.wait, u.storesEnd)
	u.offered, u.decoded = 0, false
	o.forget(s)
}

// forget removes s from the sequences whose offer was refused.
func (o *offload) forget(s int32) {
	if i := slices.Index(o.refused, s); i >= 0 {
		o.refused = slices.Delete(o.refused, i, i+1)
	}
}

// endUse ends the use that s, which still has its blocks, makes of the tier. Its stores go on, and it may offer blocks
// once more when the next batch is formed.
func (e *Engine) endUse(s int32) {
	o, q, u := e.offload, &e.seqs[s], e.offload.use(s)
	if u.ended = true; o.store == nil {
		return
	}
	o.settle(s)
	o.forget(s)
	if u.storesEnd > e.now {
		e.fenceStores(s)
	}
	if q.tag == noTag { // what has moved is of no use here any more
		o.store.Leave(&u.User)
		return
	}
	number, lo, hi := u.leaving, int32(0), int32(0)
	if number == 0 {
		number = o.nextLeaving()
	}
	if q.state != waiting && q.state != loading && !o.cfg.Lazy {
		tokens := e.known(q) - 1
		if q.aborted {
			// A token in flight may fill a block that is not hashed yet. The step in flight gave no token.
			tokens = min(int64(q.computed), int64(q.input)+int64(q.emitted))
		}
		lo, hi = u.offered, int32(tokens/int64(o.blockSize))
	}
	if u.Used() || lo < hi {
		x := o.newLeaver()
		x.User, x.number, x.tag, x.lo, x.hi = u.User, number, q.tag, lo, hi
		x.path = o.store.Keep(x.path[:0], e.cache.Path(q.kv))
		if x.marked = nil; lo < hi {
			x.marked = e.cache.Mark(q.kv, lo, hi)
		}
	}
}

// fenceStores notes in the cache until when stores read the blocks of s, which leaves. Its number may then be given to
// another sequence.
func (e *Engine) fenceStores(s int32) {
	o, cached := e.offload, e.seqs[s].kv
	for i := range o.storing {
		t := &o.storing[i]
		if t.seq != s {
			continue
		}
		t.seq = none
		if t.Ended <= e.now {
			continue
		}
		for _, x := range t.extents {
			e.cache.Fence(cached, x.Lo, x.Hi, t.Ended)
		}
	}
	for i := range o.growths.active {
		f := &o.growths.active[i]
		known := o.growths.knownBlocks(f)
		for k := range known {
			x := &known[k]
			if x.seq != s || !f.asked {
				continue
			}
			x.seq = none
			if end := o.endOf(f, x.at); end > e.now {
				e.cache.Fence(cached, x.extent.Lo, x.extent.Hi, end)
			}
		}
	}
}

// newLeaver adds a request to those that have left. What it has may be used again.
func (o *offload) newLeaver() *leaver {
	if n := len(o.left); n < cap(o.left) {
		o.left = o.left[:n+1]
	} else {
		o.left = append(o.left, leaver{})
	}
	return &o.left[len(o.left)-1]
}

// waitForTransfer ends Start without a step: all requests wait for a transfer, or for their grammars. The next
// step has the requests preempted now among its EarlierVictims.
func (e *Engine) waitForTransfer() {
	e.current.Preempted = append(e.current.Preempted, e.earlierPreempted...)
	e.lostVictims += len(e.earlierPreempted)
}
