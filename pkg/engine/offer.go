package engine

import (
	"cmp"
	"slices"
)

// Blocks are offered to a tier when a batch is formed: those that its requests have filled by then.

// offer are the first blocks of a sequence, without hi.
type offer struct {
	seq, hi   int32
	admission int64
}

// offer offers the blocks of b, whose counts are not advanced yet, and of the requests that have left since the batch
// before it. Only known tokens, with asynchronous scheduling those of steps that have ended, fill a block. vLLM judges
// the offers when it forms a batch, but their transfers begin when its step ends.
func (e *Engine) offer(b *batch) {
	o := e.offload
	if o.store == nil {
		return
	}
	o.wait = max(o.wait, e.cache.Fenced(e.now))
	b.stores, b.storesLeft, o.offers = b.stores[:0], false, o.offers[:0]
	if o.cfg.Lazy {
		e.storeGiven(b)
	} else if e.openOffers(); o.open {
		e.noteOffers(b)
		if len(o.offers) > 1 {
			slices.SortFunc(o.offers, func(x, y offer) int { return cmp.Compare(x.admission, y.admission) })
		}
		for _, x := range o.offers {
			e.offerBlocks(b, x)
		}
	} else {
		o.missed = true
	}
	if len(o.left) > 0 {
		e.offerLeft(b)
	}
	if b.Prefill+b.Decode > 0 {
		b.notBefore, o.wait = o.wait, 0
	}
}

// noteOffers notes which sequences in b have blocks to offer.
func (e *Engine) noteOffers(b *batch) {
	o := e.offload
	for _, s := range e.individual {
		if q := &e.seqs[s]; q.lastBatch == b.number {
			e.note(b, s, int64(q.computed))
		}
	}
	switch {
	case !b.ticked:
		return
	case o.missed:
		o.missed = false
		for d := range e.decoding.All() {
			e.noteTick(b, d.Slot)
		}
	default:
		if list := o.fills[e.cache.Phase()]; len(list) > 0 {
			e.noteDecoding(b, list)
		}
		if e.cfg.AsyncScheduling {
			e.noteDecoding(b, o.fills[e.cache.PreviousPhase()])
		}
		if len(o.refused) > 0 {
			e.noteDecoding(b, o.refused)
		}
	}
	if o.canGrow {
		e.offerGrowing(b)
	}
}

// openOffers says whether enough blocks are in use for offers.
func (e *Engine) openOffers() {
	if e.offload.always {
		e.offload.open = true
		return
	}
	total := e.cache.Total()
	e.offload.open = float64(total-e.cache.Free())/float64(total) >= e.offload.cfg.Threshold
}

func (e *Engine) noteDecoding(b *batch, list []int32) {
	for _, s := range list {
		if e.seqs[s].state == decoding {
			e.noteTick(b, s)
		}
	}
}

// note notes that s has computed tokens when b ends.
func (e *Engine) note(b *batch, s int32, computed int64) {
	o, q, u := e.offload, &e.seqs[s], e.offload.use(s)
	hi := int32(min(computed, e.known(q)) / int64(o.blockSize))
	if u.noted != b.number && hi > u.offered {
		u.noted = b.number
		o.offers = append(o.offers, offer{s, hi, q.admission})
	}
}

// known returns how many tokens of q are known.
func (e *Engine) known(q *sequence) int64 {
	n := int64(q.input) + int64(q.emitted)
	if q.onClock {
		n += max(0, min(e.emittedTick, q.endTick)-q.countedTick)
	}
	return n
}

