package attribution

import (
	"math/bits"
	"slices"
)

// speeds are how fast replicas decode.
type speeds struct {
	// slower is by how much a replica takes longer for each output token than its fastest peer does with as many
	// requests; 1 where that is not known. Peers serve the same model.
	slower []float64
	// configured: too few requests are similar to compare them; slower is that of the step times in the configuration.
	configured []bool
	// fastest is the TPOT in ms of the fastest request that was served with each model, 0 without any.
	fastest map[string]float64
}

// slowFactor times the TPOT of a peer with as many requests is that of a slow replica.
const slowFactor = 1.35

// minOutput tokens make the TPOT of a request a measure of the replica.
const minOutput = 16

// tpotMS is the mean time per output token after the first, 0 for a request that did not complete or has few.
func (a *Analyzer) tpotMS(r *request) float64 {
	if !a.completed(r) || r.tokens.output < minOutput || r.times.firstToken == never {
		return 0
	}
	return latencyMS(r.times.firstToken, r.times.ended) / float64(r.tokens.output-1)
}

// company is how busy a replica was while a request decoded there: the ranges, each within a factor of 2, of the
// requests that it found and of the prompt tokens of others for each of its output tokens.
type company struct{ resident, interfering int }

func (r *request) company() company {
	perToken := r.contention.interfering / int64(max(1, r.tokens.output-1))
	return company{bits.Len32(uint32(max(0, r.contention.resident))), bits.Len64(uint64(max(0, perToken)) / 16)}
}

// measureSpeeds compares replicas by the TPOT of requests with similar company.
func (a *Analyzer) measureSpeeds() {
	tpots, s := make([]map[company][]float64, len(a.topology.replicas)), &a.stats.speeds
	s.fastest = map[string]float64{}
	for n := range tpots {
		tpots[n] = map[company][]float64{}
	}
	for _, r := range a.requests {
		if tpot := a.tpotMS(r); tpot > 0 && r.replica != missing {
			if model := a.topology.deploymentOf(r.replica).Model; s.fastest[model] == 0 || tpot < s.fastest[model] {
				s.fastest[model] = tpot
			}
			tpots[r.replica][r.company()] = append(tpots[r.replica][r.company()], tpot)
		}
	}
	for n := range tpots {
		factor, measured := a.slowerThanPeers(tpots, int32(n))
		if !measured {
			factor = a.slowerByConfiguration(int32(n))
		}
		s.slower, s.configured = append(s.slower, factor), append(s.configured, !measured)
	}
}

// slowerThanPeers is by what factor the TPOT of a replica is above that of its fastest peer with similar company;
// false where too few requests say so.
func (a *Analyzer) slowerThanPeers(tpots []map[company][]float64, n int32) (factor float64, measured bool) {
	var ratios []float64
	for c, own := range tpots[n] { // sorted below
		best := 0.0
		for _, peer := range a.topology.byModel[a.topology.deploymentOf(n).Model] {
			if list := tpots[peer][c]; peer != n && len(list) >= speedSamples && (best == 0 || median(list) < best) {
				best = median(list)
			}
		}
		if len(own) >= speedSamples && best > 0 {
			ratios = append(ratios, median(own)/best)
		}
	}
	if len(ratios) == 0 {
		return 0, false
	}
	return median(ratios), true
}

// slowerByConfiguration is by what factor a typical step of a replica takes longer than that of its fastest peer,
// by linear step times; 1 where these are not known.
func (a *Analyzer) slowerByConfiguration(n int32) float64 {
	d := a.topology.deploymentOf(n)
	own, best := d.typicalStepUS(), 0.0
	for i := range a.topology.Deployments {
		if peer := &a.topology.Deployments[i]; peer.Model == d.Model && peer.Replicas > 0 {
			if us := peer.typicalStepUS(); us > 0 && (best == 0 || us < best) {
				best = us
			}
		}
	}
	if own == 0 || best == 0 {
		return 1
	}
	return own / best
}

// typicalStepUS is the time of a step with 256 prompt tokens and 32 sequences, 0 where step times are not linear.
func (d *deployment) typicalStepUS() float64 {
	if d.Latency.Model != "linear" || len(d.Latency.BetaUS) < 3 {
		return 0
	}
	b := d.Latency.BetaUS
	return b[0] + float64(256*b[1]) + float64(32*b[2])
}

// median is the lower median of a list, which it sorts.
func median(list []float64) float64 {
	slices.Sort(list)
	return list[(len(list)-1)/2]
}
