package dist

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Correlated returns l conditional on another quantity between its quantiles low and high, which is
// correlated with l by a Gaussian copula: the ranks of both are those of normal variables with
// correlation rho, 0 to 1. If the other quantity follows its own distribution, the draws follow l
// overall.
func (l *Length) Correlated(rho, low, high float64) *Length {
	conditional := *l
	rest := math.Sqrt(1 - rho*rho)
	conditional.draw = func(r *rand.Rand) float64 {
		other := distuv.UnitNormal.Quantile(low + (high-low)*uniformOpen(r))
		own := distuv.UnitNormal.Quantile(uniformOpen(r))
		return l.quantile(distuv.UnitNormal.CDF(rho*other + rest*own))
	}
	return &conditional
}

// uniformOpen draws a uniform number above 0 and below 1.
func uniformOpen(r *rand.Rand) float64 { return (float64(r.Uint64()>>12) + 0.5) / (1 << 52) }
