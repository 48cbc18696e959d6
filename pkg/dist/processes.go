package dist

import (
	"math"
	"math/rand/v2"

	"blis/pkg/portable"

	"gonum.org/v1/gonum/stat/distuv"
)

func poisson(*params) variate { return unitExponential }

func unitExponential(r *rand.Rand) float64 { return distuv.Exponential{Rate: 1, Src: r}.Rand() }

func equalGaps(*params) variate {
	return func(*rand.Rand) float64 { return 1 }
}

// Limits of cv: the range in which the Weibull shape is solved, far wider than real traffic.
const (
	minCV = 0.01
	maxCV = 100
)

// gamma gaps with shape k have cv 1/√k, and mean 1 at rate k.
func gamma(p *params) variate {
	cv := p.between("cv", minCV, maxCV)
	shape := 1 / (cv * cv)
	return func(r *rand.Rand) float64 { return distuv.Gamma{Alpha: shape, Beta: shape, Src: r}.Rand() }
}

func weibull(p *params) variate {
	cv := p.between("cv", minCV, maxCV)
	if p.err != nil {
		return nil
	}
	shape := weibullShape(cv)
	scale := 1 / math.Gamma(1+1/shape)
	return func(r *rand.Rand) float64 { return distuv.Weibull{K: shape, Lambda: scale, Src: r}.Rand() }
}

// weibullShape solves 1 + cv² = Γ(1 + 2/k) / Γ(1 + 1/k)² for k by bisection; the right side falls
// as k rises. The bracket covers every cv from minCV to maxCV.
func weibullShape(cv float64) float64 {
	want := portable.Log1p(cv * cv)
	low, high := 0.05, 1000.0
	for {
		k := (low + high) / 2
		if k <= low || k >= high {
			return k
		}
		twice, _ := math.Lgamma(1 + 2/k)
		once, _ := math.Lgamma(1 + 1/k)
		if twice-2*once > want {
			low = k
		} else {
			high = k
		}
	}
}

// bursty gaps are Pareto. With shape a > 2, cv² = 1/(a(a − 2)); up to 2 the cv is infinite. The
// smaller the shape, the more of the time is in a few long gaps.
func bursty(p *params) variate {
	var shape float64
	switch {
	case p.has("cv") == p.has("shape"):
		p.fail("cv", "bursty needs either cv or shape")
	case p.has("cv"):
		cv := p.between("cv", minCV, maxCV)
		shape = 1 + math.Sqrt(1+1/(cv*cv))
	default:
		shape = p.between("shape", minTail, maxTail)
	}
	minimum := (shape - 1) / shape // for a mean of 1
	return func(r *rand.Rand) float64 { return distuv.Pareto{Xm: minimum, Alpha: shape, Src: r}.Rand() }
}

// periodic has arrival k, from 1, at k gaps plus a random part of jitter gaps. A late arrival does
// not delay others, so arrivals do not drift. The cv of the gaps is jitter/√6.
func periodic(p *params, gapUS float64) Times {
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
		return (k + float64(jitter*r.Float64())) * gapUS
	}
}

// maxSpikeS is 31 years.
const maxSpikeS = 1e9

// spikes are Poisson arrivals with two alternating rates whose mean is that of the gap. Unit
// exponentials add up to an area under the rate; an arrival is where the rate's integral reaches
// it.
func spikes(p *params, gapUS float64) Times {
	interval := float64(p.between("interval_s", 1e-6, maxSpikeS) * 1e6)
	duration := float64(p.between("duration_s", 1e-6, maxSpikeS) * 1e6)
	times := p.between("multiplier", 1, 1e6)
	if p.err == nil && duration >= interval {
		p.fail("duration_s", "must be below interval_s (%g), is %g", interval/1e6, duration/1e6)
	}
	quiet := interval - duration
	rate := interval / (quiet + float64(times*duration)) / gapUS
	whole, before := interval/gapUS, quiet*rate // areas of an interval and of its quiet part
	area := 0.0
	return func(r *rand.Rand) float64 {
		area += unitExponential(r)
		passed := math.Floor(area / whole)
		rest := area - float64(passed*whole)
		if rest < before {
			return float64(passed*interval) + rest/rate
		}
		return float64(passed*interval) + quiet + (rest-before)/(times*rate)
	}
}

// maxBurst is the maximum burst size.
const maxBurst = 1e6

// adversarial has size arrivals at each multiple of size gaps: two clients of one size and rate
// strike at the same instants.
func adversarial(p *params, gapUS float64) Times {
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

// Bursts returns arrivals in bursts, all arrivals of a burst at one instant. After each interval,
// in µs, a burst of the given size arrives with the given probability. With a lower probability the
// bursts are a subset of the same ones.
func Bursts(probability float64, size, interval *Length) Times {
	us, left := 0.0, int64(0)
	return func(r *rand.Rand) float64 {
		for left == 0 {
			us += float64(interval.Draw(r))
			n := size.Draw(r)
			if r.Float64() < probability {
				left = n
			}
		}
		left--
		return us
	}
}

// Noise returns a generator of lognormal factors of mean 1 and the given cv; 1 if cv is 0.
func Noise(cv float64) func(*rand.Rand) float64 {
	mu, sigma := lognormalOf(1, cv)
	return func(r *rand.Rand) float64 { return portable.Exp(mu + float64(sigma*r.NormFloat64())) }
}
