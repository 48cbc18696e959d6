package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestRegressionIsRobust: of steps of known coefficients, each hundredth of which is
// ten times too long, the coefficients come out, and lie in their intervals, but for half a percent that errors which only lengthen bring.
func TestRegressionIsRobust(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	want := []float64{6000, 15, 20}
	r := regression{names: []string{"beta[0]", "beta[1]", "beta[2]"}}
	for i := range 2000 {
		p, d := float64(random.IntN(3)*random.IntN(1000)), float64(random.IntN(128))
		us := (want[0] + want[1]*p + want[2]*d) * math.Exp(0.02*random.NormFloat64())
		if i%100 == 0 {
			us *= 10
		}
		r.add(i/50, us, 1, p, d)
	}
	x := r.fit(always)
	for k, i := range r.intervals(x, 1) {
		if math.Abs(x[k]/want[k]-1) > 0.02 || i.Low > 1.005*want[k] || i.High < 0.995*want[k] || !(i.Low < i.High) {
			t.Errorf("%s is %.4g between %.4g and %.4g, made with %g", r.names[k], x[k], i.Low, i.High, want[k])
		}
	}
	if id := identify(r.names, r.normal()); len(id.Confounded) > 0 || *id.Condition > 10 {
		t.Errorf("told apart: %+v", id)
	}
}

// TestConstantLengthsAreNamed: prompts of one length, each alone in its step, tell
// beta[0] + 500·beta[1] and neither of both; decode is told.
func TestConstantLengthsAreNamed(t *testing.T) {
	r := regression{names: []string{"beta[0]", "beta[1]", "beta[2]"}}
	for i := range 100 {
		r.add(i, 14000+float64(i%7), 1, 500, 0)
		r.add(i, 14000+20*float64(i), 1, 500, float64(i))
	}
	id := identify(r.names, r.normal())
	if !slices.Equal(id.Confounded, []string{"beta[0]", "beta[1]"}) || id.Condition != nil {
		t.Errorf("confounded %v, condition %v", id.Confounded, id.Condition)
	}
	if len(id.Weak) != 1 || !strings.Contains(id.Weak[0], "of beta[0] with") {
		t.Errorf("weak %v", id.Weak)
	}
	if f := id.VarianceInflation; f[0].Factor != nil || f[2].Factor == nil || *f[2].Factor > 5 {
		t.Errorf("variance inflation %+v", f)
	}
}

// TestProfileByHand: one request decodes from 0 to 4, another from 2 to 6.
func TestProfileByHand(t *testing.T) {
	p := profileOf([]span{{0, 4, 1}, {2, 6, 1}, {3, 3, 9}, {math.NaN(), 1, 1}})
	for _, c := range []struct{ from, to, want float64 }{{0, 4, 1.5}, {0, 6, 8.0 / 6}, {3, 4, 2}, {5, 7, 0.5}, {-2, 2, 0.5}} {
		if got := p.mean(c.from, c.to); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("mean from %g to %g is %g, want %g", c.from, c.to, got, c.want)
		}
	}
	if p.peak() != 2 || !math.IsNaN(p.mean(3, 3)) {
		t.Errorf("peak %g", p.peak())
	}
}

// TestSlopeBelief: over a wide range of batches the data say what a sequence takes,
// over a narrow one physics does.
func TestSlopeBelief(t *testing.T) {
	p := prior{Coefficients{Beta: [4]float64{6000, 20, 40, 0.1}}}
	if b, trust, _ := p.slope(20, 10000, 40, 600); trust < 0.97 || math.Abs(b-20) > 0.6 {
		t.Errorf("wide: %g, trust %g", b, trust)
	}
	if b, trust, spread := p.slope(20, 10000, 1, 600); trust > 0.1 || math.Abs(b-40) > 2 || spread < 15 || spread > 20 {
		t.Errorf("narrow: %g, trust %g, spread %g", b, trust, spread)
	}
}
