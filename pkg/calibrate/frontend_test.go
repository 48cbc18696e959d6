package calibrate

import (
	"context"
	"math"
	"testing"
)

// TestFrontendIsFoundWhereItIs fits recordings of servers that hand out tokens in turn,
// and of one that does not: alpha[3] must be what it was made with, but for three standard
// errors, or not be there.
func TestFrontendIsFoundWhereItIs(t *testing.T) {
	for _, us := range []float64{0, 80} {
		truth := Coefficients{Alpha: [4]float64{5000, 0, 0, us}, Beta: [4]float64{6200, 16, 22, 0.1565}}
		s, r := synthetic(t, 7, truth, 1000)
		f, err := fitClient(context.Background(), []*run{r}, s.prior(loadOf([]*run{r})), nil)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := f.intervals()
		if us == 0 && len(f.problem.parameters) > atAlpha3 {
			t.Errorf("made without alpha[3], fitted with %.3g us", f.Alpha[3])
		}
		if i := data[alpha3]; us > 0 && (math.Abs(f.Alpha[3]-us) > i.High-i.Low || i.High-i.Low > us || math.Abs(f.Alpha[0]-5000) > 1000) {
			t.Errorf("made with alpha[3] of %g us and alpha[0] of 5000: fitted %.4g in %.4g, and %.5g", us, f.Alpha[3], i, f.Alpha[0])
		}
	}
}

// TestForetellingIsOnFoldsThatWereNotSeen has residuals that one parameter makes 0 all
// over, and ones that ask for another value of it in each fold: it foretells the former.
func TestForetellingIsOnFoldsThatWereNotSeen(t *testing.T) {
	const n = 2 * folds
	for _, c := range []struct {
		name   string
		wanted func(i int) float64
		pays   bool
	}{
		{"alike", func(int) float64 { return 2 }, true},
		{"up and down", func(i int) float64 { return 8 * float64(i%2*2-1) }, false},
	} {
		p := &problem{
			kinds: 1, kind: func(int) int { return 0 }, worth: func(int) float64 { return 1 },
			parameters: []parameter{{least: -10, most: 10, step: 1}},
			residuals: func(_ context.Context, x []float64) ([]float64, error) {
				r := make([]float64, n)
				for i := range r {
					r[i] = x[0] - c.wanted(i/2)
				}
				return r, nil
			},
		}
		s := &solution{x: []float64{0}, spread: []float64{1}}
		s.r, _ = p.residuals(context.Background(), s.x)
		var err error
		if s.jacobian, err = p.derive(context.Background(), s.x, s.r); err != nil {
			t.Fatal(err)
		}
		p.weigh(s)
		fold := make([]int, n)
		for i := range fold {
			fold[i] = i / 2
		}
		with, without := p.foretell(s, fold), p.misfit(s, s.r)
		if pays := with < without-1e-9; pays != c.pays {
			t.Errorf("%s: what was not seen is foretold with a misfit of %.4g, of %.4g without", c.name, with, without)
		}
		if c.pays && with > 1e-9 {
			t.Errorf("%s: misfit %g, want 0", c.name, with)
		}
	}
}
