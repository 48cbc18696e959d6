package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"blis/pkg/leastsq"
	"blis/pkg/recording"
)

// line4 is a regression on n steps, a block for each, of a line over beta[0..3] with noise, whose
// sequences have contexts that vary by a fraction.
func line4(n int, beta [4]float64, part float64) *leastsq.Regression {
	random := rand.New(rand.NewPCG(7, 8))
	r := &leastsq.Regression{Names: slices.Clone(names[beta0:])}
	for i := range n {
		d, p := 10+float64(random.IntN(100)), float64(random.IntN(4)*random.IntN(500))
		context := d * 7000 * (1 + part*random.NormFloat64())
		us := beta[0] + beta[1]*p + beta[2]*d + beta[3]*context
		r.Add(i, us*math.Exp(0.01*random.NormFloat64()), 1, p, d, context)
	}
	return r
}

// reportOf regresses on rows, with others held out and a prior.
func reportOf(all, held *leastsq.Regression, beta [4]float64) *report {
	r := &report{setup: &setup{options: &Options{}}}
	r.regress(all, held, coefficients{beta0: beta[0], beta1: beta[1], beta2: beta[2], beta3: beta[3]}, "held")
	return r
}

// TestFittedBeta3StaysWithPrior: where contexts are nearly constant, so that beta[2] and beta[3]
// are not identifiable, and the data reject physics' beta[3], four times theirs, the prior is
// added to the regression with the fitted beta[3]: held-out errors are no larger than those of
// a free fit.
func TestFittedBeta3StaysWithPrior(t *testing.T) {
	beta := [4]float64{7000, 17, 10, 0.009}
	all := line4(340, beta, 0.003)
	for _, few := range []int{16, 100} {
		held := line4(440, beta, 0.003).Where(func(block int) bool { return block >= 340 && block < 340+few })
		r := reportOf(all, held, [4]float64{6000, 20, 57, 0.039})
		if !r.fit.id.Has(names[beta2]) || !r.fit.id.Has(names[beta3]) {
			t.Fatalf("%d held out: %+v", few, r.fit.id)
		}
		free := leastsq.Scale(held.Errors(all.Fit()))
		if is := leastsq.Scale(held.Errors(r.fit.value[beta0:])); is > 1.1*free {
			t.Errorf("%d held out: beta %v, errors of %.3g, of a free fit %.3g", few, r.fit.value[beta0:], is, free)
		}
		if math.Abs(r.fit.value[beta0]/7000-1) > 0.1 || r.fit.value[beta3] > 0.02 {
			t.Errorf("%d held out: beta %v", few, r.fit.value[beta0:])
		}
	}
}

// TestBeta3IsPhysicsOrFitted: however few rows are held out, data that contradict physics'
// beta[3] are given their own; data that agree keep it.
func TestBeta3IsPhysicsOrFitted(t *testing.T) {
	for _, held := range []int{0, 5, 40} {
		for _, true3 := range []float64{0.002, 0.039} {
			all := line4(200, [4]float64{7000, 17, 30, true3}, 0.5)
			rest := line4(200, [4]float64{7000, 17, 30, true3}, 0.5).Where(func(block int) bool { return block < held })
			r := reportOf(all, rest, [4]float64{6000, 20, 57, 0.039})
			if math.Abs(r.fit.value[beta3]/true3-1) > 0.1 || math.Abs(r.fit.value[beta0]/7000-1) > 0.02 {
				t.Errorf("%d held out: beta %v, want %g", held, r.fit.value[beta0:], true3)
			}
			if physics := strings.HasPrefix(r.fit.source[beta3], "physics"); physics != (true3 == 0.039) {
				t.Errorf("%d held out, beta[3] %g: %s", held, true3, r.fit.source[beta3])
			}
		}
	}
}

// TestContradictedPriorHasLittleWeight: of coefficients that are not identifiable, with a prior
// that the data exclude, held-out errors are those of the data alone.
func TestContradictedPriorHasLittleWeight(t *testing.T) {
	all, held := &leastsq.Regression{Names: names[beta0:]}, &leastsq.Regression{Names: names[beta0:]}
	for i := range 120 {
		into := all
		if i%2 == 1 {
			into = held
		}
		d := float64(1 + i%3)
		into.Add(i, 3000+10*d+float64(i%5), 1, 1+0.01*float64(i%7), d, 0)
	}
	r := reportOf(all, held, [4]float64{9000, 9000, 10, 0})
	if !r.fit.id.Has(names[beta0]) || !r.fit.id.Has(names[beta1]) {
		t.Fatalf("%+v", r.fit.id)
	}
	if off := leastsq.Scale(held.Errors(r.fit.value[beta0:])); off > 0.002 {
		t.Errorf("errors of %g, beta %v", off, r.fit.value[beta0:])
	}
}

// alternatingSteps are steps of prefill and of decode in turn, of a line: 10 ms, 20 µs per prompt token
// and 50 µs per sequence.
func alternatingSteps() (steps []recording.Step) {
	for i := range int64(20) {
		steps = append(steps, recording.Step{Prefill: 100 * (i + 1), US: 10000 + 20*100*float64(i+1)},
			recording.Step{Decode: i + 1, US: 10000 + 50*float64(i+1)})
	}
	return steps
}

// TestHalvesHaveAllKinds: half of each kind is fitted, with the smallest and the largest, whatever
// the order of the file.
func TestHalvesHaveAllKinds(t *testing.T) {
	steps := alternatingSteps()
	fit, held := halves(steps)
	count := func(list []recording.Step) (n [3]int) {
		for _, x := range list {
			n[kindOf(x)]++
		}
		return n
	}
	if a, b := count(fit), count(held); a != [3]int{11, 11, 0} || b != [3]int{9, 9, 0} {
		t.Errorf("fitted %v, held out %v", a, b)
	}
	if !slices.ContainsFunc(fit, func(x recording.Step) bool { return x.Prefill == 2000 }) {
		t.Error("the largest prefill is held out")
	}
	slices.Reverse(steps)
	if again, _ := halves(steps); !slices.Equal(fit, again) {
		t.Error("another order gives another half")
	}
}
