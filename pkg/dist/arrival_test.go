package dist

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func cv(v float64) *float64 { return &v }

// Gaps have the mean of their rate, the cv asked for and the quantiles of
// their distribution.
func TestGapsFollowTheirProcess(t *testing.T) {
	const rate = 20 // a second: a mean gap of 50,000 µs
	const mean = 1e6 / rate
	tested := map[string]bool{}
	exponential := func(p float64) float64 { return -mean * math.Log(1-p) }
	for _, c := range []struct {
		arrival  Arrival
		cv       float64
		quantile func(p float64) float64 // nil where no closed form is at hand
	}{
		{Arrival{"poisson", nil}, 1, exponential},
		{Arrival{"constant", nil}, 0, func(float64) float64 { return mean }},
		{Arrival{"gamma", cv(1)}, 1, exponential},
		{Arrival{"gamma", cv(2.5)}, 2.5, nil},
		{Arrival{"gamma", cv(0.3)}, 0.3, nil},
		{Arrival{"weibull", cv(1)}, 1, exponential},
		// Shape 1/2 has cv √5 and scale mean/Γ(3) = mean/2.
		{Arrival{"weibull", cv(math.Sqrt(5))}, math.Sqrt(5), func(p float64) float64 { return mean / 2 * math.Pow(-math.Log(1-p), 2) }},
		{Arrival{"weibull", cv(0.3)}, 0.3, nil},
	} {
		tested[c.arrival.Process] = true
		g, err := c.arrival.Gaps(rate)
		if err != nil {
			t.Fatal(err)
		}
		r := NewStream(5, "gaps")
		v := make([]float64, samples)
		for i := range v {
			v[i] = g.Draw(r)
		}
		got, deviation := moments(v)
		near(t, c.arrival.Process+": the mean gap", got, mean, 0.02)
		near(t, c.arrival.Process+": the cv", deviation/mean, c.cv, 0.03)
		if c.quantile == nil {
			continue
		}
		slices.Sort(v)
		for _, p := range []float64{0.1, 0.5, 0.9, 0.99} {
			near(t, c.arrival.Process+": a quantile", v[int(p*samples)], c.quantile(p), 0.03)
		}
	}
	for _, name := range Arrivals.Names() {
		if !tested[name] {
			t.Errorf("%s is not tested", name)
		}
	}
}

// The solved shape has the cv asked for, by the formula, over the whole range.
func TestWeibullShape(t *testing.T) {
	for _, c := range []struct{ cv, shape float64 }{{1, 1}, {math.Sqrt(5), 0.5}, {math.Sqrt(4/math.Pi - 1), 2}} {
		near(t, "a known shape", weibullShape(c.cv), c.shape, 1e-9)
	}
	for v := minCV; v <= maxCV; v *= 1.3 {
		k := weibullShape(v)
		twice, _ := math.Lgamma(1 + 2/k)
		once, _ := math.Lgamma(1 + 1/k)
		near(t, "the cv of the shape", math.Sqrt(math.Expm1(twice-2*once)), v, 1e-6)
	}
}

func TestBadArrivals(t *testing.T) {
	for _, c := range []struct {
		arrival   Arrival
		path, msg string
	}{
		{Arrival{"gama", cv(2)}, "process", `unknown arrival process "gama"; did you mean "gamma"? (have poisson, gamma, weibull, constant)`},
		{Arrival{"gamma", nil}, "cv", "must be given for gamma"},
		{Arrival{"poisson", cv(1)}, "cv", "poisson has none; gamma and weibull do"},
		{Arrival{"weibull", cv(0)}, "cv", "must be between 0.01 and 100, is 0"},
		{Arrival{"gamma", cv(101)}, "cv", "must be between 0.01 and 100, is 101"},
		{Arrival{"gamma", cv(math.NaN())}, "cv", "is NaN"},
	} {
		_, err := c.arrival.Gaps(1)
		var bad *ParamError
		if !errors.As(err, &bad) || bad.Path != c.path || !strings.Contains(bad.Msg, c.msg) {
			t.Errorf("%v: %v; want %s: %s", c.arrival, err, c.path, c.msg)
		}
	}
}
