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
	phase int32
	count int
	// members are those of the phase, unless it still has the same ones.
	members []grower
	copied  bool
	each    des.Time // how long a store takes
	began   des.Time // the first one, if asked
	asked   bool
	ended   int // stores that have ended
	known   []grown
}

// grown is a block of a growth whose sequence has stopped growing.
type grown struct {
	at        int // in the order of the stores
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
	// active are those whose stores have not ended, in order; spare ones are used again.
	active, spare []*growth
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
		f := g.active[i]
		if f.phase != x.phase {
			continue
		}
		at := f.index(s)
		if at < 0 {
			continue
		}
		if f.asked && at < f.ended {
			break
		}
		stored--
		f.known = append(f.known, grown{at, s, u.Rank(), tier.Extent{Node: x.node, Lo: stored, Hi: stored + 1}})
		if f.asked {
			u.storesEnd = max(u.storesEnd, f.end(at))
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
	for _, f := range g.active {
		if f.phase == phase && !f.copied {
			f.copied, f.members = true, append(f.members, g.phases[phase].members...)
		}
	}
}

// index returns the place of the store of s, which has left the phase, or -1.
func (f *growth) index(s int32) int {
	return slices.IndexFunc(f.members, func(x grower) bool { return x.seq == s })
}

// end returns when a store ends.
func (f *growth) end(at int) des.Time { return f.began + f.each*des.Time(at+1) }

// offerGrowing offers the blocks that growing sequences fill in b, before the offers that are noted. Sequences that
// were admitted after one of these, or all if their blocks do not fit, are noted instead.
func (e *Engine) offerGrowing(b *batch) {
	o := e.offload
	g := &o.growths
	phase := e.completeTick(b) % int64(o.blockSize)
	first := int64(math.MaxInt64)
	for i := range o.offers {
		first = min(first, o.offers[i].admission)
	}
	p := &g.phases[phase]
	if !o.store.HasRoom(int32(len(p.members))) {
		first = -1
	}
	for n := len(p.members); n > 0 && p.members[n-1].admission > first; n-- {
		s := p.members[n-1].seq
		e.stopsGrowing(s)
		e.noteTick(b, s)
	}
	n := len(p.members)
	if n == 0 {
		return
	}
	f := g.take()
	f.phase, f.count = int32(phase), n
	p.offers++
	g.active = append(g.active, f)
	b.growth = f
	o.store.Add(int32(n))
}

// completeTick returns the tick whose tokens are known when b is formed and were not when the batch before it was: that
// of b or, with asynchronous scheduling, the one before. Replicas with decoding sequences then form each batch while
// the step before it is in flight, and that step gives the tokens which b computes.
func (e *Engine) completeTick(b *batch) int64 {
	if e.cfg.AsyncScheduling {
		return b.tick - 1
	}
	return b.tick
}

// noteTick notes the decoding s, which gets a token in b.
func (e *Engine) noteTick(b *batch, s int32) {
	q := &e.seqs[s]
	e.note(b, s, int64(q.computed)+b.tick-q.startTick)
}

// take returns an empty growth.
func (g *growths) take() *growth {
	last := len(g.spare) - 1
	if last < 0 {
		return &growth{}
	}
	f := g.spare[last]
	g.spare = g.spare[:last]
	*f = growth{members: f.members[:0], known: f.known[:0]}
	return f
}

// askGrowth asks for the stores of f at a time.
func (o *offload) askGrowth(f *growth, at des.Time) {
	f.asked, f.began, f.each = true, o.stores.AskFor(at, o.blockTime, f.count), o.blockTime
	o.growths.phases[f.phase].asked.add(at, o.recent.oldest())
	for _, x := range f.known {
		o.recent.add(x.extent, at)
		u := &o.uses[x.seq]
		u.storesEnd = max(u.storesEnd, f.end(x.at))
	}
}

// endGrowths ends the stores of growths that are done at now.
func (o *offload) endGrowths(now des.Time) {
	g := &o.growths
	for len(g.active) > 0 && g.active[0].endsBy(now) {
		f := g.active[0]
		if !o.endGrowth(f, now) {
			return
		}
		if last := len(g.active) - 1; last == 0 {
			g.active = g.active[:0]
		} else {
			g.active = g.active[:copy(g.active, g.active[1:])]
		}
		g.spare = append(g.spare, f)
	}
}

// endsBy reports whether the next store of f is done at now.
func (f *growth) endsBy(now des.Time) bool { return f.asked && f.end(f.ended) <= now }

// endGrowth ends the stores of f that are done at now and reports whether these were the last ones.
func (o *offload) endGrowth(f *growth, now des.Time) bool {
	n := f.count - f.ended
	if f.end(f.count-1) > now {
		n = int((now-f.began)/f.each) - f.ended
	}
	f.ended += n
	o.store.Added(int32(n))
	o.stats.Stored += int64(n)
	o.stats.StoreUS += int64(n) * f.each
	if len(f.known) > 0 {
		f.known = slices.DeleteFunc(f.known, func(x grown) bool {
			if x.at < f.ended {
				o.store.Ready(x.extent, x.rank)
			}
			return x.at < f.ended
		})
	}
	return f.ended == f.count
}

// clone returns an independent copy, without growing sequences.
func (g *growths) clone() growths {
	d := newGrowths(len(g.phases))
	for i := range g.phases {
		d.phases[i].offers, d.phases[i].asked = g.phases[i].offers, g.phases[i].asked.clone()
	}
	for _, f := range g.active {
		c := *f
		c.members, c.known = slices.Clone(f.members), slices.Clone(f.known)
		d.active = append(d.active, &c)
	}
	return d
}
