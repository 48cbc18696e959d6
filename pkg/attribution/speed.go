package attribution

import (
	"math/bits"
	"slices"

	"blis/pkg/stat"
)

// speeds are how fast replicas decode.
type speeds struct {
	// slower is by how much a replica takes longer for each output token than its fastest peer does with as many
	// requests; 1 where that is not known. Peers serve the same model.
	slower []float64
	// configured: too few requests are similar to compare them; slower is that of the step times in the configuration.
	configured []bool
	// deployment: all replicas of its deployment are slower than those with other hardware; slower is the least factor.
	deployment []bool
	// lostCapacity is the share of the capacity of the replicas with each model that slow ones do not have, and slowest
	// the slowest of them.
	lostCapacity map[string]float64
	slowest      map[string]int32
	// fastest is the TPOT in ms of the fastest request that was served with each model, 0 without any.
	fastest map[string]float64
}

// slowFactor times the TPOT of a peer with as many requests is that of a slow replica.
const slowFactor = 1.35

// minOutput tokens make the TPOT of a request a measure of the replica.
const minOutput = 16

// tpotMS is the mean time per output token after the first, 0 for a request that did not complete or has few.
func (a *Analyzer) tpotMS(r *request) float64 {
	if !a.completed(r) || r.tokens.output < minOutput || r.firstToken() == never {
		return 0
	}
	return latencyMS(r.firstToken(), r.ended()) / float64(r.tokens.output-1)
}

// company is how busy a replica was while a request decoded there: the ranges, each within a factor of 2, of the
// requests in its batches and of the prompt tokens of others for each ms. For each output token these would be more
// on a slow replica.
type company struct{ running, interfering int }

func (d decoding) company() company {
	ms := max(1, d.us/1000)
	return company{bits.Len32(uint32(d.concurrent)), bits.Len64(uint64(d.interfering / ms))}
}

// decoding is how long a request decoded, how many tokens, and what its replica did meanwhile: concurrent and
// interfering are those of its contention.
type decoding struct {
	us          int64
	tokens      int32 // after the first
	concurrent  float64
	interfering int64
}

func (r *request) decoding() decoding {
	return decoding{int64(r.ended() - r.firstToken()), r.tokens.output - 1, r.contention.concurrent,
		r.contention.interfering}
}

// measureSpeeds compares replicas, and deployments with different hardware, by the TPOT of requests with similar
// company.
func (a *Analyzer) measureSpeeds() {
	units, samples := a.speedUnits(), samplesByCompany{}
	for n, requests := range a.byReplica() {
		a.measureSpeed(&units[n], requests, &samples)
	}
	a.compareSpeeds(units)
}

// compareSpeeds is measureSpeeds for units with their requests.
func (a *Analyzer) compareSpeeds(units []speedUnit) {
	s := &a.stats.speeds
	s.slower, s.configured = a.slowerThanPeers(units)
	s.deployment = make([]bool, len(units))
	if a.topology.isMixed() {
		a.compareDeployments(units)
	}
	s.measureCapacity(units)
}

// measureCapacity finds lostCapacity and slowest.
func (s *speeds) measureCapacity(units []speedUnit) {
	s.lostCapacity, s.slowest = map[string]float64{}, map[string]int32{}
	replicas := map[string]float64{}
	for n := range units {
		model := units[n].deployment.Model
		replicas[model]++
		if s.slower[n] < slowFactor {
			continue
		}
		s.lostCapacity[model] += 1 - 1/s.slower[n]
		if first, known := s.slowest[model]; !known || s.slower[n] > s.slower[first] {
			s.slowest[model] = int32(n)
		}
	}
	for model, n := range replicas {
		s.lostCapacity[model] /= n
	}
}

// isMixed reports whether deployments have different hardware.
func (t *topology) isMixed() bool {
	return slices.ContainsFunc(t.Deployments, func(d deployment) bool {
		return d.hardware() != t.Deployments[0].hardware()
	})
}

// compareDeployments finds deployments of several replicas that are slower than others with other hardware: all of
// their replicas with enough requests are. A replica that is clearly slower than that stays one of its own.
func (a *Analyzer) compareDeployments(units []speedUnit) {
	s, kinds, least := &a.stats.speeds, map[string]int32{}, map[*deployment]float64{}
	for i := range units {
		name := units[i].deployment.hardware()
		if _, known := kinds[name]; !known {
			kinds[name] = int32(len(kinds))
		}
		units[i].group = kinds[name]
	}
	slower, configured := a.slowerThanPeers(units)
	replicas := map[*deployment]int{}
	for i := range units {
		u := &units[i]
		replicas[u.deployment]++
		if factor := least[u.deployment]; u.fit.n >= speedSamples && (factor == 0 || slower[i] < factor) {
			least[u.deployment] = slower[i]
		}
	}
	for i := range units {
		d := units[i].deployment
		if factor := least[d]; replicas[d] > 1 && factor >= slowFactor && s.slower[i] < float64(slowFactor*factor) {
			s.slower[i], s.configured[i], s.deployment[i] = factor, configured[i], true
		}
	}
}

// speedSample is a TPOT in ms and the mean number of requests in the batches then.
type speedSample struct{ tpot, running float64 }

// medianSample has the lower medians of samples.
func medianSample(list []speedSample) speedSample {
	values := make([]float64, len(list))
	of := func(value func(speedSample) float64) float64 {
		for i, s := range list {
			values[i] = value(s)
		}
		return median(values)
	}
	return speedSample{of(func(s speedSample) float64 { return s.tpot }),
		of(func(s speedSample) float64 { return s.running })}
}

// fastestPeers are the two lowest TPOTs of the units of a model in some company, of different groups; the second one is
// zero if there is none.
type fastestPeers struct {
	first, second speedSample
	at            int32 // the group with the first
}

func (f *fastestPeers) with(group int32, s speedSample) *fastestPeers {
	switch {
	case f == nil:
		return &fastestPeers{first: s, at: group}
	case f.at == group:
		if s.tpot < f.first.tpot {
			f.first = s
		}
	case s.tpot < f.first.tpot:
		*f = fastestPeers{s, f.first, group}
	case f.second.tpot == 0 || s.tpot < f.second.tpot:
		f.second = s
	}
	return f
}

// besides is the fastest one that is not of a group.
func (f *fastestPeers) besides(group int32) speedSample {
	if f.at == group {
		return f.second
	}
	return f.first
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

// slowerByConfiguration is by what factor a typical step of a deployment takes longer than that of its fastest peer,
// by linear step times; 1 where these are not known.
func (a *Analyzer) slowerByConfiguration(d *deployment) float64 {
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

// median is the lower median of a list, which it reorders.
func median(list []float64) float64 { return stat.Nth(list, (len(list)-1)/2) }

// medianOrZero is median, or 0 of an empty list.
func medianOrZero(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return median(list)
}
