package dist

import (
	"fmt"
	"sort"
)

const (
	empiricalName = "empirical"
	mixtureName   = "mixture"
)

// builder reads what one Spec says to a family.
type builder struct {
	Spec
	// prefixed is the path before the fields of Spec.
	prefixed string
	params
	// component makes one of the components.
	component func(i int) (*Length, error)
}

// failAt notes a fault of a field that is no parameter.
func (b *builder) failAt(field, format string, args ...any) {
	if b.err == nil {
		b.err = &ParamError{b.prefixed + field, fmt.Sprintf(format, args...)}
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

// value checks one that can be drawn.
func (b *builder) value(field string, v float64) float64 {
	if !(v >= b.min && v <= b.max) {
		b.failAt(field, "must be between %.16g and %.16g, is %g", b.min, b.max, v)
	}
	return v
}

// maxWeight keeps sums of weights finite.
const maxWeight = 1e12

// cumulativeWeights are running sums of weights.
type cumulativeWeights []float64

// add appends a weight, which must be above 0.
func (s *cumulativeWeights) add(b *builder, field string, weight float64) {
	if !(weight > 0 && weight <= maxWeight) {
		b.failAt(field, "must be above 0 and at most %g, is %g", float64(maxWeight), weight)
	}
	if n := len(*s); n > 0 {
		weight += (*s)[n-1]
	}
	*s = append(*s, weight)
}

// index returns the place that a share p of all weight leads to. Rounding may take
// it up to the last sum itself.
func (s cumulativeWeights) index(p float64) int {
	p *= s[len(s)-1]
	return min(sort.Search(len(s), func(i int) bool { return s[i] > p }), len(s)-1)
}

// fraction is the part of the weight at place i.
func (s cumulativeWeights) fraction(i int) float64 {
	own := s[i]
	if i > 0 {
		own -= s[i-1]
	}
	return own / s[len(s)-1]
}
