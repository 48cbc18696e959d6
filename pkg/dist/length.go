package dist

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"blis/pkg/named"

	"gonum.org/v1/gonum/stat/distuv"
)

// Spec names a distribution of lengths and its parameters, as files do.
type Spec struct {
	Type   string             `yaml:"type" json:"type"`
	Params map[string]float64 `yaml:"params" json:"params,omitempty"`
}

// Lengths are the distributions of lengths. All take min and max as well.
var Lengths = named.Table[func(*params) variate]{
	{Name: "constant", Doc: "always value", Value: constant},
	{Name: "gaussian", Doc: "normal with mean and std_dev", Value: gaussian},
	{Name: "exponential", Doc: "exponential with mean", Value: exponential},
	{Name: "lognormal", Doc: "lognormal whose values (not their logarithms) have mean and std_dev", Value: lognormal},
}

func constant(p *params) variate {
	value := p.get("value", 1)
	return func(*rand.Rand) float64 { return value }
}

func gaussian(p *params) variate {
	mean, deviation := p.get("mean", 1), p.get("std_dev", 0)
	return func(r *rand.Rand) float64 {
		return distuv.Normal{Mu: mean, Sigma: deviation, Src: r}.Rand()
	}
}

func exponential(p *params) variate {
	rate := 1 / p.get("mean", 1)
	return func(r *rand.Rand) float64 {
		return distuv.Exponential{Rate: rate, Src: r}.Rand()
	}
}

// lognormal matches moments: of values with mean m and deviation s, the
// logarithms have variance ln(1 + (s/m)²) and mean ln m less half of that.
func lognormal(p *params) variate {
	mean, deviation := p.get("mean", 1), p.get("std_dev", 0)
	ratio := deviation / mean
	variance := math.Log1p(ratio * ratio)
	mu, sigma := math.Log(mean)-variance/2, math.Sqrt(variance)
	return func(r *rand.Rand) float64 {
		return distuv.LogNormal{Mu: mu, Sigma: sigma, Src: r}.Rand()
	}
}

// Length is a distribution of lengths in tokens.
type Length struct {
	draw     variate
	min, max float64
}

// Length checks s and returns what it describes. An error is a *ParamError.
func (s Spec) Length() (*Length, error) {
	family, err := Lengths.Get("distribution", s.Type)
	if err != nil {
		return nil, &ParamError{"type", err.Error()}
	}
	p := &params{given: s.Params}
	l := &Length{draw: family(p), min: p.whole("min", 1), max: p.whole("max", maxTokens)}
	if p.err == nil && l.min > l.max {
		p.fail("min", "must be at most max (%g), is %g", l.max, l.min)
	}
	if p.checkUnknown(s.Type); p.err != nil {
		return nil, p.err
	}
	return l, nil
}

// Draw returns a length: a draw of the distribution, clamped to min..max and
// rounded half up to a whole number of at least 1. Clamping moves what lies
// outside onto the bounds, so that the mean moves too where a bound cuts much;
// redrawing would change the shape within the bounds instead.
func (l *Length) Draw(r *rand.Rand) int64 {
	return int64(math.Round(min(max(l.draw(r), l.min), l.max)))
}

// maxTokens bounds lengths, as the wire does.
const maxTokens = 1<<31 - 1

// params takes parameters by name and keeps the first fault.
type params struct {
	given map[string]float64
	known []string
	err   error
}

// get takes the parameter called name, which must be given and lie between
// least and maxTokens.
func (p *params) get(name string, least float64) float64 {
	p.known = append(p.known, name)
	v, ok := p.given[name]
	if !ok {
		p.fail(name, "must be given")
	} else if !(v >= least && v <= maxTokens) {
		p.fail(name, "must be between %g and %d, is %g", least, maxTokens, v)
	}
	return v
}

// whole takes the parameter called name, a whole number from 1, or absent.
func (p *params) whole(name string, absent float64) float64 {
	if _, ok := p.given[name]; !ok {
		p.known = append(p.known, name)
		return absent
	}
	v := p.get(name, 1)
	if v != math.Trunc(v) {
		p.fail(name, "must be a whole number, is %g", v)
	}
	return v
}

// checkUnknown reports the first parameter, by name, that nobody took.
func (p *params) checkUnknown(family string) {
	var unknown []string
	for name := range p.given {
		if !slices.Contains(p.known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		name := slices.Min(unknown)
		p.fail(name, "%v", named.Unknown("parameter of "+family, name, p.known))
	}
}

func (p *params) fail(name, format string, args ...any) {
	if p.err == nil {
		p.err = &ParamError{"params." + name, fmt.Sprintf(format, args...)}
	}
}
