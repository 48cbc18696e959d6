package dist

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func ptr(v float64) *float64 { return &v }

// TestGapsFollowTheirProcess checks mean, cv and quantiles of the gaps.
func TestGapsFollowTheirProcess(t *testing.T) {
	const rate = 20 // a second: a mean gap of 50,000 µs
	const mean = 1e6 / rate
	tested := map[string]bool{}
	exponential := func(p float64) float64 { return -mean * math.Log(1-p) }
	for _, c := range []struct {
		arrival  Arrival
		cv       float64                 // NaN if infinite
		quantile func(p float64) float64 // nil without a closed form
	}{
		{Arrival{Process: "poisson"}, 1, exponential},
		{Arrival{Process: "constant"}, 0, func(float64) float64 { return mean }},
		{Arrival{Process: "gamma", CV: ptr(1)}, 1, exponential},
		{Arrival{Process: "gamma", CV: ptr(2.5)}, 2.5, nil},
		{Arrival{Process: "gamma", CV: ptr(0.3)}, 0.3, nil},
		{Arrival{Process: "weibull", CV: ptr(1)}, 1, exponential},
		// Shape 1/2 has cv √5 and scale mean/Γ(3) = mean/2.
		{Arrival{Process: "weibull", CV: ptr(math.Sqrt(5))}, math.Sqrt(5),
			func(p float64) float64 { return mean / 2 * math.Pow(-math.Log(1-p), 2) }},
		{Arrival{Process: "weibull", CV: ptr(0.3)}, 0.3, nil},
		// Shape 5 has cv 1/√15, and a minimum of 4/5 of the mean.
		{Arrival{Process: "bursty", Shape: ptr(5)}, 1 / math.Sqrt(15),
			func(p float64) float64 { return 0.8 * mean * math.Pow(1-p, -0.2) }},
		{Arrival{Process: "bursty", CV: ptr(1 / math.Sqrt(15))}, 1 / math.Sqrt(15),
			func(p float64) float64 { return 0.8 * mean * math.Pow(1-p, -0.2) }},
		// At shape 3/2 the mean is finite and the cv is not.
		{Arrival{Process: "bursty", Shape: ptr(1.5)}, math.NaN(),
			func(p float64) float64 { return mean / 3 * math.Pow(1-p, -1/1.5) }},
		{Arrival{Process: "periodic"}, 0, func(float64) float64 { return mean }},
		// A gap is mean·(1 + 0.6·(U − V)), and U − V has variance 1/6 and quantiles
		// √(2p) − 1 below 1/2.
		{Arrival{Process: "periodic", Jitter: ptr(0.6)}, 0.6 / math.Sqrt(6), func(p float64) float64 {
			if p > 0.5 {
				return mean * (1 + 0.6*(1-math.Sqrt(2*(1-p))))
			}
			return mean * (1 + 0.6*(math.Sqrt(2*p)-1))
		}},
		// 9 of 10 gaps are 0, the others 10 means: the square of the cv is 10 − 1.
		{Arrival{Process: "adversarial", BurstSize: ptr(10)}, 3, func(p float64) float64 {
			if p < 0.9 {
				return 0
			}
			return 10 * mean
		}},
	} {
		tested[c.arrival.Process] = true
		v := gapsOf(t, c.arrival, rate)
		got, deviation := moments(v)
		if !math.IsNaN(c.cv) {
			assertNear(t, c.arrival.Process+": the mean gap", got, mean, 0.02)
			assertNear(t, c.arrival.Process+": the cv", deviation/mean, c.cv, 0.03)
		}
		if c.quantile == nil {
			continue
		}
		slices.Sort(v)
		for _, p := range []float64{0.1, 0.5, 0.8, 0.99} {
			assertNear(t, c.arrival.Process+": a quantile", v[int(p*samples)], c.quantile(p), 0.03)
		}
	}
	for _, name := range Arrivals.Names() {
		if !tested[name] && name != "spikes" && name != "trace" { // have tests of their own
			t.Errorf("%s is not tested", name)
		}
	}
}

