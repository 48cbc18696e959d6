package leastsq

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// Identifiability is which coefficients the data identify.
type Identifiability struct {
	// Condition is the condition number of the design, its columns scaled to unit length;
	// nil if it is infinite.
	Condition *float64 `json:"condition_number,omitempty"`
	// VIF has the variance inflation factor of each coefficient.
	VIF []VIF `json:"variance_inflation"`
	// Not are the coefficients that are not identifiable. Each of Weak is a combination of
	// coefficients that may change together with hardly any effect.
	Not  []string `json:"not_identifiable,omitempty"`
	Weak []string `json:"weak_directions,omitempty"`
}

// VIF is a coefficient's variance inflation factor: how much larger the others make its
// variance than it would be alone. Factor is nil if it is infinite.
type VIF struct {
	Coefficient string   `json:"coefficient"`
	Factor      *float64 `json:"factor,omitempty"`
}

// MaxCondition is the condition number above which coefficients are not identifiable: at
// 30, a 3 % error of the data may be 100 % of a coefficient (Belsley, Kuh and Welsch,
// Regression Diagnostics, 1980, chapter 3). MaxInflation is the same for variance inflation:
// the others make an interval ten times as wide.
const (
	MaxCondition = 30
	MaxInflation = 100
)

// identify examines a normal matrix JᵀJ of data without priors.
func identify(names []string, h mat.Symmetric) Identifiability {
	n := len(names)
	scaled, size := mat.NewSymDense(n, nil), make([]float64, n)
	for i := range n {
		size[i] = math.Sqrt(h.At(i, i))
	}
	for i := range n {
		for k := i; k < n; k++ {
			scaled.SetSym(i, k, h.At(i, k)/max(size[i]*size[k], math.SmallestNonzeroFloat64))
		}
	}
	var id Identifiability
	var eigen mat.EigenSym
	if !eigen.Factorize(scaled, true) {
		return id
	}
	values := eigen.Values(nil) // ascending
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	id.findWeak(names, size, values, &vectors)
	tiny := 1e-14 * values[n-1]
	if values[0] > tiny {
		id.Condition = new(math.Sqrt(values[n-1] / values[0]))
	}
	for i := range n {
		factor := 0.0
		for j, v := range values {
			factor += vectors.At(i, j) * vectors.At(i, j) / max(v, tiny)
		}
		inflation := VIF{Coefficient: names[i]}
		if size[i] > 0 && factor < 1e12 {
			inflation.Factor = &factor
		}
		id.VIF = append(id.VIF, inflation)
	}
	return id
}

// findWeak finds the directions with hardly any effect: those beyond MaxCondition, and those
// that alone inflate the variance of a coefficient beyond MaxInflation.
func (id *Identifiability) findWeak(names []string, size, values []float64, vectors *mat.Dense) {
	n := len(names)
	not := make([]bool, n)
	for j, v := range values {
		weak := !(v > 0) || math.Sqrt(values[n-1]/v) > MaxCondition
		for i := range n {
			weak = weak || vectors.At(i, j)*vectors.At(i, j) > MaxInflation*v && size[i] > 0
		}
		var parts []string
		for i, name := range names {
			part := vectors.At(i, j)
			switch {
			case !weak || part*part < 0.05:
				continue
			case size[i] == 0:
				parts = append(parts, "any "+name)
			default:
				change := "higher"
				if part < 0 {
					change = "lower"
				}
				parts = append(parts, fmt.Sprintf("%s %.3g %s", name, math.Abs(part/size[i]), change))
			}
			not[i] = true
		}
		if weak {
			id.Weak = append(id.Weak, strings.Join(parts, ", "))
		}
	}
	for i, name := range names {
		if not[i] {
			id.Not = append(id.Not, name)
		}
	}
}

// Has reports whether a coefficient is not identifiable.
func (id *Identifiability) Has(name string) bool { return slices.Contains(id.Not, name) }
