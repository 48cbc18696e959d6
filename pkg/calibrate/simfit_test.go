package calibrate

import (
	"context"
	"math"
	"slices"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/leastsq"
)

// fitPrecisely is a fit to replays that is no draft.
func fitPrecisely(ctx context.Context, replays []*replay, of shape, p coefficients, known *coefficients,
	guesses ...coefficients) (*simFit, error) {
	f, err := fitReplays(ctx, replays, of, p, known, guesses...)
	if err == nil {
		err = f.finish(ctx)
	}
	return f, err
}

// TestFitMatchesThoroughSearch: a fit finds what searches do that share nothing: from each initial guess until
// nothing is better, and then on the mean of many surfaces. They agree within a standard error.
func TestFitMatchesThoroughSearch(t *testing.T) {
	if testing.Short() {
		t.Skip("many fits by simulation; run without -short")
	}
	ctx := t.Context()
	for seed := range uint64(3) {
		s, r := synthetic(t, seed, coefficients{5000, 0, 0, 0, 6200, 16, 22, 0.1565}, 400)
		f, err := fitPrecisely(ctx, []*replay{r}, shape{}, s.prior(loadOf([]*replay{r})), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := newSimFit(f.replays, f.shape, f.prior, f.load, nil).problem
		p.Scale = f.problem.Scale
		influences, _ := f.influences(f.problem, f.dataOnly)
		var best *leastsq.Solution
		for _, c := range f.initialGuesses() {
			found, err := p.Explore(ctx, f.parametersAt(c), 12, nil)
			if err != nil {
				t.Fatal(err)
			}
			if best == nil || found.Loss < best.Loss {
				best = found
			}
		}
		const surfaces = 4 // of which each is a mean
		var mean [atAlpha3]float64
		for range surfaces {
			if best, err = p.Polish(ctx, best); err != nil {
				t.Fatal(err)
			}
			for k := range mean {
				mean[k] += best.X[k] / surfaces
			}
		}
		if len(f.dataOnly.X) > atAlpha3 {
			t.Fatalf("seed %d: alpha[3] is %v, want none", seed, f.dataOnly.X[atAlpha3])
		}
		for k, want := range mean {
			if stdErr := leastsq.StandardError(influences, k); math.Abs(f.dataOnly.X[k]-want) > stdErr {
				t.Errorf("seed %d: parameter %d is %.5g, want %.5g within %.2g", seed, k, f.dataOnly.X[k], want,
					stdErr)
			}
		}
	}
}

// TestBeta3IsFoundOrPhysics: where steps do not depend on contexts, and contexts vary, beta[3]
// is 0 and beta[2] is recovered; where they do, beta[3] stays physics, as it does where
// contexts are nearly constant.
func TestBeta3IsFoundOrPhysics(t *testing.T) {
	if testing.Short() {
		t.Skip("many fits by simulation; run without -short")
	}
	const physics = 0.1565 // of Llama-2-7b on an H100, us per token
	constant := twoRates
	constant.input, constant.output = [2]int64{500, 520}, [2]int64{200, 200}
	for _, c := range []struct {
		name  string
		load  workload
		beta3 float64
		want  float64
	}{
		{"none", twoRates, 0, 0},
		{"physics'", twoRates, physics, physics},
		{"none, contexts constant", constant, 0, physics},
	} {
		c.load.perRate = 160
		truth := coefficients{5000, 0, 0, 0, 6200, 16, 60, c.beta3}
		s, r := c.load.record(t, 3, truth)
		f, err := fitPrecisely(t.Context(), []*replay{r}, shape{}, s.prior(loadOf([]*replay{r})), nil)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(f.value[beta3]-c.want) > 1e-3 {
			t.Errorf("%s: beta[3] is %.4g, want %.4g", c.name, f.value[beta3], c.want)
		}
		data := f.coefficientsAt(f.dataOnly.X)
		if ci, _ := f.intervals(); c.want == c.beta3 && math.Abs(data[beta2]-60) > ci[beta2].Hi-ci[beta2].Lo {
			t.Errorf("%s: beta[2] is %.4g in %.4g, want 60", c.name, data[beta2], ci[beta2])
		}
	}
}

// TestAlpha3IsFoundWherePresent: alpha[3] of a server that sends tokens in turn is recovered
// within three standard errors, and is absent of one that does not.
func TestAlpha3IsFoundWherePresent(t *testing.T) {
	if testing.Short() {
		t.Skip("many fits by simulation; run without -short")
	}
	for _, c := range []struct {
		us       float64
		requests int
	}{{0, 300}, {80, 1000}} {
		us := c.us
		truth := coefficients{5000, 0, 0, us, 6200, 16, 22, 0.1565}
		s, r := synthetic(t, 7, truth, c.requests)
		f, err := fitPrecisely(t.Context(), []*replay{r}, shape{}, s.prior(loadOf([]*replay{r})), nil)
		if err != nil {
			t.Fatal(err)
		}
		ci, _ := f.intervals()
		if us == 0 && len(f.problem.Parameters) > atAlpha3 {
			t.Errorf("alpha[3] is %.3g us, want none", f.value[alpha3])
		}
		i, got, got0 := ci[alpha3], f.value[alpha3], f.value[alpha0]
		if us > 0 && (math.Abs(got-us) > i.Hi-i.Lo || i.Hi-i.Lo > us || math.Abs(got0-5000) > 1000) {
			t.Errorf("alpha[3] is %.4g us in %.4g, want %g; alpha[0] is %.5g, want 5000", got, i, us, got0)
		}
	}
}

// TestNearOverloadIsFitted: where long prompts bring a server near overload, so that a line over
// concurrency takes prompts for sequences and most of TTFT is queueing, the search recovers the
// coefficients, and stays at them from there.
func TestNearOverloadIsFitted(t *testing.T) {
	truth := coefficients{3000, 0, 0, 0, 8000, 125, 60, 0.1565}
	s, r := synthetic(t, 1, truth, 240)
	c, ok := tokenTimes([]*replay{r}, true, truth[beta3])
	if !ok || math.Abs(c[beta0]/truth[beta0]-1) > 0.2 || math.Abs(c[beta1]/truth[beta1]-1) > 0.2 {
		t.Errorf("the regression on prompts gives %v, %v", c, ok)
	}
	for _, guesses := range [][]coefficients{nil, {truth}} {
		f, err := fitPrecisely(t.Context(), []*replay{r}, shape{}, s.prior(loadOf([]*replay{r})), nil, guesses...)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []int{beta0, beta1} {
			if got, want := f.value[k], truth[k]; math.Abs(got/want-1) > 0.03 {
				t.Errorf("from %v: %s is %.5g, want %g", guesses, names[k], got, want)
			}
		}
	}
}

// TestResponseSurfaceMatchesRefit: without some segments of time, the solution's response
// surface moves parameters as a new search does, but for nonlinearity and noise: of 20 times
// two thirds of the segments of four recordings, as far in standard errors, and together.
func TestResponseSurfaceMatchesRefit(t *testing.T) {
	if testing.Short() {
		t.Skip("20 fits by simulation; run without -short")
	}
	ctx := t.Context()
	truth := coefficients{5000, 0, 0, 0, 6200, 16, 22, 0.1565}
	var steps, refits, both [atAlpha3]float64 // sums of squares and of products
	for seed := range uint64(4) {
		s, r := synthetic(t, seed, truth, 400)
		f, err := fitPrecisely(ctx, []*replay{r}, shape{}, s.prior(loadOf([]*replay{r})), nil)
		if err != nil {
			t.Fatal(err)
		}
		influences, n := f.influences(f.problem, f.dataOnly)
		segment, _ := f.segments(jackknifeSegments)
		random := dist.NewStream(seed, "some")
		for range 5 {
			in := random.Perm(n)[:2*n/3]
			p := *f.problem
			p.Parameters, p.Weight = slices.Clone(p.Parameters), slices.Clone(p.Weight)
			p.Parameters[atBeta2].PriorSD = 0
			for i := range p.Weight {
				if !slices.Contains(in, segment[i]) {
					p.Weight[i] = 0
				}
			}
			step := p.Relinearize(f.dataOnly).X
			refit, err := p.Explore(ctx, f.dataOnly.X, 4, nil)
			if err == nil {
				refit, err = p.Polish(ctx, refit)
			}
			if err != nil {
				t.Fatal(err)
			}
			for k := range steps {
				stdErr := leastsq.StandardError(influences[:n], k)
				a, b := (step[k]-f.dataOnly.X[k])/stdErr, (refit.X[k]-f.dataOnly.X[k])/stdErr
				steps[k], refits[k], both[k] = steps[k]+a*a, refits[k]+b*b, both[k]+a*b
			}
		}
	}
	for k, name := range []string{"alpha[0]", "step", "beta[1]", "beta[2]"} {
		r, ratio := both[k]/math.Sqrt(steps[k]*refits[k]), math.Sqrt(steps[k]/refits[k])
		t.Logf("%s: the surface moves %.2f times as far as a refit; correlation %.2f", name, ratio, r)
		if r < 0.6 || ratio < 0.5 || ratio > 1.6 {
			t.Errorf("%s moves %.2f times as far on the surface as in a refit, correlation %.2f", name, ratio, r)
		}
	}
}

// TestContradictedPriorIsOverruled: data whose slope is not the roofline's are followed, as are
// those whose slope is.
func TestContradictedPriorIsOverruled(t *testing.T) {
	for _, slope := range []float64{25, 120} {
		truth := coefficients{3000, 0, 0, 0, 8000, 25, slope, 0.1565}
		s, recorded := oneRate.record(t, 1, truth)
		r := &report{setup: s}
		if err := r.fitClients(t.Context(), []*replay{recorded}, nil); err != nil {
			t.Fatal(err)
		}
		if got := r.fit.value[beta2]; got < slope-12 || got > slope+12 {
			t.Errorf("beta[2] is %.4g us, want %g", got, slope)
		}
	}
}
