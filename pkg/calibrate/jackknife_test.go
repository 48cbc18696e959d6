package calibrate

import (
	"context"
	"math"
	"slices"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/stat"

	"gonum.org/v1/gonum/mat"
)

// TestOnePlaneIsARefit: where the plane at the solution leads without some stretches of
// time, a search anew leads too, but for what is not linear and where the search
// happens to end. Of 20 times two thirds of the stretches of four recordings the parameters move as
// far, in units of their standard errors, and together.
func TestOnePlaneIsARefit(t *testing.T) {
	if testing.Short() {
		t.Skip("20 fits by simulation; run without -short")
	}
	ctx := context.Background()
	truth := Coefficients{Alpha: [4]float64{5000}, Beta: [4]float64{6200, 16, 22, 0.1565}}
	var steps, refits, both [atAlpha3]float64 // sums of squares and of products
	for seed := range uint64(4) {
		s, r := synthetic(t, seed, truth, 400)
		f, err := fitClient(ctx, []*run{r}, s.prior(loadOf([]*run{r})), nil)
		if err != nil {
			t.Fatal(err)
		}
		moves := f.moves(f.told)
		stretch, n := f.stretches()
		some := dist.NewStream(seed, "some")
		for range 5 {
			in := some.Perm(n)[:2*n/3]
			worth := func(i int) float64 {
				if slices.Contains(in, stretch[i/features]) {
					return 1
				}
				return 0
			}
			p := *f.problem
			p.parameters = slices.Clone(p.parameters)
			p.parameters[atBeta2].spread = 0
			all := f.problem.worth
			p.worth = func(i int) float64 { return worth(i) * all(i) }
			step := p.lowest(&flat{f.told.x, f.told.r, f.told.jacobian}, f.told.spread).x
			anew := &clientFit{runs: f.runs, problem: &p}
			refit, err := anew.settle(ctx, &solution{x: f.told.x}, 4)
			if err != nil {
				t.Fatal(err)
			}
			for k := range steps {
				error := deviationOf(moves, k)
				a, b := (step[k]-f.told.x[k])/error, (refit.x[k]-f.told.x[k])/error
				steps[k], refits[k], both[k] = steps[k]+a*a, refits[k]+b*b, both[k]+a*b
			}
		}
	}
	for k, name := range []string{"alpha[0]", "level", "beta[1]", "beta[2]"} {
		r, ratio := both[k]/math.Sqrt(steps[k]*refits[k]), math.Sqrt(steps[k]/refits[k])
		t.Logf("%s: the plane moves %.2f times as far as a refit; correlation %.2f", name, ratio, r)
		if r < 0.6 || ratio < 0.5 || ratio > 1.6 {
			t.Errorf("%s moves %.2f times as far on the plane as in a refit, with a correlation of %.2f", name, ratio, r)
		}
	}
}

// TestMovesAreAMeansErrors: of a parameter that is the mean of what blocks say, the moves
// without stretches have the standard error of a mean of stretches.
func TestMovesAreAMeansErrors(t *testing.T) {
	says := []float64{3, 5, 4, 8, 6, 9, 1, 2, 7, 7}
	f := &clientFit{runs: []*run{{blocks: make([][]int, len(says))}}}
	rows := features * len(says)
	s := &solution{x: make([]float64, atAlpha3), spread: slices.Repeat([]float64{100}, features), r: make([]float64, rows), jacobian: mat.NewDense(rows, atAlpha3, nil)}
	for i := range s.r {
		if s.r[i] = math.NaN(); i%features == 0 {
			s.r[i] = -says[i/features]
			s.jacobian.Set(i, atAlpha0, 1)
		}
	}
	f.problem = &problem{kinds: features, kind: func(i int) int { return i % features }, worth: func(int) float64 { return 1 }, parameters: make([]parameter, atAlpha3)}
	stretches := []float64{4, 6, 7.5, 1.5, 7} // two blocks each
	mean := stat.Mean(stretches)
	squares := 0.0
	for _, v := range stretches {
		squares += (v - mean) * (v - mean)
	}
	want := math.Sqrt(squares / 4 / 5)
	if got := deviationOf(f.moves(s), atAlpha0); math.Abs(got-want) > 1e-9 {
		t.Errorf("standard error %g, want %g", got, want)
	}
}
