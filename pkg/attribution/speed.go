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
// requests in its batches and of the prompt tokens of others for each ms. For each output token these would be more
// on a slow replica.
type company struct{ running, interfering int }

func (r *request) company() company {
	ms := max(1, int64(r.times.ended-r.times.firstToken)/1000)
	return company{bits.Len32(uint32(r.contention.concurrent)), bits.Len64(uint64(r.contention.interfering / ms))}
}

// measureSpeeds compares replicas by the TPOT of requests with similar company.
func (a *Analyzer) measureSpeeds() {
	samples, s := make([]map[company][]speedSample, len(a.topology.replicas)), &a.stats.speeds
	s.fastest = map[string]float64{}
	for n := range samples {
		samples[n] = map[company][]speedSample{}
	}
	for _, r := range a.requests {
		if tpot := a.tpotMS(r); tpot > 0 && r.replica != missing {
			if model := a.topology.deploymentOf(r.replica).Model; s.fastest[model] == 0 || tpot < s.fastest[model] {
				s.fastest[model] = tpot
			}
			c := r.company()
			samples[r.replica][c] = append(samples[r.replica][c], speedSample{tpot, r.contention.concurrent})
		}
	}
	fits := a.fitSteps()
	medians, peers := make([]map[company]speedSample, len(samples)), map[string]map[company]*fastestPeers{}
	for n := range samples {
		medians[n] = map[company]speedSample{}
		model := a.topology.deploymentOf(int32(n)).Model
		if peers[model] == nil {
			peers[model] = map[company]*fastestPeers{}
		}
		for c, list := range samples[n] {
			if len(list) >= speedSamples {
				medians[n][c] = medianSample(list)
				peers[model][c] = peers[model][c].with(int32(n), medians[n][c])
			}
		}
	}
	for n, own := range medians {
		peers := peers[a.topology.deploymentOf(int32(n)).Model]
		factor, configured := a.slowerThanOthers(int32(n), own, samples[n], peers, fits)
		s.slower, s.configured = append(s.slower, factor), append(s.configured, configured)
	}
}

// slowerThanOthers is by what factor a replica is slower, and whether that is known from the configuration alone. The
// medians and samples are its own ones by company, peers those of its model.
func (a *Analyzer) slowerThanOthers(n int32, medians map[company]speedSample, samples map[company][]speedSample,
	peers map[company]*fastestPeers, fits []stepFit) (factor float64, configured bool) {
	factor, configured = a.slowerByConfiguration(n), true
	ratios := slowerThanPeers(medians, n, peers, speedSample.same)
	if len(ratios) > 0 {
		factor, configured = median(ratios), false
	}
	if covered, all := comparable(samples, n, peers); 2*covered >= all && len(ratios) > 0 {
		return factor, configured
	}
	if least := slowerThanPeers(medians, n, peers, speedSample.most); len(least) > 0 {
		if bound := slices.Max(least); bound >= slowFactor && bound > factor {
			factor, configured = bound, false
		}
	}
	if fitted := a.slowerThanFit(n, fits); fitted >= slowByFit && fitted > factor {
		factor, configured = fitted, false
	}
	return factor, configured
}

// comparable is how many requests of a replica were in a company that a peer had, and how many there are.
func comparable(samples map[company][]speedSample, n int32, peers map[company]*fastestPeers) (covered, all int) {
	for c, list := range samples { // sums of integers
		all += len(list)
		if f := peers[c]; f != nil && f.besides(n).tpot > 0 && len(list) >= speedSamples {
			covered += len(list)
		}
	}
	return covered, all
}

// speedSample is a TPOT in ms and the mean number of requests in the batches then.
type speedSample struct{ tpot, running float64 }

// medianSample has the lower medians of samples.
func medianSample(list []speedSample) speedSample {
	tpots, running := make([]float64, len(list)), make([]float64, len(list))
	for i, s := range list {
		tpots[i], running[i] = s.tpot, s.running
	}
	return speedSample{median(tpots), median(running)}
}

// fastestPeers are those of the replicas of a model with the two lowest TPOTs in some company; the second one is zero
// if there is none.
type fastestPeers struct {
	first, second speedSample
	at            int32 // the replica with the first
}

func (f *fastestPeers) with(n int32, s speedSample) *fastestPeers {
	switch {
	case f == nil:
		return &fastestPeers{first: s, at: n}
	case s.tpot < f.first.tpot:
		*f = fastestPeers{s, f.first, n}
	case f.second.tpot == 0 || s.tpot < f.second.tpot:
		f.second = s
	}
	return f
}

// besides is the fastest one that is not replica n.
func (f *fastestPeers) besides(n int32) speedSample {
	if f.at == n {
		return f.second
	}
	return f.first
}

// slowerThanPeers are, for each company of a replica, the factors by which its TPOT is above what the fastest peer
// would need there, by an estimate from another company that is 0 where there is none.
func slowerThanPeers(own map[company]speedSample, n int32, peers map[company]*fastestPeers,
	estimate func(peer, own speedSample, of, in company) float64) (ratios []float64) {
	for c, s := range own { // the callers do not depend on the order
		best := 0.0
		for other, f := range peers {
			if ms := estimate(f.besides(n), s, other, c); ms > 0 && (best == 0 || ms < best) {
				best = ms
			}
		}
		if best > 0 {
			ratios = append(ratios, s.tpot/best)
		}
	}
	return ratios
}

// same estimates from the same company only.
func (s speedSample) same(_ speedSample, of, in company) float64 {
	if of != in {
		return 0
	}
	return s.tpot
}

// most is what a peer would need at most: with fewer requests not more than it took, with more requests not longer by
// more than batches are larger, since a part of a step does not depend on them. More prompts could take any time.
func (s speedSample) most(own speedSample, of, in company) float64 {
	if in.interfering > of.interfering || s.running <= 0 {
		return 0
	}
	return s.tpot * max(1, own.running/s.running)
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
