package engine

import (
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/tier"
)

// A decoding sequence grows while each block that it fills is stored at once and no record shows the store. It is then
// not visited: the blocks that all growing sequences fill in a step are one growth, and how many of them a sequence
// has follows from the steps in which its phase was offered. See Growers in package tier.

// grower is a growing sequence.
type grower struct {
	seq       int32
	admission int64
}

// growing is the growth of a sequence: in this phase, since the phase was offered this many times. It goes on until the
// sequence leaves the phase. Then lo is its first block, else none, and the tier learns of it when it needs to.
type growing struct {
	since, phase int32
	node         kv.Node
	lo           int32
}

// growth is the stores of one block each that began when a step ended.
type growth struct {
	phase, count int32
	ended        int32 // stores that have ended
	change       int32 // an index in growths.changes, or none while its phase has the same members
	asked        bool
	began        des.Time // the first one, if asked
}

// change is what a growth has after the members of its phase changed: those that it began with, and the blocks of
// those that have stopped growing.
type change struct {
	members []grower
	known   []grown
}

// grown is a block of a growth whose sequence has stopped growing.
type grown struct {
	at        int32 // in the order of the stores
	seq, rank int32
	extent    tier.Extent
}

// growingPhase is a phase of the cache's clock: the sequences that fill a block then, in the order of their admission,
// and how often it was offered.
type growingPhase struct {
	members []grower
	offers  int64
	asked   askedTimes
}

// growths are the growing sequences of a replica.
type growths struct {
	phases []growingPhase
	// active are those whose stores have not ended, in order. Each step looks at them, and few have a change.
	active  []growth
	changes []change
	spare   []int32 // changes of no growth
}

func newGrowths(blockSize int) growths { return growths{phases: make([]growingPhase, blockSize)} }

// grow begins the growth of the decoding s, whose full blocks are all offered, and reports whether it may.
func (e *Engine) grow(s int32) bool {
	o, q, u := e.offload, &e.seqs[s], &e.offload.uses[s]
	if !o.canGrow {
		return false
	}
	node, ok := o.store.Grow(s, &u.User, e.cache.Path(q.kv), o.blockSize, u.offered)
	if !ok {
		return false
	}
	phase := o.phase(q)
	g := &o.growths
	g.copyMembers(int32(phase))
	x := &g.phases[phase]
	u.grows, u.growing = true, growing{int32(x.offers), int32(phase), node, none}
	if q.admission == e.newestDecoding { // the others, which would have to be fetched, were admitted before
		x.members = append(x.members, grower{s, q.admission})
		return true
	}
	at := len(x.members)
	for at > 0 && x.members[at-1].admission > q.admission {
		at--
	}
	x.members = slices.Insert(x.members, at, grower{s, q.admission})
	return true
}

// stopGrowing ends the growth of s: it is visited again, if it fills blocks.
func (o *offload) stopGrowing(s int32) {
	u, g := &o.uses[s], &o.growths
	x := &u.growing
	g.copyMembers(x.phase)
	p := &g.phases[x.phase]
	at := 0
	for p.members[at].seq != s {
		at++
	}
	p.members = p.members[:at+copy(p.members[at:], p.members[at+1:])]
	x.lo = u.offered
	u.offered += int32(p.offers) - x.since
}

// settle notes in the tier which blocks s has added, if it has stopped growing since the last call.
func (o *offload) settle(s int32) {
	u, g := &o.uses[s], &o.growths
	if !u.grows || u.growing.lo == none {
		return
	}
	u.grows = false
	x, lo, hi := u.growing, u.growing.lo, u.offered
	stored := hi
	for i := len(g.active) - 1; i >= 0 && stored > lo; i-- {
		f := &g.active[i]
		if f.phase != x.phase || f.change == none { // s left the phase before it
			continue
		}
		c := &g.changes[f.change]
		at := c.index(s)
		if at < 0 {
			continue
		}
		if f.asked && at < f.ended {
			break
		}
		stored--
		c.known = append(c.known, grown{at, s, u.Rank(), tier.Extent{Node: x.node, Lo: stored, Hi: stored + 1}})
		if f.asked {
			u.storesEnd = max(u.storesEnd, o.endOf(f, at))
		}
	}
	o.store.StopGrowing(&u.User, x.node, lo, stored, hi)
	if !u.ended || o.store.Named(x.node) {
		o.recent.addGrown(x.node, &g.phases[x.phase].asked, int64(x.since), lo, hi)
	}
}

// stopsGrowing ends the growth of s while it decodes.
func (e *Engine) stopsGrowing(s int32) {
	o, q := e.offload, &e.seqs[s]
	if o.uses[s].growing.lo == none {
		o.stopGrowing(s)
		o.fill(s, o.phase(q))
	}
	o.settle(s)
}

// stopGrowthOnDemand lets the store end growth.
func (e *Engine) stopGrowthOnDemand() {
	if e.offload != nil && e.offload.store != nil {
		e.offload.store.Growers(e.stopsGrowing)
		if e.offload.canGrow {
			e.offload.store.KeepTails()
		}
	}
}

// StopGrowth notes in the tier what growing sequences have stored, which are visited again. Clone needs it before the
// tree is cloned.
func (e *Engine) StopGrowth() {
	if e.offload == nil {
		return
	}
	for i := range e.offload.growths.phases {
		list := e.offload.growths.phases[i].members
		for k := len(list) - 1; k >= 0; k-- {
			e.stopsGrowing(list[k].seq)
		}
	}
	for s := range e.offload.uses {
		e.offload.settle(int32(s))
	}
}

