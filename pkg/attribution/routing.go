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
	if r.derived != nil && r.unpacked != nil {
		return r.unpacked
	}
	g := r.unpack()
	return &g
}

// withRouting calls f for each request with what the router saw. That of requests that lost something stays unpacked.
func (a *Analyzer) withRouting(f func(r *request)) {
	var buffer routing
	for _, r := range a.requests.all() {
		if r.unpacked != nil {
			f(r)
			continue
		}
		buffer = r.unpack()
		r.unpacked = &buffer
		f(r)
		if r.unpacked = nil; r.lost() {
			own := buffer
			r.unpacked = &own
		}
	}
}

// Which parts of a routing its packed form has.
const (
	hasChosen = 1 << iota
	hasNextBest
	hasFlipWeight
)

// pack packs the id of a request, that of its decision or "", and what the router saw.
func (a *Analyzer) pack(id, decision string, g *routing) string {
	p := packer{a.packing[:0]}
	p.text(id)
	end := 0 // the length of what the ids end with
	for end < min(len(id), len(decision)) && id[len(id)-1-end] == decision[len(decision)-1-end] {
		end++
	}
	p.int(int64(end))
	p.text(decision[:len(decision)-end])
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
		p.view(&g.chosen, 0)
	}
	if parts&hasNextBest != 0 {
		p.view(&g.nextBest, g.chosen.Score)
	}
	a.packing = p.bytes
	return a.texts.keep(p.bytes)
}

func (r *request) id() string {
	u := unpacker(r.packed)
	return u.text()
}

// decision is the id of the routing decision, "" without one.
func (r *request) decision() string {
	begin, end := r.decisionParts()
	return begin + end
}

// decisionParts are two parts of the id of the routing decision.
func (r *request) decisionParts() (begin, end string) {
	u := unpacker(r.packed)
	id, n := u.text(), u.int()
	return u.text(), id[len(id)-int(n):]
}

func (r *request) unpack() routing {
	g := noRouting
	u := unpacker(r.packed)
	u.text()
	u.int()
	u.text()
	parts := u.int()
	g.cacheAgeUS = u.int()
	if parts&hasFlipWeight != 0 {
		g.flipWeight = u.float()
	}
	if parts&hasChosen != 0 {
		u.view(&g.chosen, 0)
	}
	if parts&hasNextBest != 0 {
		u.view(&g.nextBest, g.chosen.Score)
	}
	return g
}

// packer appends numbers. Small ones, and those that are short in binary, take few bytes.
type packer struct{ bytes []byte }

func (p *packer) int(n int64) {
	if n >= 0 && n < 64 { // one byte, without a call
		p.bytes = append(p.bytes, byte(2*n))
		return
	}
	p.bytes = binary.AppendVarint(p.bytes, n)
}

func (p *packer) text(s string) {
	p.int(int64(len(s)))
	p.bytes = append(p.bytes, s...)
}

func (p *packer) float(x float64) { p.change(0, x) }

// change appends what changes a number, which is short if nothing does.
func (p *packer) change(from, to float64) {
	p.bytes = binary.AppendUvarint(p.bytes, bits.ReverseBytes64(math.Float64bits(from)^math.Float64bits(to)))
}

// view appends what a router saw of a replica. score is one that is often the same.
func (p *packer) view(v *ReplicaView, score float64) {
	for _, n := range [...]int64{int64(v.Replica), int64(v.Inflight), int64(v.Queue), int64(v.Running),
		int64(v.Prefix), v.AgeUS} {
		p.int(n)
	}
	p.change(unknownKV, v.KV)
	p.change(score, v.Score)
}

// unknownKV is ReplicaView.KV where the router did not see it.
const unknownKV = -1

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

func (u *unpacker) text() string {
	n := u.int()
	s := string((*u)[:n])
	*u = (*u)[n:]
	return s
}

func (u *unpacker) float() float64 { return u.change(0) }

func (u *unpacker) change(from float64) float64 {
	return math.Float64frombits(math.Float64bits(from) ^ bits.ReverseBytes64(u.uint()))
}

func (u *unpacker) view(v *ReplicaView, score float64) {
	v.Replica, v.Inflight, v.Queue = int32(u.int()), int32(u.int()), int32(u.int())
	v.Running, v.Prefix, v.AgeUS = int32(u.int()), int32(u.int()), u.int()
	v.KV, v.Score = u.change(unknownKV), u.change(score)
}
