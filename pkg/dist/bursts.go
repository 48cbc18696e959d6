package dist

import (
	"math"
	"math/rand/v2"
)

// Bursts are arrivals in bursts, all of one at the same instant: each time that
// an interval, in µs, has passed, there is one of the given size with probability
// prob. Another probability chooses among the same bursts.
func Bursts(prob float64, size, interval *Length) *Times {
	us, left := 0.0, int64(0)
	return &Times{func(r *rand.Rand) float64 {
		for left == 0 {
			us += float64(interval.Draw(r))
			n := size.Draw(r)
			if r.Float64() < prob {
				left = n
			}
		}
		left--
		return us
	}}
}

// Noise draws factors of mean 1 and the given cv, lognormal; 1 where cv is 0.
func Noise(cv float64) func(*rand.Rand) float64 {
	mu, sigma := lognormalOf(1, cv)
	return func(r *rand.Rand) float64 { return math.Exp(mu + sigma*r.NormFloat64()) }
}
