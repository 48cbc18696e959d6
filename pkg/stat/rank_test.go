package stat

import (
	"math"
	"testing"
)

// Ranks of x: 1, 2.5, 2.5, 4; of y: 1, 3, 2, 4. Deviations from 2.5: −1.5, 0, 0,
// 1.5 and −1.5, 0.5, −0.5, 1.5: the sum of products is 4.5, of squares 4.5 and 5.
// Of six pairs one is equal in x, the others are ordered alike: 5/√(5·6).
func TestRanksByHand(t *testing.T) {
	x, y := []float64{10, 20, 20, 30}, []float64{1, 8, 2, 9}
	near := func(what string, got float64, ok bool, want float64) {
		t.Helper()
		if !ok || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v (%v), want %v", what, got, ok, want)
		}
	}
	rho, ok := Spearman(x, y)
	near("Spearman", rho, ok, 4.5/math.Sqrt(4.5*5))
	o := Compare(x, y)
	if o != (Order{Pairs: 6, Concordant: 5, EqualX: 1}) {
		t.Errorf("pairs: %+v", o)
	}
	tau, ok := o.Kendall()
	near("Kendall", tau, ok, 5/math.Sqrt(30))
	tau, ok = Compare([]float64{1, 2, 3}, []float64{3, 2, 1}).Kendall()
	near("Kendall of what is the other way round", tau, ok, -1)
	// Means 2 and 4: (−1·−2 + 0·1 + 1·1) / √(2·6).
	r, ok := Pearson([]float64{1, 2, 3}, []float64{2, 5, 5})
	near("Pearson", r, ok, 3/math.Sqrt(12))
	if _, ok := Pearson([]float64{1, 1}, []float64{1, 2}); ok {
		t.Error("a correlation with what does not vary")
	}
	if _, ok := Compare([]float64{1, 1}, []float64{1, 2}).Kendall(); ok {
		t.Error("an order of what is equal")
	}
	// At 3 all of a and a third of b are passed.
	if d := KolmogorovSmirnov([]float64{1, 3, 3}, []float64{2, 4, 5}); math.Abs(d-2.0/3) > 1e-12 {
		t.Errorf("distance %v", d)
	}
}