func (e *Engine) offerBlocks(b *batch, x offer) {
	o, q, u := e.offload, &e.seqs[x.seq], &e.offload.uses[x.seq]
	o.settle(x.seq)
	missing, ok := o.store.Offer(&u.User, e.cache.Path(q.kv), o.blockSize, u.offered, x.hi)
	e.copyEvicted(q.tag, false)
	switch i := slices.Index(o.refused, x.seq); {
	case !ok && i < 0:
		o.refused = append(o.refused, x.seq)
	case ok && i >= 0:
		o.refused = slices.Delete(o.refused, i, i+1)
	}
	if !ok {
		return
	}
	u.offered = x.hi
	if q.state == decoding && o.canGrow {
		phase := o.phase(q)
		o.unfill(x.seq, phase)
		if !e.grow(x.seq) {
			o.fill(x.seq, phase)
		}
	}
	if len(missing) > 0 {
		b.stores = append(b.stores, pendingStore{})
		p := &b.stores[len(b.stores)-1]
		p.seq, p.tag, p.rank, p.extents = x.seq, q.tag, u.Rank(), missing
	}
}

// offerLeft offers what requests that have left, of which there are some, have not offered yet, and then renews the
// ranks of their blocks. b waits for the stores of blocks that it takes.
func (e *Engine) offerLeft(b *batch) {
	o := e.offload
	if len(o.left) > 1 {
		slices.SortFunc(o.left, func(x, y leaver) int { return cmp.Compare(x.number, y.number) })
	}
	for i := range o.left {
		x := &o.left[i]
		if x.hi <= x.lo || !o.open {
			continue
		}
		missing, ok := o.store.Offer(&x.User, x.path, o.blockSize, x.lo, x.hi)
		e.copyEvicted(x.tag, true)
		if !ok || len(missing) == 0 {
			continue
		}
		b.storesLeft = true
		p := pendingStore{seq: none, tag: x.tag, rank: x.Rank(), marked: x.marked, extents: missing}
		if e.takes(&p) {
			o.wait = max(o.wait, e.ask(&p, e.now))
		} else {
			b.stores = append(b.stores, p)
		}
	}
	for i := range o.left {
		x := &o.left[i]
		o.store.Finish(&x.User, x.path, o.blockSize)
		o.store.Release(x.path)
	}
	o.left = o.left[:0]
}

// phase returns the index in fills of a decoding sequence.
func (o *offload) phase(q *sequence) int64 {
	size := int64(o.blockSize)
	return ((q.startTick-int64(q.computed))%size + size) % size
}

// startFilling and stopFilling maintain fills, or the growing sequences, for a decoding one.
func (e *Engine) startFilling(s int32, q *sequence) {
	o := e.offload
	o.settle(s)
	u := o.use(s)
	if u.decoded = true; o.store == nil {
		return
	}
	// With asynchronous scheduling the block that is full now may be offered when the next batch is formed.
	all := u.offered == q.computed/o.blockSize && !(e.cfg.AsyncScheduling && q.computed%o.blockSize == 0)
	if !all || !e.grow(s) {
		o.fill(s, o.phase(q))
	}
}

func (o *offload) stopFilling(s int32, q *sequence) {
	switch {
	case o.store == nil:
	case o.uses[s].grows:
		o.stopGrowing(s)
	default:
		o.unfill(s, o.phase(q))
	}
}

func (o *offload) fill(s int32, phase int64) {
	o.fills[phase] = append(o.fills[phase], s)
}

func (o *offload) unfill(s int32, phase int64) {
	list := o.fills[phase]
	last := len(list) - 1
	list[slices.Index(list, s)] = list[last]
	o.fills[phase] = list[:last]
}

// offerIdle is offer if there is no batch to form.
func (e *Engine) offerIdle() {
	if len(e.offload.left) == 0 {
		return
	}
	idle := batch{}
	if !e.offload.cfg.Lazy {
		e.openOffers()
	}
	e.offerLeft(&idle)
	e.askAll(&idle, e.now)
}

// later reports whether s arrived after t, and vLLM thus preempts it before t if they have one priority.
func (o *offload) later(s, t int32) bool {
	return o.cfg.ByArrival && o.uses[s].arrival > o.uses[t].arrival
}

// nextLeaving numbers the requests in the order in which they begin to leave.
func (o *offload) nextLeaving() int64 {
	o.leaving++
	return o.leaving
}
