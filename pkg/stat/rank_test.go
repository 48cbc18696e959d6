package stat

import (
	"math"
	"slices"
	"testing"
)

// Ranks of x: 1, 2.5, 2.5, 4; of y: 1, 3, 2, 4. Deviations from 2.5: −1.5, 0, 0,
// 1.5 and −1.5, 0.5, −0.5, 1.5: the sum of products is 4.5, of squares 4.5 and 5.
// One of six pairs is equal in x, the others are concordant: 5/√(5·6).
func TestRanksByHand(t *testing.T) {
	x, y := []float64{10, 20, 20, 30}, []float64{1, 8, 2, 9}
	near := func(what string, got float64, ok bool, want float64) {
		t.Helper()
		if !ok || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v (%v), want %v", what, got, ok, want)
		}
	}
	if got := ranks([]float64{30, 10, 20, 10}); !slices.Equal(got, []float64{4, 1.5, 3, 1.5}) {
		t.Errorf("ranks %v", got)
	}
	rho, ok := Spearman(x, y)
	near("Spearman", rho, ok, 4.5/math.Sqrt(4.5*5))
	o := ComparePairs(x, y)
	if o != (PairOrder{Pairs: 6, Concordant: 5, differX: 5}) {
		t.Errorf("pairs: %+v", o)
	}
	tau, ok := o.Kendall()
	near("Kendall", tau, ok, 5/math.Sqrt(30))
	tau, ok = ComparePairs([]float64{1, 2, 3}, []float64{3, 2, 1}).Kendall()
	near("Kendall of reversed order", tau, ok, -1)
	// Means 2 and 4: (−1·−2 + 0·1 + 1·1) / √(2·6).
	r, ok := Pearson([]float64{1, 2, 3}, []float64{2, 5, 5})
	near("Pearson", r, ok, 3/math.Sqrt(12))
	if _, ok := Pearson([]float64{1, 1}, []float64{1, 2}); ok {
		t.Error("there is a correlation with a constant")
	}
	if _, ok := ComparePairs([]float64{1, 1}, []float64{1, 2}).Kendall(); ok {
		t.Error("there is a Kendall tau with a constant")
	}
	// At 3 the distribution functions are 1 (a) and 1/3 (b).
	if d := KolmogorovSmirnov([]float64{1, 3, 3}, []float64{2, 4, 5}); math.Abs(d-2.0/3) > 1e-12 {
		t.Errorf("distance %v", d)
	}
}
