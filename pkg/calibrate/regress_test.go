package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// line4 are rows of steps of n blocks, a step in each, of a line over beta[0..3] with
// noise, whose batches have sequences of contexts that differ by a part.
func line4(n int, beta [4]float64, part float64) *regression {
	random := rand.New(rand.NewPCG(7, 8))
	r := &regression{names: slices.Clone(names[beta0:])}
	for i := range n {
		d, p := 10+float64(random.IntN(100)), float64(random.IntN(4)*random.IntN(500))
		context := d * 7000 * (1 + part*random.NormFloat64())
		us := beta[0] + beta[1]*p + beta[2]*d + beta[3]*context
		r.add(i, us*math.Exp(0.01*random.NormFloat64()), 1, p, d, context)
	}
	return r
}

// reportOf regresses on rows, with others held back and physics' beta.
func reportOf(all, held *regression, beta [4]float64) *Report {
	r := &Report{setup: &setup{options: &Options{}}}
	r.regress(all, held, prior{Coefficients{Beta: beta}}, "held")
	return r
}

// TestBeta3OfDataStays: where batches have like contexts, so that beta[2] and beta[3] stand
// for each other, and the data refuse physics' beta[3], four times theirs, what the data
// leave open is held to a roofline together with the beta[3] that was fitted: what was held
// back is foretold no worse than by the free fit, as every part of a fit must be of
// the same regression.
func TestBeta3OfDataStays(t *testing.T) {
	beta := [4]float64{7000, 17, 10, 0.009}
	all := line4(340, beta, 0.003)
	for _, few := range []int{16, 100} {
		held := line4(440, beta, 0.003).where(func(block int) bool { return block >= 340 && block < 340+few })
		r := reportOf(all, held, [4]float64{6000, 20, 57, 0.039})
		if !r.fit.id.has(names[beta2]) || !r.fit.id.has(names[beta3]) {
			t.Fatalf("%d held back: told apart: %+v", few, r.fit.id)
		}
		free := deviation(held.errors(all.fit()))
		if is := deviation(held.errors(r.fit.Beta[:])); is > 1.1*free {
			t.Errorf("%d held back: beta %v, errors of %.3g, of a free fit %.3g", few, r.fit.Beta, is, free)
		}
		if math.Abs(r.fit.Beta[0]/7000-1) > 0.1 || r.fit.Beta[3] > 0.02 {
			t.Errorf("%d held back: beta %v", few, r.fit.Beta)
		}
	}
}

// TestDataRefusePhysics: however few rows are held back, data whose steps are shorter than
// physics' beta[3] alone makes them have one of their own; those that are as physics says keep it.
func TestDataRefusePhysics(t *testing.T) {
	for _, held := range []int{0, 5, 40} {
		for _, made := range []float64{0.002, 0.039} {
			all := line4(200, [4]float64{7000, 17, 30, made}, 0.5)
			rest := line4(200, [4]float64{7000, 17, 30, made}, 0.5).where(func(block int) bool { return block < held })
			r := reportOf(all, rest, [4]float64{6000, 20, 57, 0.039})
			if math.Abs(r.fit.Beta[3]/made-1) > 0.1 || math.Abs(r.fit.Beta[0]/7000-1) > 0.02 {
				t.Errorf("%d held back: beta %v, made with %g", held, r.fit.Beta, made)
			}
			if physics := strings.HasPrefix(r.fit.from[beta3], "physics"); physics != (made == 0.039) {
				t.Errorf("%d held back, made with %g: %s", held, made, r.fit.from[beta3])
			}
		}
	}
}

// TestPriorIsInAllDraws: a prior's rows are no block of data: no resample is without
// them, and blocks without rows are not drawn. Of two columns that are one, of which
// a prior tells the first, none moves by more than the data scatter.
func TestPriorIsInAllDraws(t *testing.T) {
	r := &regression{names: []string{names[beta0], names[beta1]}}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 120 {
		r.add(3*(i/4), 2000*math.Exp(0.01*random.NormFloat64()), 1, 1)
	}
	held := r.holding([]string{names[beta0]}, prior{Coefficients{Beta: [4]float64{1500}}})
	at, n := held.drawn()
	if n != 30 || at[0] != 0 || at[119] != 29 || at[120] != -1 {
		t.Errorf("%d blocks; rows are of %v", n, at)
	}
	x := held.fit()
	for k, i := range held.intervals(x, 1) {
		if want := []float64{1500, 500}[k]; math.Abs(x[k]-want) > 10 || i.Low < want-20 || i.High > want+20 || i.Low >= i.High {
			t.Errorf("%s %.5g, %.5g to %.5g; want %g", r.names[k], x[k], i.Low, i.High, want)
		}
	}
	through := *held
	through.blocks = at
	if a, b := held.intervals(x, 1), through.intervals(x, 1); !slices.Equal(a, b) {
		t.Errorf("blocks with gaps between their numbers: %v, without %v", a, b)
	}
}

// TestContradictedPriorIsLittle: of coefficients that cannot be told apart, and a prior
// that the data exclude, what was held back is foretold as by the data alone.
func TestContradictedPriorIsLittle(t *testing.T) {
	all, held := &regression{names: slices.Clone(names[beta0:])}, &regression{names: slices.Clone(names[beta0:])}
	for i := range 120 {
		into := all
		if i%2 == 1 {
			into = held
		}
		d := float64(1 + i%3)
		into.add(i, 3000+10*d+float64(i%5), 1, 1+0.01*float64(i%7), d, 0)
	}
	r := reportOf(all, held, [4]float64{9000, 9000, 10, 0})
	if !r.fit.id.has(names[beta0]) || !r.fit.id.has(names[beta1]) {
		t.Fatalf("told apart: %+v", r.fit.id)
	}
	if off := deviation(held.errors(r.fit.Beta[:])); off > 0.002 {
		t.Errorf("errors of %g, beta %v", off, r.fit.Beta)
	}
}

// TestMisfitsAreToldOf: a beta[0] of 0, which may be the host's alone, phases half of which
// are off by more than 20 %, and a mean E2E that is.
func TestMisfitsAreToldOf(t *testing.T) {
	for _, c := range []struct {
		base, host, percent, e2e float64
		want                     string
	}{
		{7000, 0, 19, -19, ""}, {7000, 800, 19, 19, ""}, {0, 0, 19, 19, "beta[0] is 0"}, {800, 800, 19, 19, "beta[0] is 0"},
		{7000, 0, 21, 19, "off by more than 21 %"}, {7000, 0, 19, -21, "simulated -21 % off"},
	} {
		r := &Report{setup: &setup{}, StepScore: &StepScore{"phases", c.percent}, Scores: []*Score{{Metrics: []Miss{{Metric: "ttft.p99", Percent: 99}, {Metric: "e2e.mean", Percent: c.e2e}}}}}
		if c.host > 0 {
			r.Host = &Host{US: c.host}
		}
		r.fit.Beta[0] = c.base
		r.warnMisfit()
		if got := strings.Join(r.setup.warnings, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || len(r.setup.warnings) > 1 {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
