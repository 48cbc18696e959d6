package dist

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

const samples = 200_000

// z holds the standard normal's quantiles for the probabilities tested.
var z = map[float64]float64{0.1: -1.2815515655446004, 0.5: 0, 0.9: 1.2815515655446004, 0.99: 2.3263478740408408}

func lengths(t *testing.T, s Spec) []float64 {
	t.Helper()
	l, err := s.Length()
	if err != nil {
		t.Fatal(err)
	}
	r := NewStream(3, "lengths")
	v := make([]float64, samples)
	for i := range v {
		v[i] = float64(l.Draw(r))
	}
	return v
}

// moments returns the mean and the standard deviation.
func moments(v []float64) (mean, deviation float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		deviation += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(deviation)
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want)+1e-6 {
		t.Errorf("%s is %g, want %g within %g %%", what, got, want, 100*relative)
	}
}

// Means, deviations and quantiles agree with the formulas of each distribution.
func TestLengthsFollowTheirDistribution(t *testing.T) {
	// Lognormal with mean 5000, deviation 4000: σ² = ln(1 + 0.8²) = ln 1.64.
	sigma := math.Sqrt(math.Log(1.64))
	mu := math.Log(5000) - math.Log(1.64)/2
	cases := []struct {
		spec            Spec
		mean, deviation float64
		quantile        func(p float64) float64
	}{
		{Spec{"constant", map[string]float64{"value": 150}}, 150, 0,
			func(float64) float64 { return 150 }},
		{Spec{"gaussian", map[string]float64{"mean": 5000, "std_dev": 800}}, 5000, 800,
			func(p float64) float64 { return 5000 + 800*z[p] }},
		{Spec{"exponential", map[string]float64{"mean": 5000}}, 5000, 5000,
			func(p float64) float64 { return -5000 * math.Log(1-p) }},
		{Spec{"lognormal", map[string]float64{"mean": 5000, "std_dev": 4000}}, 5000, 4000,
			func(p float64) float64 { return math.Exp(mu + sigma*z[p]) }},
	}
	if len(cases) != len(Lengths) {
		t.Errorf("%d distributions tested, there are %d", len(cases), len(Lengths))
	}
	for _, c := range cases {
		t.Run(c.spec.Type, func(t *testing.T) {
			v := lengths(t, c.spec)
			if !slices.Equal(v, lengths(t, c.spec)) {
				t.Error("the same stream gave other lengths")
			}
			mean, deviation := moments(v)
			near(t, "the mean", mean, c.mean, 0.01)
			near(t, "the deviation", deviation, c.deviation, 0.02)
			slices.Sort(v)
			for _, p := range []float64{0.1, 0.5, 0.9, 0.99} {
				near(t, "a quantile", v[int(p*samples)], c.quantile(p), 0.02)
			}
		})
	}
}

// Clamping moves the mass beyond a bound onto it and leaves the rest alone.
func TestBoundsClamp(t *testing.T) {
	v := lengths(t, Spec{"gaussian", map[string]float64{"mean": 256, "std_dev": 50, "min": 200, "max": 300}})
	below, above := 0.0, 0.0
	for _, x := range v {
		if x < 200 || x > 300 {
			t.Fatalf("%g lies outside 200..300", x)
		}
		if x == 200 {
			below++
		}
		if x == 300 {
			above++
		}
	}
	// Φ((200.5 − 256)/50) = Φ(−1.11) = 0.1335; 1 − Φ((299.5 − 256)/50) = 1 − Φ(0.87) = 0.1922.
	near(t, "the share at min", below/samples, 0.1335, 0.03)
	near(t, "the share at max", above/samples, 0.1922, 0.03)
}

// Whatever the parameters, a length is between 1 and what the wire holds.
func TestLengthsStayOnTheWire(t *testing.T) {
	for _, s := range []Spec{
		{"gaussian", map[string]float64{"mean": 1, "std_dev": 1e9}},
		{"lognormal", map[string]float64{"mean": 1, "std_dev": 2e9}},
		{"exponential", map[string]float64{"mean": 2e9}},
	} {
		v := lengths(t, s)
		if low, high := slices.Min(v), slices.Max(v); low < 1 || high > maxTokens {
			t.Errorf("%s draws from %g to %g", s.Type, low, high)
		}
	}
}

func TestBadLengths(t *testing.T) {
	for _, c := range []struct {
		spec      Spec
		path, msg string
	}{
		{Spec{"gausian", nil}, "type", `unknown distribution "gausian"; did you mean "gaussian"? (have constant, gaussian, exponential, lognormal)`},
		{Spec{"", nil}, "type", "unknown distribution"},
		{Spec{"constant", nil}, "params.value", "must be given"},
		{Spec{"gaussian", map[string]float64{"mean": 10}}, "params.std_dev", "must be given"},
		{Spec{"gaussian", map[string]float64{"mean": 10, "std_dev": -1}}, "params.std_dev", "must be between 0 and 2147483647, is -1"},
		{Spec{"exponential", map[string]float64{"mean": 0}}, "params.mean", "must be between 1 and 2147483647, is 0"},
		{Spec{"exponential", map[string]float64{"mean": math.NaN()}}, "params.mean", "is NaN"},
		{Spec{"lognormal", map[string]float64{"mean": math.Inf(1), "std_dev": 1}}, "params.mean", "is +Inf"},
		{Spec{"exponential", map[string]float64{"mean": 10, "min": 0}}, "params.min", "must be between 1"},
		{Spec{"exponential", map[string]float64{"mean": 10, "max": 2.5}}, "params.max", "must be a whole number, is 2.5"},
		{Spec{"exponential", map[string]float64{"mean": 10, "min": 9, "max": 8}}, "params.min", "must be at most max (8), is 9"},
		{Spec{"exponential", map[string]float64{"mean": 10, "stddev": 8}}, "params.stddev", `unknown parameter of exponential "stddev"`},
		{Spec{"constant", map[string]float64{"value": 10, "maxx": 8}}, "params.maxx", `did you mean "max"?`},
	} {
		_, err := c.spec.Length()
		var bad *ParamError
		if !errors.As(err, &bad) || bad.Path != c.path || !strings.Contains(bad.Msg, c.msg) {
			t.Errorf("%v: %v; want %s: %s", c.spec, err, c.path, c.msg)
		}
	}
}
