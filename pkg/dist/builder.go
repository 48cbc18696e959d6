package dist

import (
	"fmt"
	"sort"
)

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
		b.err = &ParamError{b.fieldPrefix + field, fmt.Sprintf(format, args...)}
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

// index returns the entry at a share p of the total weight. The last entry covers p rounded up to
// 1.
func (s cumulativeWeights) index(p float64) int {
	p *= s[len(s)-1]
	return min(sort.Search(len(s), func(i int) bool { return s[i] > p }), len(s)-1)
}

// fraction returns the share of entry i in the total weight.
func (s cumulativeWeights) fraction(i int) float64 {
	own := s[i]
	if i > 0 {
		own -= s[i-1]
	}
	return own / s[len(s)-1]
}
