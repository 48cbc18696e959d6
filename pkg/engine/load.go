package engine

import (
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/tier"
)

// admitWithTier is admit for a replica with a tier: requests whose load has ended are tried before all others, and
// waiting ones may begin to load. A load takes neither tokens nor a batch slot, but it starts only while both are left.
func (e *Engine) admitWithTier(b *batch, budget *int) {
	o := e.offload
	if o.blocked = e.admitLoaded(b, budget); o.blocked != none {
		return
	}
	e.admit(b, budget)
	if e.hasRoom(budget) && len(e.wait.heap) > 0 {
		o.blocked = e.wait.heap[0].seq
	}
	for _, w := range o.skipped {
		e.push(w)
	}
	o.skipped = o.skipped[:0]
}

func (e *Engine) hasRoom(budget *int) bool { return *budget > 0 && e.Running() < e.cfg.MaxNumSeqs }

// admitLoaded schedules the requests whose load has ended. It returns the first that does not fit, or none.
func (e *Engine) admitLoaded(b *batch, budget *int) (blocked int32) {
	o := e.offload
	for i := 0; i < len(e.loaders); {
		if !e.hasRoom(budget) {
			return none
		}
		s := e.loaders[i]
		q, u := &e.seqs[s], &o.uses[s]
		if u.loadEnd > e.now {
			i++
			continue
		}
		tokens := int(q.input + q.generated)
		if !u.reached {
			u.reached = true
			q.computed = min((u.hit+u.loaded)*o.blockSize, int32(tokens))
			e.cache.Publish(q.kv, int(q.computed))
			q.computed = min(q.computed, int32(tokens)-1) // the last token is computed again
		}
		if e.encoder != nil && e.awaitsItems(s, int(q.computed)) {
			i++
			continue
		}
		n := e.limitChunk(tokens - int(q.computed))
		if n > *budget && !e.cfg.ChunkedPrefill {
			return s
		}
		if n = min(n, *budget); e.encoder != nil {
			if n = e.cutAtItem(s, int(q.computed), n); n == 0 {
				e.skipping.items = true
				i++
				continue
			}
		}
		upto := int(q.computed) + n
		reserve := upto
		if e.cfg.ReserveFullSequence || o.cfg.WholePrompts {
			reserve = tokens
		}
		if e.cache.BlocksNeeded(q.kv, reserve)+e.spareBlocks() > e.cache.Free() {
			if e.encoder != nil {
				e.encoder.releaseAll(s)
			}
			return s
		}
		if o.store != nil {
			e.cache.Retake(q.kv)
		}
		e.cache.Extend(q.kv, upto, q.visible(upto), int(q.computed), 0)
		e.loaders = slices.Delete(e.loaders, i, i+1)
		*budget -= n
		first := !q.admitted
		if e.encoder != nil {
			e.enterItems(b, s, int(q.computed))
		}
		e.enter(b, q, s, tokens, n, int(u.hit*o.blockSize))
		if first && !q.pulled {
			a := &b.Admitted[len(b.Admitted)-1]
			a.Loaded, a.FromStorage = u.loaded*o.blockSize, u.fromStorage*o.blockSize
			o.stats.HitTokens += int64(a.Loaded - a.FromStorage)
			o.below.stats.HitTokens += int64(a.FromStorage)
		}
	}
	return none
}

// attempt is the result of trying a waiting request.
type attempt uint8

const (
	noLoad  attempt = iota // nothing yet: the tier has nothing for it
	passed                 // those behind it are tried: it loads, or waits for a transfer
	blocked                // it does not fit
)

// skipStoring passes the waiting request s, the first one, if blocks that it held are being stored.
func (e *Engine) skipStoring(s int32) bool {
	storing := e.offload.use(s).storesEnd > e.now
	if storing {
		e.skip(s)
	}
	return storing
}

// tryLoad starts the load of the waiting request s, of which the cache has this many tokens, if the tier has more of
// them.
func (e *Engine) tryLoad(s int32, cached, tokens int) attempt {
	o, q := e.offload, &e.seqs[s]
	hit := int32(cached) / o.blockSize
	var n int32
	var busy bool
	if o.store != nil {
		n, busy = e.lookup(s, hit, int32(tokens)/o.blockSize)
	}
	switch {
	case busy:
		e.skip(s)
	case q.remote:
		if !e.pull(s, hit) {
			return blocked
		}
	case n == 0 || int(n) < o.cfg.MinLoadBlocks:
		return noLoad
	case !e.load(s, hit, n):
		return blocked
	}
	return passed
}

