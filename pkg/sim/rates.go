package sim

import (
	"math"

	"blis/pkg/des"
	"blis/pkg/policy"
)

// rateEWMA holds the recent prefill and decode rates of a replica in tokens per µs: exponential
// moving averages with time constant rateWindowUS.
type rateEWMA struct {
	at                          des.Time
	prefillTokens, decodeTokens int64 // computed until at
	prefillRate, decodeRate     float64
}

const rateWindowUS = 60_000_000

// update advances the averages to now.
func (p *rateEWMA) update(now des.Time, prefill, decode int64) {
	d := now - p.at
	if d == 0 {
		return
	}
	decay := math.Exp(-float64(d) / rateWindowUS)
	weight := (1 - decay) / float64(d) // weight of a new token
	p.prefillRate = float64(p.prefillRate*decay) + float64(weight*float64(prefill-p.prefillTokens))
	p.decodeRate = float64(p.decodeRate*decay) + float64(weight*float64(decode-p.decodeTokens))
	p.at, p.prefillTokens, p.decodeTokens = now, prefill, decode
}

// setConcurrentRates sets the expected concurrent load in each candidate's true forecast: a weighted
// mean of its own rates and those of all candidates. The more replicas differ, the more their own
// rates count: a balancing router sends less to replicas that had more.
func (g *oracle) setConcurrentRates(s *simulation, v *policy.View) {
	// A run counts as at least rateWindowUS/10 old, so that its first requests are not extrapolated.
	correction := 1 / (1 - math.Exp(-max(0.1, float64(s.now)/rateWindowUS)))
	var prefills, decodes, squares float64
	for i := range v.Replicas {
		p := &g.rates[v.Replicas[i].Index]
		stats := s.replicas[v.Replicas[i].Index].engine.Stats()
		p.update(s.now, stats.PrefillTokens, stats.DecodeTokens)
		prefills, decodes, squares = prefills+p.prefillRate, decodes+p.decodeRate,
			squares+float64(p.prefillRate*p.prefillRate)
	}
	n := float64(len(v.Replicas))
	mean := prefills / n
	ownWeight := 1.0
	if variance := max(0, squares/n-float64(mean*mean)); mean > 0 {
		ownWeight = variance / (variance + float64(halfWeightCV2*mean*mean))
	}
	for i := range v.Replicas {
		p := &g.rates[v.Replicas[i].Index]
		g.trueForecasts[i].PrefillRate = correction * (float64(ownWeight*p.prefillRate) + float64((1-ownWeight)*mean))
		g.trueForecasts[i].DecodeRate = correction *
			(float64(ownWeight*p.decodeRate) + float64((1-ownWeight)*decodes/n))
	}
}

// halfWeightCV2 is the squared coefficient of variation of the replicas' rates at which their own
// rates get half the weight. It was chosen on the Mooncake trace with a concentrating and a
// balancing router.
const halfWeightCV2 = 0.3
