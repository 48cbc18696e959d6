package dist

import (
	"fmt"
	"math/rand/v2"
	"sort"
)

// empirical draws by its quantiles: from the given values, or from lines between the given
// quantiles.
func empirical(b *builder) distribution {
	var quantile, cdf func(float64) float64
	switch {
	case (b.Values == nil) == (b.Quantiles == nil):
		b.failAt("values", "empirical needs either values or quantiles")
	case b.Values != nil:
		quantile, cdf = b.weighted()
	case b.Weights != nil:
		b.failAt("weights", "apply to values, not to quantiles")
	default:
		quantile, cdf = b.lines()
	}
	return distribution{func(r *rand.Rand) float64 { return quantile(r.Float64()) }, quantile, cdf}
}

// weighted reads Values and Weights.
func (b *builder) weighted() (quantile, cdf func(float64) float64) {
	if len(b.Values) == 0 || b.Weights != nil && len(b.Weights) != len(b.Values) {
		b.failAt("values", "must have at least one entry, and as many as weights; there are %d and %d", len(b.Values),
			len(b.Weights))
		return nil, nil
	}
	order := make([]int, len(b.Values))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return b.Values[order[i]] < b.Values[order[j]] })
	values := make([]float64, len(order))
	var sums Weights
	for i, from := range order {
		values[i] = b.value(fmt.Sprintf("values[%d]", from), b.Values[from])
		weight := 1.0
		if b.Weights != nil {
			weight = b.Weights[from]
		}
		b.weight(&sums, fmt.Sprintf("weights[%d]", from), weight)
	}
	quantile = func(p float64) float64 { return values[sums.Index(p)] }
	cdf = func(x float64) float64 {
		n := sort.Search(len(values), func(i int) bool { return values[i] > x })
		if n == 0 {
			return 0
		}
		return sums[n-1] / sums[len(sums)-1]
	}
	return quantile, cdf
}

// lines reads Quantiles. Below the first probability the quantile is the first value, above the
// last one the last.
func (b *builder) lines() (quantile, cdf func(float64) float64) {
	if len(b.Quantiles) == 0 {
		b.failAt("quantiles", "must have at least one pair of a probability and a value")
		return nil, nil
	}
	p, v := make([]float64, len(b.Quantiles)), make([]float64, len(b.Quantiles))
	for i, pair := range b.Quantiles {
		field := fmt.Sprintf("quantiles[%d]", i)
		if len(pair) != 2 {
			b.failAt(field, "must be a pair of a probability and a value, has %d numbers", len(pair))
			return nil, nil
		}
		p[i], v[i] = pair[0], b.value(field+"[1]", pair[1])
		if !(p[i] >= 0 && p[i] <= 1) {
			b.failAt(field+"[0]", "must be a probability between 0 and 1, is %g", p[i])
		}
		if i > 0 && (p[i] <= p[i-1] || v[i] < v[i-1]) {
			b.failAt(field, "must follow the previous pair: probabilities rise and values do not fall")
		}
	}
	return func(at float64) float64 { return interpolate(p, v, at) }, func(at float64) float64 {
		switch {
		case at < v[0]:
			return 0
		case at >= v[len(v)-1]:
			return 1
		}
		return interpolate(v, p, at)
	}
}

// interpolate returns the value at x of the line through the points, constant outside of them. At a
// vertical step it returns the upper end.
func interpolate(xs, ys []float64, x float64) float64 {
	i := sort.Search(len(xs), func(i int) bool { return xs[i] > x })
	switch i {
	case 0:
		return ys[0]
	case len(xs):
		return ys[i-1]
	}
	part := (x - xs[i-1]) / (xs[i] - xs[i-1])
	return ys[i-1] + float64(part*(ys[i]-ys[i-1]))
}
