package sim

import (
	"math"

	"blis/pkg/des"
	"blis/pkg/policy"
)

// pace is how many prompt tokens (prefills) and tokens of answers (decodes) a replica
// has computed a µs of late: means in which what was paceUS ago counts 1/e.
type pace struct {
	at                des.Time
	prefill, decode   int64 // computed until then
	prefills, decodes float64
}

const paceUS = 60_000_000

// update lets the pace be that of now.
func (p *pace) update(now des.Time, prefill, decode int64) {
	d := now - p.at
	if d == 0 {
		return
	}
	fade := math.Exp(-float64(d) / paceUS)
	each := (1 - fade) / float64(d) // what a token of the time since counts
	p.prefills = float64(p.prefills*fade) + float64(each*float64(prefill-p.prefill))
	p.decodes = float64(p.decodes*fade) + float64(each*float64(decode-p.decode))
	p.at, p.prefill, p.decode = now, prefill, decode
}

// expect says of each candidate's true outlook what is to be expected beside the
// request: its own pace as far as replicas differ, else what is common to them, since
// routers that balance send less to whoever had more.
func (g *judge) expect(s *simulation, v *policy.View) {
	if g.paces == nil {
		g.paces = make([]pace, len(s.replicas))
	}
	// A run counts as at least paceUS/10 old, so that what happens first is not taken to
	// go on for ever.
	age := 1 / (1 - math.Exp(-max(0.1, float64(s.now)/paceUS)))
	var prefills, decodes, squares float64
	for i := range v.Replicas {
		p := &g.paces[v.Replicas[i].Index]
		stats := s.replicas[v.Replicas[i].Index].engine.Stats()
		p.update(s.now, stats.PrefillTokens, stats.DecodeTokens)
		prefills, decodes, squares = prefills+p.prefills, decodes+p.decodes, squares+float64(p.prefills*p.prefills)
	}
	n := float64(len(v.Replicas))
	mean := prefills / n
	own := 1.0
	if variance := max(0, squares/n-float64(mean*mean)); mean > 0 {
		own = variance / (variance + float64(ownPace*mean*mean))
	}
	for i := range v.Replicas {
		p := &g.paces[v.Replicas[i].Index]
		g.true[i].PrefillRate = age * (float64(own*p.prefills) + float64((1-own)*mean))
		g.true[i].DecodeRate = age * (float64(own*p.decodes) + float64((1-own)*decodes/n))
	}
}

// ownPace is the squared coefficient of variation of replicas' paces at which half of
// what is expected of a replica is its own. It was chosen on the Mooncake trace, with
// a router that piles up and one that balances.
const ownPace = 0.3