// skip passes the waiting request s in the batch being formed.
func (e *Engine) skip(s int32) {
	e.offload.skipped = append(e.offload.skipped, e.wait.heap[e.seqs[s].heapIndex])
	e.dequeue(s)
}

// load starts the load of n blocks behind the hits of the waiting request s. It returns false if they do not fit into
// the cache together with what prompts in chunks and other loads still need.
func (e *Engine) load(s, hit, n int32) bool {
	o := e.offload
	q, u := &e.seqs[s], &o.uses[s]
	if !e.holdForLoad(q, int((hit+n)*o.blockSize)) {
		return false
	}
	list := o.store.Load(&u.User, e.cache.Path(q.kv), o.blockSize, hit, hit+n)
	u.fromStorage = u.Promoted(hit, hit+n)
	t := o.loads.Ask(e.now, float64(float64(n)*o.cfg.BlockBytes))
	x := Transfer{Transfer: t, Load: true, Tag: q.tag, Blocks: n, Again: o.recent.count(list, e.now)}
	u.offered = hit + n
	o.loading = append(o.loading, underWay{Transfer: x, seq: s, rank: tier.NoRank, extents: list})
	e.startLoading(s, hit, &x)
	return true
}

// holdForLoad gives the waiting q blocks for a load of its first tokens. It returns false if they do not fit.
func (e *Engine) holdForLoad(q *sequence, upto int) bool {
	tokens, spare := int(q.input+q.generated), e.spareBlocks()
	if e.offload.cfg.WholePrompts {
		upto = tokens
	}
	if e.cfg.ReserveFullSequence && e.cache.AdmitNeed(tokens)+spare > e.cache.Free() {
		return false
	}
	return e.cache.Hold(q.kv, upto, spare+e.reservedBlocks())
}

// startLoading takes the waiting request s, which has hit blocks from the cache, to the loading ones.
func (e *Engine) startLoading(s, hit int32, x *Transfer) {
	o := e.offload
	u := &o.uses[s]
	o.started = append(o.started, *x)
	u.loadEnd, u.hit, u.loaded, u.reached = x.Ended, hit, x.Blocks, false
	e.dequeue(s)
	e.seqs[s].state = loading
	at := len(e.loaders)
	for at > 0 && e.before(s, e.loaders[at-1]) {
		at--
	}
	e.loaders = slices.Insert(e.loaders, at, s)
}

// before reports whether the loading s is tried before t, which began to load before it.
func (e *Engine) before(s, t int32) bool {
	a, b := e.seqs[s].order, e.seqs[t].order
	return a < b || a == b && e.offload.cfg.ByArrival && e.offload.uses[s].arrival < e.offload.uses[t].arrival
}

// reservedBlocks returns how many blocks the prompts in chunks and the loads still need for their tokens.
func (e *Engine) reservedBlocks() (n int) {
	o := e.offload
	for _, s := range e.individual {
		if q := &e.seqs[s]; !o.uses[s].decoded && q.generated < q.output {
			n += e.cache.BlocksNeeded(q.kv, int(q.input+q.generated))
		}
	}
	for _, s := range e.loaders {
		n += e.cache.BlocksNeeded(e.seqs[s].kv, int(e.seqs[s].input+e.seqs[s].generated))
	}
	return n
}

// EndTransfers ends the transfers that are done at now, after the step that ends then. It returns the requests
// aborted during their loads whose blocks are now freed; while a step runs, this waits for its end.
func (e *Engine) EndTransfers(now des.Time) (left []int32) {
	o := e.offload
	e.own.known = false
	e.endBelow(now)
	if len(o.storing) > 0 {
		e.copyStored(now)
		o.storing = o.endTransfers(o.storing, now)
	}
	o.endGrowths(now)
	o.loaded = o.loaded[:0]
	o.loading = o.endTransfers(o.loading, now)
	if e.inFlight {
		return nil
	}
	e.result.Aborted = e.result.Aborted[:0]
	e.dropOrphans(now)
	return e.result.Aborted
}

// endStores ends the stores that are done at now, unless EndTransfers does.
func (e *Engine) endStores(now des.Time) {
	o := e.offload
	if o == nil || o.cfg.Storage != nil {
		return
	}
	if len(o.storing) > 0 && o.storing[0].Ended <= now {
		o.storing = o.endTransfers(o.storing, now)
	}
	if len(o.growths.active) > 0 {
		o.endGrowths(now)
	}
}