// copyMembers keeps the members of growths of a phase before these change.
func (g *growths) copyMembers(phase int32) {
	for i := range g.active {
		if f := &g.active[i]; f.phase == phase && f.change == none {
			f.change = g.newChange()
			c := &g.changes[f.change]
			c.members = append(c.members, g.phases[phase].members...)
		}
	}
}

// newChange returns the index of an empty change.
func (g *growths) newChange() int32 {
	if last := len(g.spare) - 1; last >= 0 {
		i := g.spare[last]
		g.spare = g.spare[:last]
		return i
	}
	g.changes = append(g.changes, change{})
	return int32(len(g.changes) - 1)
}

// knownBlocks returns the blocks of f whose sequences have stopped growing.
func (g *growths) knownBlocks(f *growth) []grown {
	if f.change == none {
		return nil
	}
	return g.changes[f.change].known
}

// index returns the place of the store of s, which has left the phase, or -1.
func (c *change) index(s int32) int32 {
	return int32(slices.IndexFunc(c.members, func(x grower) bool { return x.seq == s }))
}

// endOf returns when a store of f ends.
func (o *offload) endOf(f *growth, at int32) des.Time { return f.began + o.blockTime*des.Time(at+1) }

// offerGrowing offers the blocks that growing sequences fill in b, before the offers that are noted. Sequences that
// were admitted after one of these, or all if their blocks do not fit, are noted instead.
func (e *Engine) offerGrowing(b *batch) {
	o := e.offload
	g := &o.growths
	phase := e.completePhase()
	first := int64(math.MaxInt64)
	for i := range o.offers {
		first = min(first, o.offers[i].admission)
	}
	p := &g.phases[phase]
	if !o.store.HasRoom(int32(len(p.members))) {
		first = -1
	}
	if first <= e.newestDecoding { // else the members, which would have to be fetched, were admitted before
		e.offerAfter(b, p, first)
	}
	n := len(p.members)
	if n == 0 {
		return
	}
	p.offers++
	g.active = append(g.active, growth{})
	f := &g.active[len(g.active)-1]
	f.phase, f.count, f.change = phase, int32(n), none
	b.grows = true
	o.store.Add(int32(n))
}

// offerAfter notes those sequences of a phase that were admitted after the first one to offer, instead of their growth.
func (e *Engine) offerAfter(b *batch, p *growingPhase, first int64) {
	for n := len(p.members); n > 0 && p.members[n-1].admission > first; n-- {
		s := p.members[n-1].seq
		e.stopsGrowing(s)
		e.noteTick(b, s)
	}
}

// completePhase returns the phase of the tick whose tokens are known when the batch is formed that has just ticked and
// were not when the batch before it was: that of the batch or, with asynchronous scheduling, the one before. Replicas
// with decoding sequences then form each batch while the step before it is in flight, and that step gives the tokens
// which the batch computes.
func (e *Engine) completePhase() int32 {
	if e.cfg.AsyncScheduling {
		return e.cache.PreviousPhase()
	}
	return e.cache.Phase()
}

// noteTick notes the decoding s, which gets a token in b.
func (e *Engine) noteTick(b *batch, s int32) {
	q := &e.seqs[s]
	e.note(b, s, int64(q.computed)+b.tick-q.startTick)
}

// askGrowth asks for the stores of the newest growth at a time.
func (o *offload) askGrowth(at des.Time) {
	g := &o.growths
	f := &g.active[len(g.active)-1]
	f.asked, f.began = true, o.stores.AskFor(at, o.blockTime, int(f.count))
	g.phases[f.phase].asked.add(at, o.recent.oldest())
	for _, x := range g.knownBlocks(f) {
		o.recent.add(x.extent, at)
		u := &o.uses[x.seq]
		u.storesEnd = max(u.storesEnd, o.endOf(f, x.at))
	}
}

// endGrowths ends the stores of growths that are done at now.
func (o *offload) endGrowths(now des.Time) {
	g, n := &o.growths, 0
	for n < len(g.active) && o.endGrowth(&g.active[n], now) {
		n++
	}
	if n > 0 {
		g.active = g.active[:copy(g.active, g.active[n:])]
	}
}

// endGrowth ends the stores of f that are done at now and reports whether all of them are.
func (o *offload) endGrowth(f *growth, now des.Time) bool {
	if !f.asked || o.endOf(f, f.ended) > now {
		return false
	}
	n := f.count - f.ended
	if o.endOf(f, f.count-1) > now {
		n = int32((now-f.began)/o.blockTime) - f.ended
	}
	f.ended += n
	o.store.Added(n)
	o.stats.Stored += int64(n)
	o.stats.StoreUS += des.Time(n) * o.blockTime
	if f.change != none {
		o.endKnown(f)
	}
	return f.ended == f.count
}

// endKnown ends those stores of f whose sequences have stopped growing, and its change when all stores have ended.
func (o *offload) endKnown(f *growth) {
	c := &o.growths.changes[f.change]
	c.known = slices.DeleteFunc(c.known, func(x grown) bool {
		if x.at < f.ended {
			o.store.Ready(x.extent, x.rank)
		}
		return x.at < f.ended
	})
	if f.ended == f.count {
		c.members = c.members[:0]
		o.growths.spare = append(o.growths.spare, f.change)
	}
}

// clone returns an independent copy, without growing sequences.
func (g *growths) clone() growths {
	d := newGrowths(len(g.phases))
	for i := range g.phases {
		d.phases[i].offers, d.phases[i].asked = g.phases[i].offers, g.phases[i].asked.clone()
	}
	d.active, d.changes, d.spare = slices.Clone(g.active), slices.Clone(g.changes), slices.Clone(g.spare)
	for i := range d.changes {
		c := &d.changes[i]
		c.members, c.known = slices.Clone(c.members), slices.Clone(c.known)
	}
	return d
}
