package dist

import (
	"math"
	"math/rand/v2"
)

// Bursts returns arrivals in bursts, all arrivals of a burst at one instant. After each interval,
// in µs, a burst of the given size arrives with the given probability. With a lower probability the
// bursts are a subset of the same ones.
func Bursts(probability float64, size, interval *Length) *Times {
	us, left := 0.0, int64(0)
	return &Times{func(r *rand.Rand) float64 {
		for left == 0 {
			us += float64(interval.Draw(r))
			n := size.Draw(r)
			if r.Float64() < probability {
				left = n
			}
		}
		left--
		return us
	}}
}

// Noise returns a generator of lognormal factors of mean 1 and the given cv; 1 if cv is 0.
func Noise(cv float64) func(*rand.Rand) float64 {
	mu, sigma := lognormalOf(1, cv)
	return func(r *rand.Rand) float64 { return math.Exp(mu + sigma*r.NormFloat64()) }
}
