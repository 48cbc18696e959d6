package dist

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

const (
	empiricalName = "empirical"
	mixtureName   = "mixture"
)

// maxWeight keeps sums of weights finite.
const maxWeight = 1e12

// builder reads what one Spec says to a family.
type builder struct {
	Spec
	// field is the path before the fields of Spec.
	field string
	params
	// component makes one of the components.
	component func(i int) (*Length, error)
}

// failAt notes a fault of a field that is no parameter.
func (b *builder) failAt(field, format string, args ...any) {
	if b.err == nil {
		b.err = &ParamError{b.field + field, fmt.Sprintf(format, args...)}
	}
}

// checkLists reports a list that the family does not read.
func (b *builder) checkLists() {
	for _, list := range []struct {
		name, family string
		given        bool
	}{
		{"values", empiricalName, b.Values != nil},
		{"weights", empiricalName, b.Weights != nil},
		{"quantiles", empiricalName, b.Quantiles != nil},
		{"components", mixtureName, b.Components != nil},
	} {
		if list.given && b.Type != list.family {
			b.failAt(list.name, "%s has none; %s has", b.Type, list.family)
		}
	}
}

// shares are running sums of weights.
type shares []float64

// add appends a weight, which must be above 0.
func (s *shares) add(b *builder, field string, weight float64) {
	if !(weight > 0 && weight <= maxWeight) {
		b.failAt(field, "must be above 0 and at most %g, is %g", float64(maxWeight), weight)
	}
	if n := len(*s); n > 0 {
		weight += (*s)[n-1]
	}
	*s = append(*s, weight)
}

// at returns the place that a share p of all weight leads to. Rounding may take
// it up to the last sum itself.
func (s shares) at(p float64) int {
	p *= s[len(s)-1]
	return min(sort.Search(len(s), func(i int) bool { return s[i] > p }), len(s)-1)
}

// of is the part of the weight at place i.
func (s shares) of(i int) float64 {
	own := s[i]
	if i > 0 {
		own -= s[i-1]
	}
	return own / s[len(s)-1]
}

// empirical draws by its quantiles: of the values given, or of lines between
// the quantiles given.
func empirical(b *builder) law {
	var quantile, cdf func(float64) float64
	switch {
	case (b.Values == nil) == (b.Quantiles == nil):
		b.failAt("values", "must be given, or quantiles, and not both")
	case b.Values != nil:
		quantile, cdf = b.weighted()
	case b.Weights != nil:
		b.failAt("weights", "are those of values, not of quantiles")
	default:
		quantile, cdf = b.lines()
	}
	return law{func(r *rand.Rand) float64 { return quantile(r.Float64()) }, quantile, cdf}
}

// weighted reads Values and Weights.
func (b *builder) weighted() (quantile, cdf func(float64) float64) {
	if len(b.Values) == 0 || b.Weights != nil && len(b.Weights) != len(b.Values) {
		b.failAt("values", "must be at least one, and as many as weights; there are %d and %d", len(b.Values), len(b.Weights))
		return nil, nil
	}
	order := make([]int, len(b.Values))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return b.Values[order[i]] < b.Values[order[j]] })
	values := make([]float64, len(order))
	var sums shares
	for i, from := range order {
		values[i] = b.value(fmt.Sprintf("values[%d]", from), b.Values[from])
		weight := 1.0
		if b.Weights != nil {
			weight = b.Weights[from]
		}
		sums.add(b, fmt.Sprintf("weights[%d]", from), weight)
	}
	quantile = func(p float64) float64 { return values[sums.at(p)] }
	cdf = func(x float64) float64 {
		n := sort.Search(len(values), func(i int) bool { return values[i] > x })
		if n == 0 {
			return 0
		}
		return sums[n-1] / sums[len(sums)-1]
	}
	return quantile, cdf
}

// value checks one that can be drawn.
func (b *builder) value(field string, v float64) float64 {
	if !(v >= b.least && v <= b.most) {
		b.failAt(field, "must be between %.16g and %.16g, is %g", b.least, b.most, v)
	}
	return v
}

// lines reads Quantiles. What lies below the first probability has the first
// value, what lies above the last one the last.
func (b *builder) lines() (quantile, cdf func(float64) float64) {
	if len(b.Quantiles) == 0 {
		b.failAt("quantiles", "must be at least one pair of a probability and a value")
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
			b.failAt(field, "must come after the pair above: probabilities rise and values do not fall")
		}
	}
	return func(at float64) float64 { return follow(p, v, at) }, func(at float64) float64 {
		switch {
		case at < v[0]:
			return 0
		case at >= v[len(v)-1]:
			return 1
		}
		return follow(v, p, at)
	}
}

// follow returns the height at x of the line through points from left to right,
// level beyond them. Where it is steep, the height is the upper end's.
func follow(xs, ys []float64, x float64) float64 {
	i := sort.Search(len(xs), func(i int) bool { return xs[i] > x })
	switch i {
	case 0:
		return ys[0]
	case len(xs):
		return ys[i-1]
	}
	part := (x - xs[i-1]) / (xs[i] - xs[i-1])
	return ys[i-1] + part*(ys[i]-ys[i-1])
}

// mixture draws which of its components is drawn from. The components are
// clamped by their own bounds, and what they draw by those of the mixture.
func mixture(b *builder) law {
	if len(b.Components) == 0 {
		b.failAt("components", "must be at least one")
	}
	of := make([]*Length, len(b.Components))
	var sums shares
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
			below += sums.of(i) * l.below(x)
		}
		return below
	}
	return law{func(r *rand.Rand) float64 {
		l := of[sums.at(r.Float64())]
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
