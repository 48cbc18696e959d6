package calibrate

import (
	"context"
	"math"
	"slices"
	"testing"

	"blis/pkg/stat"
)

// TestOneStepIsARefit: where one step of Gauss and Newton leads for a resample of
// blocks, a search of it anew leads too, but for what is not linear and where the
// search happens to end, which intervals draw beside: of 20 resamples the parameters
// scatter nearly as much, and together.
func TestOneStepIsARefit(t *testing.T) {
	if testing.Short() {
		t.Skip("20 fits by simulation; run without -short")
	}
	ctx, n := context.Background(), 20
	truth := Coefficients{Alpha: [4]float64{5000}, Beta: [4]float64{6200, 16, 22, 0.1565}}
	s, r := synthetic(t, 1, truth, 400)
	f, err := fitClient(ctx, []*run{r}, s.prior(loadOf([]*run{r})), nil)
	if err != nil {
		t.Fatal(err)
	}
	source := newBlocks(len(r.blocks), 0, "blocks/refits")
	var steps, refits [atAlpha3][]float64
	for range n {
		counts := source.counts()
		p := *f.problem
		p.parameters = slices.Clone(p.parameters)
		p.parameters[atBeta2].spread = 0
		h, g := p.normal(f.told, func(i int) float64 { return counts[i/features] })
		step := p.move(f.told.x, h, g, 0)
		p.worth = func(i int) float64 { return counts[i/features] * f.problem.worth(i) }
		end, err := p.search(ctx, f.told.x, 4)
		middle := make([]float64, atAlpha3)
		const planes = 4
		for range planes {
			if err == nil {
				end, _, err = p.surface(ctx, end)
			}
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range end.x {
				middle[k] += v / planes
			}
		}
		for k := range step {
			steps[k], refits[k] = append(steps[k], step[k]), append(refits[k], middle[k])
		}
	}
	for k := range steps {
		name := f.problem.parameters[k].name
		a, b := scatter(steps[k]), scatter(refits[k])
		r, _ := stat.Pearson(steps[k], refits[k])
		t.Logf("%s of %d resamples: one step scatters by %.4g, refits by %.4g; correlation %.2f", name, n, a, b, r)
		if r < 0.6 || a < 0.5*b || a > 1.5*b {
			t.Errorf("%s scatters by %.4g, of refits by %.4g; correlation %.2f", name, a, b, r)
		}
	}
}

// scatter is a standard deviation.
func scatter(x []float64) float64 {
	m, squares := stat.Mean(x), 0.0
	for _, v := range x {
		squares += (v - m) * (v - m)
	}
	return math.Sqrt(squares / float64(len(x)-1))
}
