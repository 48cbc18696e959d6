package dist

import (
	"maps"
	"math"
	"slices"
	"sort"

	"blis/pkg/registry"
)

// limits are the range of draws, and of the parameters that are values.
type limits struct{ min, max float64 }

var (
	tokens = limits{1, 1<<31 - 1} // the range of lengths in files
	micros = limits{0, maxMicros}
	counts = limits{0, 1<<31 - 1}
)

// params reads parameters by name and keeps the first error.
type params struct {
	given map[string]float64
	limits
	// prefix is the path prefix of parameter names.
	prefix     string
	registered []string
	err        error
	// missing: err is about a missing parameter, which may be misspelled.
	missing bool
}

// get returns the parameter called name, which must be given and lie between least and the maximum
// draw.
func (p *params) get(name string, lowest float64) float64 { return p.between(name, lowest, p.max) }

// between returns the parameter called name, which must be given and lie between least and most.
func (p *params) between(name string, lowest, highest float64) float64 {
	v := p.given[name]
	if !p.has(name) {
		p.missing = p.missing || p.err == nil
		p.fail(name, "must be given")
	} else if !(v >= lowest && v <= highest) {
		p.fail(name, "must be between %.16g and %.16g, is %g", lowest, highest, v)
	}
	return v
}

// has reports whether the parameter called name is given.
func (p *params) has(name string) bool {
	if !slices.Contains(p.registered, name) {
		p.registered = append(p.registered, name)
	}
	_, ok := p.given[name]
	return ok
}

// integer returns the parameter called name, an integer in the range of draws, or the default.
func (p *params) integer(name string, missing float64) float64 {
	if !p.has(name) {
		return missing
	}
	v := p.get(name, p.min)
	if v != math.Trunc(v) {
		p.fail(name, "must be an integer, is %g", v)
	}
	return v
}

// checkUnknown reports the first unknown parameter, by name. It replaces an error about a missing
// one.
func (p *params) checkUnknown(family string) {
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		if slices.Contains(p.registered, name) {
			continue
		}
		if p.missing {
			p.err = nil
		}
		p.fail(name, "%v", registry.Unknown("parameter of "+family, name, p.registered))
		return
	}
}

func (p *params) fail(name, format string, args ...any) {
	if p.err == nil {
		p.err = invalid(p.prefix+name, format, args...)
	}
}

const (
	empiricalName = "empirical"
	mixtureName   = "mixture"
)

// builder reads the Spec of one distribution.
type builder struct {
	Spec
	// fieldPrefix is the path prefix of the fields of Spec.
	fieldPrefix string
	params
	// component builds one of the components.
	component func(i int) (*Length, error)
}

// failAt records an error of a field that is not a parameter.
func (b *builder) failAt(field, format string, args ...any) {
	if b.err == nil {
		b.err = invalid(b.fieldPrefix+field, format, args...)
	}
}

// checkLists records a list that the family does not use.
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
			b.failAt(list.name, "is not a field of %s, only of %s", b.Type, list.family)
		}
	}
}

// value checks a value to be drawn.
func (b *builder) value(field string, v float64) float64 {
	if !(v >= b.min && v <= b.max) {
		b.failAt(field, "must be between %.16g and %.16g, is %g", b.min, b.max, v)
	}
	return v
}

// maxWeight keeps sums of weights finite.
const maxWeight = 1e12

// weight adds a weight, which must be above 0.
func (b *builder) weight(to *Weights, field string, weight float64) {
	if !(weight > 0 && weight <= maxWeight) {
		b.failAt(field, "must be above 0 and at most %g, is %g", float64(maxWeight), weight)
	}
	to.Add(weight)
}

// Weights are running sums of the weights of a choice.
type Weights []float64

// Add appends the weight of another entry.
func (s *Weights) Add(weight float64) {
	if n := len(*s); n > 0 {
		weight += (*s)[n-1]
	}
	*s = append(*s, weight)
}

// Index returns the entry at a share p, 0 to 1, of the total weight. The last entry covers p rounded
// up to 1.
func (s Weights) Index(p float64) int {
	p *= s[len(s)-1]
	return min(sort.Search(len(s), func(i int) bool { return s[i] > p }), len(s)-1)
}

// fraction returns the share of entry i in the total weight.
func (s Weights) fraction(i int) float64 {
	own := s[i]
	if i > 0 {
		own -= s[i-1]
	}
	return own / s[len(s)-1]
}
