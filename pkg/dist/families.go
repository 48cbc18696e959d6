package dist

import (
	"fmt"
	"math"
	"math/rand/v2"

	"blis/pkg/portable"
	"blis/pkg/registry"

	"gonum.org/v1/gonum/stat/distuv"
)

// distribution is a distribution before clamping: a generator of draws, the quantiles, and the
// share at or below a value.
type distribution struct {
	draw          variate
	quantile, cdf func(float64) float64
}

// Lengths are the distributions of lengths and durations. All accept min and max.
var Lengths = registry.Table[func(*builder) distribution]{
	{Name: "constant", Doc: "always value", Value: constant},
	{Name: "gaussian", Doc: "normal with mean and std_dev", Value: gaussian},
	{Name: "exponential", Doc: "exponential with mean", Value: exponential},
	{Name: "lognormal", Doc: "lognormal; mean and std_dev are of the values, not of their logarithms",
		Value: lognormal},
	{Name: "pareto", Doc: "Pareto with tail index alpha, and minimum or mean", Value: pareto},
	{Name: "uniform", Doc: "every integer from min to max with equal probability", Value: uniform},
	{Name: empiricalName, Doc: "values with weights, or quantiles with lines between them", Value: empirical},
	{Name: mixtureName, Doc: "one of components, chosen by weight", Value: mixture},
}

func constant(b *builder) distribution { return constantValue(b.get("value", b.min)) }

// constantValue is the distribution of a single value.
func constantValue(value float64) distribution {
	return distribution{
		func(*rand.Rand) float64 { return value },
		func(float64) float64 { return value },
		func(x float64) float64 {
			if x >= value {
				return 1
			}
			return 0
		},
	}
}

func gaussian(b *builder) distribution {
	mean, deviation := b.get("mean", 1), b.get("std_dev", 0)
	if deviation == 0 {
		return constantValue(mean)
	}
	d := distuv.Normal{Mu: mean, Sigma: deviation}
	return distribution{func(r *rand.Rand) float64 {
		return distuv.Normal{Mu: mean, Sigma: deviation, Src: r}.Rand()
	}, d.Quantile, d.CDF}
}

func exponential(b *builder) distribution {
	rate := 1 / b.get("mean", 1)
	d := distuv.Exponential{Rate: rate}
	return distribution{func(r *rand.Rand) float64 {
		return distuv.Exponential{Rate: rate, Src: r}.Rand()
	}, d.Quantile, d.CDF}
}

// lognormal matches moments: for values with mean m and standard deviation s, the logarithms have
// variance ln(1 + (s/m)²) and mean ln m minus half of that.
func lognormal(b *builder) distribution {
	mean, deviation := b.get("mean", 1), b.get("std_dev", 0)
	if deviation == 0 {
		return constantValue(mean)
	}
	d := distuv.LogNormal{}
	d.Mu, d.Sigma = lognormalOf(mean, deviation/mean)
	return distribution{func(r *rand.Rand) float64 {
		return distuv.LogNormal{Mu: d.Mu, Sigma: d.Sigma, Src: r}.Rand()
	}, d.Quantile, d.CDF}
}

// lognormalOf returns mean and standard deviation of the logarithms for the given mean and cv.
func lognormalOf(mean, cv float64) (mu, sigma float64) {
	variance := portable.Log1p(cv * cv)
	return portable.Log(mean) - float64(variance/2), math.Sqrt(variance)
}

// Limits of a tail index: at 1 the mean is infinite, and far above there is no variation.
const (
	minTail = 1.001
	maxTail = 1000
)

// pareto has the share (minimum/x)^alpha above x, and the mean minimum·alpha/(alpha − 1).
func pareto(b *builder) distribution {
	alpha := b.between("alpha", minTail, maxTail)
	var minimum float64
	if b.has("mean") == b.has("minimum") {
		b.fail("mean", "pareto needs either mean or minimum")
	} else if b.has("mean") {
		minimum = b.get("mean", 1) * (alpha - 1) / alpha
	} else {
		minimum = b.get("minimum", 1)
	}
	d := distuv.Pareto{Xm: minimum, Alpha: alpha}
	return distribution{func(r *rand.Rand) float64 {
		return distuv.Pareto{Xm: minimum, Alpha: alpha, Src: r}.Rand()
	}, d.Quantile, d.CDF}
}

// uniform extends half a token beyond its limits, so that rounding gives the limits the same
// probability as other values.
func uniform(b *builder) distribution {
	low, high := b.get("min", b.min)-0.5, b.get("max", b.min)+0.5
	quantile := func(p float64) float64 { return low + float64(p*(high-low)) }
	return distribution{
		func(r *rand.Rand) float64 { return quantile(r.Float64()) },
		quantile,
		func(x float64) float64 { return min(max((x-low)/(high-low), 0), 1) },
	}
}

// mixture draws from a component that it chooses at random. Draws are clamped by the component's
// own limits, and then by those of the mixture.
func mixture(b *builder) distribution {
	if len(b.Components) == 0 {
		b.failAt("components", "must have at least one entry")
	}
	components := make([]*Length, len(b.Components))
	var weights Weights
	for i := range components {
		b.weight(&weights, fmt.Sprintf("components[%d].weight", i), b.Components[i].Weight)
		var err error
		if components[i], err = b.component(i); err != nil && b.err == nil {
			b.err = err
		}
	}
	cdf := func(x float64) float64 {
		p := 0.0
		for i, l := range components {
			p += float64(weights.fraction(i) * l.clampedCDF(x))
		}
		return p
	}
	return distribution{func(r *rand.Rand) float64 {
		l := components[weights.Index(r.Float64())]
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
		x := low + float64((high-low)/2)
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
