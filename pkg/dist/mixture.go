package dist

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// mixture draws which of its components is drawn from. The components are
// clamped by their own bounds, and what they draw by those of the mixture.
func mixture(b *builder) distribution {
	if len(b.Components) == 0 {
		b.failAt("components", "must be at least one")
	}
	of := make([]*Length, len(b.Components))
	var sums cumulativeWeights
	for i := range of {
		sums.add(b, fmt.Sprintf("components[%d].weight", i), b.Components[i].Weight)
		var err error
		if of[i], err = b.component(i); err != nil && b.err == nil {
			b.err = err
		}
	}
	cdf := func(x float64) float64 {
		below := 0.0
		for i, l := range of {
			below += sums.fraction(i) * l.clampedCDF(x)
		}
		return below
	}
	return distribution{func(r *rand.Rand) float64 {
		l := of[sums.index(r.Float64())]
		return l.clamp(l.draw(r))
	}, func(p float64) float64 { return invert(of, cdf, p) }, cdf}
}

// invert finds by halving where a mixture's cdf reaches p: between the least and
// the greatest of its components' quantiles.
func invert(of []*Length, cdf func(float64) float64, p float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range of {
		v := l.clamp(l.quantile(p))
		low, high = min(low, v), max(high, v)
	}
	if cdf(low) >= p {
		return low
	}
	for {
		x := low + (high-low)/2
		if x <= low || x >= high {
			return high
		}
		if cdf(x) < p {
			low = x
		} else {
			high = x
		}
	}
}