// gapsOf draws the first gaps of a.
func gapsOf(t *testing.T, a Arrival, rate float64) []float64 {
	t.Helper()
	times, err := a.Times(rate, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := NewStream(5, "gaps")
	v := make([]float64, samples)
	last := 0.0
	for i := range v {
		us := times(r)
		v[i], last = us-last, us
	}
	return v
}

// TestGaps: the gaps are the differences of the times.
func TestGaps(t *testing.T) {
	a := Arrival{Process: "gamma", CV: ptr(2)}
	gaps, err := a.Gaps(20)
	if err != nil {
		t.Fatal(err)
	}
	times, err := a.Times(20, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, q := NewStream(5, "gaps"), NewStream(5, "gaps")
	sum := 0.0
	for range 100 {
		sum += gaps(r)
		if us := times(q); us != sum {
			t.Fatalf("an arrival at %g, the gaps up to it add up to %g", us, sum)
		}
	}
	if _, err := (Arrival{Process: "periodic"}).Gaps(20); err == nil {
		t.Error("periodic arrivals have independent gaps")
	}
}

// TestPeriodicDoesNotDrift: each jittered arrival is in its own gap.
func TestPeriodicDoesNotDrift(t *testing.T) {
	times, err := Arrival{Process: "periodic", Jitter: ptr(1)}.Times(1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := NewStream(5, "gaps")
	for k := 1; k <= 100_000; k++ {
		if us := times(r); us < float64(k)*1000 || us > float64(k+1)*1000 {
			t.Fatalf("arrival %d is at %g µs", k, us)
		}
	}
}

// TestSpikes: the rate in spikes is multiplied, the mean rate is as configured, and counts in
// either part are Poisson: variance and mean agree.
func TestSpikes(t *testing.T) {
	const rate, intervals = 50, 4000
	times, err := Arrival{Process: "spikes", IntervalS: ptr(10), DurationS: ptr(2), Multiplier: ptr(6)}.Times(rate, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := NewStream(5, "gaps")
	quiet, spike := make([]float64, intervals), make([]float64, intervals)
	last := 0.0
	for us := times(r); us < intervals*10e6; us = times(r) {
		if us < last {
			t.Fatalf("an arrival at %g comes after %g", us, last)
		}
		last = us
		if i := int(us / 10e6); us-float64(i)*10e6 < 8e6 {
			quiet[i]++
		} else {
			spike[i]++
		}
	}
	// 500 per interval, of which the spike has 12 of 12 + 8 parts.
	for _, part := range []struct {
		name   string
		counts []float64
		mean   float64
	}{{"quiet", quiet, 200}, {"spike", spike, 300}} {
		mean, deviation := moments(part.counts)
		assertNear(t, part.name+": the mean count", mean, part.mean, 4/math.Sqrt(part.mean*intervals))
		assertNear(t, part.name+": the variance of counts", deviation*deviation, part.mean, 0.09) // 4·√(2/4000)
	}
}

// TestTrace: the times of a trace are those recorded, then there are none.
func TestTrace(t *testing.T) {
	times, err := Arrival{Process: "trace", File: "f"}.Times(1, []float64{0, 5, 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []float64{0, 5, 5, math.Inf(1), math.Inf(1)} {
		if us := times(nil); us != want {
			t.Errorf("an arrival at %g, want %g", us, want)
		}
	}
}

// TestWeibullShape: the solved shape has the requested cv, by the formula, over the whole range.
func TestWeibullShape(t *testing.T) {
	for _, c := range []struct{ cv, shape float64 }{{1, 1}, {math.Sqrt(5), 0.5}, {math.Sqrt(4/math.Pi - 1), 2}} {
		assertNear(t, "a known shape", weibullShape(c.cv), c.shape, 1e-9)
	}
	for v := minCV; v <= maxCV; v *= 1.3 {
		k := weibullShape(v)
		twice, _ := math.Lgamma(1 + 2/k)
		once, _ := math.Lgamma(1 + 1/k)
		assertNear(t, "the cv of the shape", math.Sqrt(math.Expm1(twice-2*once)), v, 1e-6)
	}
}

func TestBadArrivals(t *testing.T) {
	for _, c := range []struct {
		arrival   Arrival
		path, msg string
	}{
		{Arrival{Process: "gama", CV: ptr(2)}, "process",
			`unknown arrival process "gama"; did you mean "gamma"? (have poisson, gamma, weibull, bursty, ` +
				`constant, periodic, spikes, adversarial, trace)`},
		{Arrival{Process: "gamma"}, "cv", "must be given"},
		{Arrival{Process: "poisson", CV: ptr(1)}, "cv",
			"is not a parameter of poisson, only of gamma, weibull and bursty"},
		{Arrival{Process: "poisson", Jitter: ptr(1)}, "jitter", "is not a parameter of poisson, only of periodic"},
		{Arrival{Process: "weibull", CV: ptr(0)}, "cv", "must be between 0.01 and 100, is 0"},
		{Arrival{Process: "gamma", CV: ptr(101)}, "cv", "must be between 0.01 and 100, is 101"},
		{Arrival{Process: "gamma", CV: ptr(math.NaN())}, "cv", "is NaN"},
		{Arrival{Process: "bursty"}, "cv", "bursty needs either cv or shape"},
		{Arrival{Process: "bursty", CV: ptr(1), Shape: ptr(3)}, "cv", "bursty needs either cv or shape"},
		{Arrival{Process: "bursty", Shape: ptr(1)}, "shape", "must be between 1.001 and 1000, is 1"},
		{Arrival{Process: "periodic", Jitter: ptr(1.5)}, "jitter", "must be between 0 and 1, is 1.5"},
		{Arrival{Process: "spikes"}, "interval_s", "must be given"},
		{Arrival{Process: "spikes", IntervalS: ptr(5), DurationS: ptr(5), Multiplier: ptr(2)}, "duration_s",
			"must be below interval_s (5), is 5"},
		{Arrival{Process: "spikes", IntervalS: ptr(5), DurationS: ptr(1), Multiplier: ptr(0.5)}, "multiplier",
			"must be between 1 and 1000000, is 0.5"},
		{Arrival{Process: "adversarial"}, "burst_size", "must be given"},
		{Arrival{Process: "adversarial", BurstSize: ptr(2.5)}, "burst_size", "must be an integer, is 2.5"},
		{Arrival{Process: "trace"}, "file", "must be given for trace"},
		{Arrival{Process: "gamma", CV: ptr(1), File: "x"}, "file", "is not a parameter of gamma, only of trace"},
	} {
		_, err := c.arrival.Times(1, nil)
		var bad *ParamError
		if !errors.As(err, &bad) || bad.Path != c.path || !strings.Contains(bad.Msg, c.msg) {
			t.Errorf("%v: %v; want %s: %s", c.arrival, err, c.path, c.msg)
		}
	}
}
