package leastsq

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestCrossValidationPredictsUnseenFolds: residuals that one value of a parameter makes 0 are
// predicted, ones that need another value in each fold are not.
func TestCrossValidationPredictsUnseenFolds(t *testing.T) {
	const folds = 5
	for _, c := range []struct {
		name    string
		wanted  func(i int) float64
		predict bool
	}{
		{"constant", func(int) float64 { return 2 }, true},
		{"alternating", func(i int) float64 { return 8 * float64(i%2*2-1) }, false},
	} {
		p := &Problem{
			Kinds: 1, Kind: make([]int, 2*folds), Pool: 1, Weight: slices.Repeat([]float64{1}, 2*folds),
			Parameters: []Parameter{{Min: -10, Max: 10, Step: 1}},
			Residuals: func(_ context.Context, x []float64) ([]float64, error) {
				r := make([]float64, 2*folds)
				for i := range r {
					r[i] = x[0] - c.wanted(i/2)
				}
				return r, nil
			},
		}
		s := &Solution{X: []float64{0}}
		s.r, _ = p.Residuals(t.Context(), s.X)
		p.Rescale(s, []float64{1})
		var err error
		if s.jacobian, err = p.derive(t.Context(), s.X, 0); err != nil {
			t.Fatal(err)
		}
		fold := make([]int, 2*folds)
		for i := range fold {
			fold[i] = i / 2
		}
		with, without := p.CrossValidate(s, fold, folds), p.huberLoss(s, s.r)
		if predicts := with < without-1e-9; predicts != c.predict {
			t.Errorf("%s: loss of unseen folds %.4g, %.4g without the parameter", c.name, with, without)
		}
		if c.predict && with > 1e-9 {
			t.Errorf("%s: loss %g, want 0", c.name, with)
		}
	}
}

// TestJackknifeOfAMean: of a parameter that is the mean of values, the jackknife has the
// standard error of a mean of groups.
func TestJackknifeOfAMean(t *testing.T) {
	values := []float64{3, 5, 4, 8, 6, 9, 1, 2, 7, 7}
	n := len(values)
	s := &Solution{X: make([]float64, 1), Scale: []float64{100}, r: make([]float64, 2*n),
		jacobian: mat.NewDense(2*n, 1, nil)}
	group := make([]int, 2*n)
	for i := range s.r {
		group[i] = i / 4 // two values
		if s.r[i] = math.NaN(); i%2 == 0 {
			s.r[i] = -values[i/2]
			s.jacobian.Set(i, 0, 1)
		}
	}
	p := &Problem{Kinds: 1, Kind: make([]int, 2*n), Pool: 1, Weight: slices.Repeat([]float64{1}, 2*n),
		Parameters: make([]Parameter, 1)}
	groups := []float64{4, 6, 7.5, 1.5, 7}
	squares := 0.0
	for _, v := range groups {
		squares += (v - 5.2) * (v - 5.2)
	}
	want := math.Sqrt(squares / 4 / 5)
	if got := StandardError(p.Jackknife(s, group, 5), 0); math.Abs(got-want) > 1e-9 {
		t.Errorf("standard error %g, want %g", got, want)
	}
}

// TestNoiseScaleIsPooled: a kind with too few increments has the scale of the same quantity in
// other kinds, and none is left out.
func TestNoiseScaleIsPooled(t *testing.T) {
	const pool = 6
	p, s := &Problem{Kinds: 2 * pool, Pool: pool}, &Solution{}
	for b, run := range []int{0, 0, 0, 0, 0, 1, 1} {
		for k := range pool {
			p.Kind, s.r = append(p.Kind, pool*run+k), append(s.r, 0.1*float64(b%2)*float64(k+1))
		}
	}
	for k, scale := range p.NoiseScale(s) {
		if want := 0.1 * float64(k%pool+1) / trimmedMean / math.Sqrt2; math.Abs(scale-want) > 1e-12 {
			t.Errorf("kind %d: scale %g, want %g", k, scale, want)
		}
	}
}

// TestTQuantile: 90 % of a normal distribution are within 1.645, and of Student's distribution
// with 5 degrees of freedom within 2.015.
func TestTQuantile(t *testing.T) {
	for degrees, want := range map[float64]float64{math.Inf(1): 1.645, 5: 2.015} {
		if got := TQuantile(degrees, 0.9); math.Abs(got-want) > 1e-3 {
			t.Errorf("%g degrees of freedom: %g, want %g", degrees, got, want)
		}
	}
}
