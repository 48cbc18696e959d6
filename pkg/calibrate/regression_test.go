package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestRegressionIsRobust: of steps of known coefficients, each hundredth of which is ten
// times too long, the coefficients come out, and lie in their intervals, but for half a
// percent that errors which only lengthen bring.
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
	x := r.fit()
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

// TestInflationIsNamed: two columns that differ by 3 % of their length have a condition
// number of about 28 in all and a variance inflation of some 200; so has no other.
func TestInflationIsNamed(t *testing.T) {
	h := mat.NewSymDense(3, []float64{1, 0.9975, 0, 0.9975, 1, 0, 0, 0, 1})
	id := identify([]string{"a", "b", "c"}, h)
	if id.Condition == nil || *id.Condition > MostCondition || !slices.Equal(id.Confounded, []string{"a", "b"}) || len(id.Weak) != 1 {
		t.Errorf("%+v, condition %v", id, *id.Condition)
	}
	h = mat.NewSymDense(3, []float64{1, 0.99, 0, 0.99, 1, 0, 0, 0, 1}) // inflation 50
	if id := identify([]string{"a", "b", "c"}, h); len(id.Confounded) != 0 {
		t.Errorf("%+v", id)
	}
}

// TestAlikePromptsAreToldOf: of prompts of 500 to 540 tokens, not of 500 to 1000.
func TestAlikePromptsAreToldOf(t *testing.T) {
	for most, want := range map[int64]bool{540: true, 1000: false} {
		r := shortRun(40)
		for i := range r.requests {
			r.requests[i].InputTokens = 500 + int64(i%2)*(most-500)
		}
		s := &setup{runs: []*run{r}}
		if got := s.alike(); (got != "") != want {
			t.Errorf("500 to %d: %q", most, got)
		}
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

// TestSlopeByHand: a roofline's 10 us a sequence with no context are known to 2. Where
// steps of 14,142 us lie off a line by 1 % and batches scatter by 50, the data's slope is
// in doubt by 2, too: they are worth as much as the roofline. A contradiction of 4 is
// what both leave open (2.8 on the average); one of 20 is 7 of that, and leaves to the roofline
// what a variance of 400 - 4 beside 4 does: a hundredth. Data that scatter by 1e6 tell
// nothing.
func TestSlopeByHand(t *testing.T) {
	p := &prior{}
	p.Beta[2] = 10
	l := load{scatter: 50}
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-3*want }
	d := slopeData{told: 12, uneven: 0.01, step: 10000 * math.Sqrt2}
	if s := p.slope(d, l); !near(s.beta2, 11) || !near(s.trust, 0.5) || !near(s.uneven, math.Sqrt2) || !near(s.conflict, 1/math.Sqrt2) {
		t.Errorf("data and roofline that agree: %+v", s)
	}
	d.told = 30
	if s := p.slope(d, l); !near(s.beta2, 29.8) || !near(s.trust, 0.99) || !near(s.conflict, 20/math.Sqrt(8)) {
		t.Errorf("data that contradict: %+v", s)
	}
	d.scatter = 1e6
	if s := p.slope(d, l); !near(s.beta2, 10) || s.trust > 1e-9 {
		t.Errorf("data that tell nothing: %+v", s)
	}
}
