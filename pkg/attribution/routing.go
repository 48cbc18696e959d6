package attribution

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// routing is what the router saw at the last routing decision.
type routing struct {
	// chosen is the chosen replica as the router saw it, nextBest the best of the others in
	// the record.
	chosen, nextBest ReplicaView
	flipWeight       float64 // see Analyzer.flipWeight
	cacheAgeUS       int64   // see Analyzer.cacheAgeUS
}

var noRouting = routing{chosen: ReplicaView{Replica: missing}, nextBest: ReplicaView{Replica: missing}}

// seen is what the router saw when it routed the request. Most requests have it packed, which takes a third of the
// memory: withRouting is faster for many of them.
func (r *request) seen() *routing {
	if r.routed != nil {
		return r.routed
	}
	g := r.unpack()
	return &g
}

// withRouting calls f for each request with what the router saw. That of requests that lost something stays unpacked.
func (a *Analyzer) withRouting(f func(r *request)) {
	var buffer routing
	for _, r := range a.requests {
		if r.routed != nil {
			f(r)
			continue
		}
		buffer = r.unpack()
		r.routed = &buffer
		f(r)
		if r.routed = nil; r.lost() {
			own := buffer
			r.routed = &own
		}
	}
}

// Which parts of a routing its packed form has.
const (
	hasChosen = 1 << iota
	hasNextBest
	hasFlipWeight
)

// pack packs the id of a decision and what the router saw.
func (a *Analyzer) pack(decision string, g *routing) string {
	p := packer{a.packing[:0]}
	p.int(int64(len(decision)))
	p.bytes = append(p.bytes, decision...)
	parts := int64(0)
	for part, has := range [...]bool{g.chosen.Replica != missing, g.nextBest.Replica != missing, g.flipWeight != 0} {
		if has {
			parts |= 1 << part
		}
	}
	p.int(parts)
	p.int(g.cacheAgeUS)
	if parts&hasFlipWeight != 0 {
		p.float(g.flipWeight)
	}
	if parts&hasChosen != 0 {
		p.view(&g.chosen)
	}
	if parts&hasNextBest != 0 {
		p.view(&g.nextBest)
	}
	a.packing = p.bytes
	return a.texts.keep(p.bytes)
}

// decision is the id of the routing decision, "" without one.
func (r *request) decision() string {
	if r.packed == "" {
		return ""
	}
	u := unpacker(r.packed)
	n := u.int()
	return string(u[:n])
}

func (r *request) unpack() routing {
	g := noRouting
	if r.packed == "" {
		return g
	}
	u := unpacker(r.packed)
	u = u[u.int():]
	parts := u.int()
	g.cacheAgeUS = u.int()
	if parts&hasFlipWeight != 0 {
		g.flipWeight = u.float()
	}
	if parts&hasChosen != 0 {
		u.view(&g.chosen)
	}
	if parts&hasNextBest != 0 {
		u.view(&g.nextBest)
	}
	return g
}

// packer appends numbers. Small ones, and those that are short in binary, take few bytes.
type packer struct{ bytes []byte }

func (p *packer) int(n int64) { p.bytes = binary.AppendVarint(p.bytes, n) }

func (p *packer) float(x float64) {
	p.bytes = binary.AppendUvarint(p.bytes, bits.ReverseBytes64(math.Float64bits(x)))
}

func (p *packer) view(v *ReplicaView) {
	for _, n := range [...]int64{int64(v.Replica), int64(v.Inflight), int64(v.Queue), int64(v.Running),
		int64(v.Prefix), v.AgeUS} {
		p.int(n)
	}
	p.float(v.KV)
	p.float(v.Score)
}

// unpacker takes numbers that a packer appended.
type unpacker string

func (u *unpacker) uint() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := (*u)[0]
		*u = (*u)[1:]
		if n |= uint64(b&0x7F) << shift; b < 0x80 {
			return n
		}
	}
}

func (u *unpacker) int() int64 {
	n := u.uint()
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) float() float64 { return math.Float64frombits(bits.ReverseBytes64(u.uint())) }

func (u *unpacker) view(v *ReplicaView) {
	v.Replica, v.Inflight, v.Queue = int32(u.int()), int32(u.int()), int32(u.int())
	v.Running, v.Prefix, v.AgeUS = int32(u.int()), int32(u.int()), u.int()
	v.KV, v.Score = u.float(), u.float()
}
