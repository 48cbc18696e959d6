package dist

import (
	"math"
	"math/rand/v2"
)

// periodic has arrival k, from 1, at k gaps plus a random part of jitter gaps. A late arrival does
// not delay others, so arrivals do not drift. The cv of the gaps is jitter/√6.
func periodic(p *params, gapUS float64) arrivalClock {
	jitter := 0.0
	if p.has("jitter") {
		jitter = p.between("jitter", 0, 1)
	}
	k := 0.0
	return func(r *rand.Rand) float64 {
		k++
		if jitter == 0 {
			return k * gapUS
		}
		return (k + jitter*r.Float64()) * gapUS
	}
}

// maxSpikeS is 31 years.
const maxSpikeS = 1e9

// spikes are Poisson arrivals with two alternating rates whose mean is that of the gap. Unit
// exponentials add up to an area under the rate; an arrival is where the rate's integral reaches
// it.
func spikes(p *params, gapUS float64) arrivalClock {
	interval := p.between("interval_s", 1e-6, maxSpikeS) * 1e6
	duration := p.between("duration_s", 1e-6, maxSpikeS) * 1e6
	times := p.between("multiplier", 1, 1e6)
	if p.err == nil && duration >= interval {
		p.fail("duration_s", "must be below interval_s (%g), is %g", interval/1e6, duration/1e6)
	}
	quiet := interval - duration
	rate := interval / (quiet + times*duration) / gapUS
	whole, before := interval/gapUS, quiet*rate // areas of an interval and of its quiet part
	area := 0.0
	return func(r *rand.Rand) float64 {
		area += unitExponential(r)
		passed := math.Floor(area / whole)
		rest := area - passed*whole
		if rest < before {
			return passed*interval + rest/rate
		}
		return passed*interval + quiet + (rest-before)/(times*rate)
	}
}

// maxBurst is the maximum burst size.
const maxBurst = 1e6

// adversarial has size arrivals at each multiple of size gaps: two clients of one size and rate
// strike at the same instants.
func adversarial(p *params, gapUS float64) arrivalClock {
	size := p.between("burst_size", 1, maxBurst)
	if p.err == nil && size != math.Trunc(size) {
		p.fail("burst_size", "must be an integer, is %g", size)
	}
	k := 0.0
	return func(*rand.Rand) float64 {
		k++
		return math.Ceil(k/size) * size * gapUS
	}
}
