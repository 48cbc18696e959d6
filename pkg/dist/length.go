package dist

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Spec is a distribution and its parameters, as in files. All distributions accept the parameters
// min and max. Lengths are in tokens, durations in µs.
type Spec struct {
	// Type is a name in Lengths.
	Type string `yaml:"type"       json:"type"`
	// Params are the parameters of the type, by name.
	Params map[string]float64 `yaml:"params"     json:"params,omitempty"`
	// Values are the values of an empirical distribution, Weights their relative frequencies; without
	// weights all are equally likely.
	Values  []float64 `yaml:"values"     json:"values,omitempty"`
	Weights []float64 `yaml:"weights"    json:"weights,omitempty"`
	// Quantiles are the alternative form of an empirical distribution: pairs of a probability and its
	// quantile, both rising.
	Quantiles [][]float64 `yaml:"quantiles"  json:"quantiles,omitempty"`
	// Components are the components of a mixture.
	Components []Component `yaml:"components" json:"components,omitempty"`
}

// Component is a component of a mixture.
type Component struct {
	// Weight is its relative frequency.
	Weight float64 `yaml:"weight"  json:"weight"`
	Spec   `        yaml:",inline"`
}

// Length is a distribution of integers: lengths in tokens, durations in µs, or counts.
type Length struct {
	distribution
	min, max float64
}

// Length checks s and returns the distribution of lengths, at least one token. An error is a
// *ParamError.
func (s Spec) Length() (*Length, error) { return s.build(tokens, "") }

// Duration checks s and returns the distribution of durations, at least 0 µs. An error is a
// *ParamError.
func (s Spec) Duration() (*Length, error) { return s.build(micros, "") }

// Count checks s and returns the distribution of counts, at least 0. An error is a *ParamError.
func (s Spec) Count() (*Length, error) { return s.build(counts, "") }

// Scaled returns the distribution of the draws of s multiplied by factor.
func (s Spec) Scaled(factor float64) Spec {
	s.Params = maps.Clone(s.Params)
	for name := range s.Params {
		if name != "alpha" { // all others are lengths
			s.Params[name] *= factor
		}
	}
	s.Values = slices.Clone(s.Values)
	for i := range s.Values {
		s.Values[i] *= factor
	}
	s.Quantiles = slices.Clone(s.Quantiles)
	for i, pair := range s.Quantiles {
		if pair = slices.Clone(pair); len(pair) == 2 { // other lengths are invalid, which build reports
			pair[1] *= factor
		}
		s.Quantiles[i] = pair
	}
	s.Components = slices.Clone(s.Components)
	for i, c := range s.Components {
		s.Components[i].Spec = c.Scaled(factor)
	}
	return s
}

// build builds the distribution within the limits; at is the path prefix of the fields of s.
func (s Spec) build(within limits, at string) (*Length, error) {
	f, err := Lengths.Get("distribution", s.Type)
	if err != nil {
		return nil, &ParamError{at + "type", err.Error()}
	}
	b := &builder{Spec: s, fieldPrefix: at, params: params{given: s.Params, limits: within, prefix: at + "params."}}
	b.component = func(i int) (*Length, error) {
		return s.Components[i].build(within, fmt.Sprintf("%scomponents[%d].", at, i))
	}
	l := &Length{distribution: f(b), min: b.integer("min", within.min), max: b.integer("max", within.max)}
	if b.err == nil && l.min > l.max {
		b.fail("min", "must be at most max (%.16g), is %.16g", l.max, l.min)
	}
	b.checkUnknown(s.Type)
	if b.checkLists(); b.err != nil {
		return nil, b.err
	}
	return l, nil
}

// Draw returns a draw, clamped to min..max and rounded half up to an integer. Clamping moves values
// outside onto the limits, which shifts the mean if much is outside; redrawing would instead change
// the shape inside.
func (l *Length) Draw(r *rand.Rand) int64 { return l.round(l.draw(r)) }

// Quantile returns the length at or below which a share p of the draws lies, p between 0 and 1. A
// draw has the distribution of the quantile of a uniform number, but may be computed differently.
func (l *Length) Quantile(p float64) int64 { return l.round(l.quantile(p)) }

func (l *Length) round(v float64) int64 { return int64(math.Round(l.clamp(v))) }

func (l *Length) clamp(v float64) float64 { return min(max(v, l.min), l.max) }

// Mean returns the mean of the draws, clamped and rounded: that of many quantiles at equal
// distances. It falls short by some percent for very heavy tails, as the mean of a sample does.
func (l *Length) Mean() float64 {
	const n = 1 << 14
	sum := 0.0
	for i := range n {
		sum += float64(l.Quantile((float64(i) + 0.5) / n))
	}
	return sum / n
}

// clampedCDF returns the share of the draws, clamped and not rounded, that are at most x.
func (l *Length) clampedCDF(x float64) float64 {
	switch {
	case x < l.min:
		return 0
	case x >= l.max:
		return 1
	}
	return l.cdf(x)
}

// Correlated returns l conditional on another quantity between its quantiles low and high, which is
// correlated with l by a Gaussian copula: the ranks of both are those of normal variables with
// correlation rho, 0 to 1. If the other quantity follows its own distribution, the draws follow l
// overall.
func (l *Length) Correlated(rho, low, high float64) *Length {
	conditional := *l
	rest := math.Sqrt(1 - float64(rho*rho))
	conditional.draw = func(r *rand.Rand) float64 {
		other := distuv.UnitNormal.Quantile(low + float64((high-low)*uniformOpen(r)))
		own := distuv.UnitNormal.Quantile(uniformOpen(r))
		return l.quantile(distuv.UnitNormal.CDF(float64(rho*other) + float64(rest*own)))
	}
	return &conditional
}

// uniformOpen draws a uniform number above 0 and below 1.
func uniformOpen(r *rand.Rand) float64 { return (float64(r.Uint64()>>12) + 0.5) / (1 << 52) }