// NextStore returns when the next store ends that is not among Transfers, and whether one is under way.
func (e *Engine) NextStore() (des.Time, bool) {
	o := e.offload
	if o == nil || !o.cfg.QuietStores {
		return 0, false
	}
	next := des.Time(math.MaxInt64)
	if len(o.storing) > 0 {
		next = o.storing[0].Ended
	}
	if len(o.growths.active) > 0 && o.growths.active[0].asked {
		f := &o.growths.active[0]
		next = min(next, o.endOf(f, f.ended))
	}
	return next, next < math.MaxInt64
}

// dropWithTier removes the requests that leave when a step ends at now.
func (e *Engine) dropWithTier(now des.Time) {
	o := e.offload
	late := len(o.late)
	if len(e.aborted) > 0 {
		o.ending = true
		e.dropAborted()
		o.ending = false
	}
	if late > 0 {
		for _, s := range o.late[:late] {
			e.leave(s)
		}
		o.late = slices.Delete(o.late, 0, late)
	}
	e.dropFinished()
	if len(o.orphans) > 0 {
		e.dropOrphans(now)
	}
	if len(o.released) > 0 {
		e.dropReleased()
	}
}

// dropOrphans removes aborted requests whose loads have ended at now.
func (e *Engine) dropOrphans(now des.Time) {
	o := e.offload
	o.orphans = slices.DeleteFunc(o.orphans, func(s int32) bool {
		ended := o.uses[s].loadEnd <= now
		if ended {
			e.leave(s)
		}
		return ended
	})
}

// holds reports whether the aborted s still has blocks.
func (o *offload) holds(s int32) bool {
	return slices.Contains(o.orphans, s) || slices.Contains(o.late, s)
}

// keepsBlocks reports whether the aborted s keeps its blocks for now, and notes until when: the end of its load, or of
// the step formed ahead. A load could write to blocks that a step in flight still writes
// (Scheduler._request_blocks_can_be_freed).
func (e *Engine) keepsBlocks(s int32) bool {
	o, q := e.offload, &e.seqs[s]
	switch {
	case q.state == loading:
		if o.isPulling(s) { // it may have been ready
			o.uses[s].loadEnd = math.MaxInt64
		}
		known := o.uses[s].loadEnd <= e.now // when a batch was formed last
		if !o.ending {
			known = !o.isLoading(s)
		}
		if known {
			return false
		}
		e.endUse(s)
		o.orphans = append(o.orphans, s)
		for i := range o.loading {
			if t := &o.loading[i]; t.seq == s {
				t.Again = t.Blocks
			}
		}
		return true
	case q.state == decoding:
		e.materialize(s)
		q.state = individual
	}
	computing := q.lastBatch > e.current.number || o.ending && q.lastBatch == e.current.number
	if !e.hasNext || !computing {
		return false
	}
	e.endUse(s)
	o.late = append(o.late, s)
	return true
}

// dropLate drops s, which has all its output, when the step formed ahead has ended, since that computes one more token
// of it. A load could write to its blocks before.
func (e *Engine) dropLate(s int32) {
	e.endUse(s)
	e.seqs[s].tag = noTag // it has left for all others
	e.offload.late = append(e.offload.late, s)
}

// isLoading reports whether a transfer to the blocks of s has not ended.
func (o *offload) isLoading(s int32) bool {
	is := func(t underWay) bool { return t.seq == s }
	return slices.ContainsFunc(o.loading, is) || o.isPulling(s)
}

// isPulling reports whether blocks of s come from another replica.
func (o *offload) isPulling(s int32) bool {
	return slices.ContainsFunc(o.pulling, func(t underWay) bool { return t.seq == s })
}

// endTransfers removes from a list the transfers that have ended at now.
func (o *offload) endTransfers(list []underWay, now des.Time) []underWay {
	n := 0
	for ; n < len(list) && list[n].Ended <= now; n++ { // mostly it removes all or none
		o.store.Stored(list[n].extents, list[n].rank)
		o.stats.count(&list[n].Transfer)
		if list[n].Load {
			o.loaded = append(o.loaded, list[n].Transfer)
		}
	}
	switch n {
	case 0:
		return list
	case len(list):
		return list[:0]
	}
	return list[:copy(list, list[n:])]
}
