package dist

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// mixture draws from a component that it chooses at random. Draws are clamped by the component's
// own limits, and then by those of the mixture.
func mixture(b *builder) distribution {
	if len(b.Components) == 0 {
		b.failAt("components", "must have at least one entry")
	}
	components := make([]*Length, len(b.Components))
	var weights cumulativeWeights
	for i := range components {
		weights.add(b, fmt.Sprintf("components[%d].weight", i), b.Components[i].Weight)
		var err error
		if components[i], err = b.component(i); err != nil && b.err == nil {
			b.err = err
		}
	}
	cdf := func(x float64) float64 {
		p := 0.0
		for i, l := range components {
			p += weights.fraction(i) * l.clampedCDF(x)
		}
		return p
	}
	return distribution{func(r *rand.Rand) float64 {
		l := components[weights.index(r.Float64())]
		return l.clamp(l.draw(r))
	}, func(p float64) float64 { return invert(components, cdf, p) }, cdf}
}

// invert returns the quantile of p for a mixture, by bisection between the lowest and the highest
// quantile of its components.
func invert(components []*Length, cdf func(float64) float64, p float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range components {
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
