package leastsq

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestRegressionIsRobust: with each hundredth of the rows ten times too large, coefficients are
// recovered within 2 %, and intervals include the true ones, but for a bias of half a percent
// from errors of one sign.
func TestRegressionIsRobust(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	want := []float64{6000, 15, 20}
	r := Regression{Names: []string{"beta[0]", "beta[1]", "beta[2]"}}
	for i := range 2000 {
		p, d := float64(random.IntN(3)*random.IntN(1000)), float64(random.IntN(128))
		us := (want[0] + want[1]*p + want[2]*d) * math.Exp(0.02*random.NormFloat64())
		if i%100 == 0 {
			us *= 10
		}
		r.Add(i/50, us, 1, p, d)
	}
	x := r.Fit()
	for k, i := range r.Intervals(x, 0.9) {
		if math.Abs(x[k]/want[k]-1) > 0.02 || i.Lo > 1.005*want[k] || i.Hi < 0.995*want[k] || !(i.Lo < i.Hi) {
			t.Errorf("%s is %.4g between %.4g and %.4g, made with %g", r.Names[k], x[k], i.Lo, i.Hi, want[k])
		}
	}
	if id := r.Identify(); len(id.Not) > 0 || *id.Condition > 10 {
		t.Errorf("%+v", id)
	}
}

// weakPair is a combination of two coefficients in words, of which one rises where the other falls.
var weakPair = regexp.MustCompile(
	`^beta\[0\] [0-9.e+]+ (higher, beta\[1\] [0-9.e-]+ lower|lower, beta\[1\] [0-9.e-]+ higher)$`)

// TestConstantColumnIsNotIdentifiable: two constant columns identify beta[0] + 500·beta[1] and
// neither of both; the third coefficient is identifiable.
func TestConstantColumnIsNotIdentifiable(t *testing.T) {
	r := Regression{Names: []string{"beta[0]", "beta[1]", "beta[2]"}}
	for i := range 100 {
		r.Add(i, 14000+float64(i%7), 1, 500, 0)
		r.Add(i, 14000+20*float64(i), 1, 500, float64(i))
	}
	id := r.Identify()
	if !slices.Equal(id.Not, []string{"beta[0]", "beta[1]"}) || id.Condition != nil {
		t.Errorf("not identifiable %v, condition %v", id.Not, id.Condition)
	}
	if len(id.Weak) != 1 || !weakPair.MatchString(id.Weak[0]) {
		t.Errorf("weak %v", id.Weak)
	}
	if f := id.VIF; f[0].Factor != nil || f[2].Factor == nil || *f[2].Factor > 5 {
		t.Errorf("variance inflation %+v", f)
	}
}

// TestVarianceInflation: two columns that differ by 3 % of their length have a condition number
// of about 28, but a variance inflation of about 200, and are not identifiable.
func TestVarianceInflation(t *testing.T) {
	h := mat.NewSymDense(3, []float64{1, 0.9975, 0, 0.9975, 1, 0, 0, 0, 1})
	id := identify([]string{"a", "b", "c"}, h)
	if id.Condition == nil || *id.Condition > MaxCondition || len(id.Weak) != 1 ||
		!slices.Equal(id.Not, []string{"a", "b"}) {
		t.Errorf("%+v, condition %v", id, *id.Condition)
	}
	h = mat.NewSymDense(3, []float64{1, 0.99, 0, 0.99, 1, 0, 0, 0, 1}) // inflation 50
	if id := identify([]string{"a", "b", "c"}, h); len(id.Not) != 0 {
		t.Errorf("%+v", id)
	}
}

// TestPriorIsInAllJackknifeSamples: the row of a prior is in no group, blocks without rows are
// not counted, and of two equal columns, the first of which has a prior, neither moves by more
// than the data scatter.
func TestPriorIsInAllJackknifeSamples(t *testing.T) {
	r := &Regression{Names: []string{"a", "b"}}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 120 {
		r.Add(3*(i/4), 2000*math.Exp(0.01*random.NormFloat64()), 1, 1)
	}
	with := r.WithPrior([]string{"a"}, []float64{1500, 0})
	group, n := with.groups()
	if n != 10 || group[0] != 0 || group[119] != 9 || group[120] != -1 {
		t.Errorf("%d groups of rows: %v", n, group)
	}
	x := with.Fit()
	for k, i := range with.Intervals(x, 0.9) {
		want := []float64{1500, 500}[k]
		if math.Abs(x[k]-want) > 10 || i.Lo < want-20 || i.Hi > want+20 || i.Lo >= i.Hi {
			t.Errorf("%s %.5g, %.5g to %.5g; want %g", r.Names[k], x[k], i.Lo, i.Hi, want)
		}
	}
	dense := *with
	dense.rows = slices.Clone(with.rows)
	for i := range dense.rows {
		if row := &dense.rows[i]; row.block != priorBlock {
			row.block /= 3
		}
	}
	if a, b := with.Intervals(x, 0.9), dense.Intervals(x, 0.9); !slices.Equal(a, b) {
		t.Errorf("with gaps between block numbers: %v, without %v", a, b)
	}
}
