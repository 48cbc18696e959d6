package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// Identifiability says what the data can tell apart.
type Identifiability struct {
	// Condition is that of the design, its columns scaled to one length: above
	// MostCondition, some coefficients stand for each other. It is absent where it is
	// infinite.
	Condition *float64 `json:"condition_number,omitempty"`
	// VarianceInflation has for each coefficient by how much the others make its
	// variance larger than it would be alone.
	VarianceInflation []Inflation `json:"variance_inflation"`
	// Confounded are coefficients that the data cannot tell apart; each of Weak is
	// one way in which they may change together and hardly any time changes.
	Confounded []string `json:"confounded,omitempty"`
	Weak       []string `json:"weak,omitempty"`
}

// Inflation is a coefficient's variance inflation factor.
type Inflation struct {
	Coefficient string   `json:"coefficient"`
	Factor      *float64 `json:"factor,omitempty"` // absent where it is infinite
}

// MostCondition is the condition number from which on coefficients count as not
// told apart: at 30, a 3 % error of the data may be 100 % of a coefficient (Belsley,
// Kuh and Welsch, Regression Diagnostics, 1980, chapter 3).
const MostCondition = 30

// MostInflation is the variance inflation from which on a coefficient counts as not
// told apart, too: the others make its interval ten times as wide.
const MostInflation = 100

// identify looks at the normal matrix JᵀJ of the data alone, without priors. Units
// are those of the coefficients.
func identify(names []string, h mat.Symmetric) Identifiability {
	n := len(names)
	id := Identifiability{}
	scaled, size := toOneLength(h)
	var eigen mat.EigenSym
	if !eigen.Factorize(scaled, true) {
		return id
	}
	values := eigen.Values(nil) // rising
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	id.confound(names, size, values, &vectors)
	most := values[n-1]
	if values[0] > 1e-14*most {
		condition := math.Sqrt(most / values[0])
		id.Condition = &condition
	}
	for i := range n {
		factor := 0.0
		for j, v := range values {
			factor += vectors.At(i, j) * vectors.At(i, j) / max(v, 1e-14*most)
		}
		inflation := Inflation{Coefficient: names[i]}
		if size[i] > 0 && factor < 1e12 {
			inflation.Factor = &factor
		}
		id.VarianceInflation = append(id.VarianceInflation, inflation)
	}
	return id
}

// toOneLength scales the columns of the design that a normal matrix is of to length 1,
// and returns their lengths.
func toOneLength(h mat.Symmetric) (*mat.SymDense, []float64) {
	n := h.SymmetricDim()
	scaled, size := mat.NewSymDense(n, nil), make([]float64, n)
	for i := range n {
		size[i] = math.Sqrt(h.At(i, i))
	}
	for i := range n {
		for k := i; k < n; k++ {
			if size[i] > 0 && size[k] > 0 {
				scaled.SetSym(i, k, h.At(i, k)/size[i]/size[k])
			}
		}
	}
	return scaled, size
}

// confound finds the directions along which hardly any time changes, from the eigenvalues
// (rising) and eigenvectors of the normal matrix, its columns scaled from their sizes.
func (id *Identifiability) confound(names []string, size, values []float64, vectors *mat.Dense) {
	n := len(names)
	confounded := make([]bool, n)
	for j, v := range values {
		// A direction that makes one coefficient's variance so large is as bad.
		inflates := func(i int) bool {
			part := vectors.At(i, j)
			return part*part > MostInflation*v && size[i] > 0
		}
		if v > 0 && math.Sqrt(values[n-1]/v) <= MostCondition && !slices.ContainsFunc(numbered(n), inflates) {
			continue
		}
		var parts []string
		for i := range n {
			part := vectors.At(i, j)
			if part*part < 0.05 {
				continue
			}
			confounded[i] = true
			if size[i] == 0 {
				parts = append(parts, "any "+names[i])
			} else {
				parts = append(parts, fmt.Sprintf("%+.3g of %s", part/size[i], names[i]))
			}
		}
		id.Weak = append(id.Weak, strings.Join(parts, " with "))
	}
	for i, c := range confounded {
		if c {
			id.Confounded = append(id.Confounded, names[i])
		}
	}
}

// numbered are the numbers below n.
func numbered(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// toldWell is how wide, as a part of itself, an interval of a coefficient is that others
// may well stand for in part: so many data tell it none the less.
const toldWell = 0.25

// keep drops those confounded coefficients for which it says false.
func (id *Identifiability) keep(f func(name string) bool) {
	id.Confounded = slices.DeleteFunc(id.Confounded, func(name string) bool { return !f(name) })
}

// has reports whether a coefficient is among the confounded ones.
func (id *Identifiability) has(name string) bool { return slices.Contains(id.Confounded, name) }

// untold are the confounded coefficients for people; one alone is not told from nothing.
func (id *Identifiability) untold() string {
	text := strings.Join(id.Confounded, ", ")
	if len(id.Confounded) > 1 {
		text += " apart"
	}
	return text
}
