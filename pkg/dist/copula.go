package dist

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Correlated is l where something else is known to lie between its quantiles low and
// high, with which l is correlated: a Gaussian copula. Both are taken for ranks
// of normal numbers of correlation rho, 0 to 1. Where the other one is spread as
// it should be, what is drawn has the distribution of l altogether.
func (l *Length) Correlated(rho, low, high float64) *Length {
	leaning := *l
	rest := math.Sqrt(1 - rho*rho)
	leaning.draw = func(r *rand.Rand) float64 {
		other := distuv.UnitNormal.Quantile(low + (high-low)*uniformOpen(r))
		own := distuv.UnitNormal.Quantile(uniformOpen(r))
		return l.quantile(distuv.UnitNormal.CDF(rho*other + rest*own))
	}
	return &leaning
}

// uniformOpen draws a uniform number above 0 and below 1.
func uniformOpen(r *rand.Rand) float64 { return (float64(r.Uint64()>>12) + 0.5) / (1 << 52) }
