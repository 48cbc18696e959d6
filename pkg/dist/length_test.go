package dist

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

const samples = 200_000

// z holds the standard normal's quantiles for the tested probabilities.
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

func assertNear(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want)+1e-6 {
		t.Errorf("%s is %g, want %g within %g %%", what, got, want, 100*relative)
	}
}

// namedSpec returns a Spec of a type and its parameters.
func namedSpec(name string, params map[string]float64) Spec { return Spec{Type: name, Params: params} }

// families returns distributions with their moments and quantiles by formula.
func families() []struct {
	spec            Spec
	mean, deviation float64
	quantile        func(p float64) float64
} {
	// Lognormal with mean 5000, deviation 4000: σ² = ln(1 + 0.8²) = ln 1.64.
	sigma := math.Sqrt(math.Log(1.64))
	mu := math.Log(5000) - math.Log(1.64)/2
	return []struct {
		spec            Spec
		mean, deviation float64
		quantile        func(p float64) float64
	}{
		{namedSpec("constant", map[string]float64{"value": 150}), 150, 0,
			func(float64) float64 { return 150 }},
		{namedSpec("gaussian", map[string]float64{"mean": 5000, "std_dev": 800}), 5000, 800,
			func(p float64) float64 { return 5000 + 800*z[p] }},
		{namedSpec("exponential", map[string]float64{"mean": 5000}), 5000, 5000,
			func(p float64) float64 { return -5000 * math.Log(1-p) }},
		{namedSpec("lognormal", map[string]float64{"mean": 5000, "std_dev": 4000}), 5000, 4000,
			func(p float64) float64 { return math.Exp(mu + sigma*z[p]) }},
		// Tail index 5: mean 4000·5/4, variance 4000²·5/(4²·3).
		{namedSpec("pareto", map[string]float64{"minimum": 4000, "alpha": 5}), 5000, 4000 * math.Sqrt(5.0/48),
			func(p float64) float64 { return 4000 * math.Pow(1-p, -0.2) }},
		{namedSpec("pareto", map[string]float64{"mean": 5000, "alpha": 5}), 5000, 4000 * math.Sqrt(5.0/48),
			func(p float64) float64 { return 4000 * math.Pow(1-p, -0.2) }},
		// 1001 equally likely integers: variance (1001² − 1)/12.
		{namedSpec("uniform", map[string]float64{"min": 1000, "max": 2000}), 1500, math.Sqrt((1001*1001 - 1) / 12.0),
			func(p float64) float64 { return 1000 + 1000*p }},
		// 0.2·300 + 0.4·100 + 0.4·200 = 180; squares 0.2·300² + 0.4·100² + 0.4·200² = 38,000.
		{Spec{Type: "empirical", Values: []float64{300, 100, 200}, Weights: []float64{2, 4, 4}}, 180,
			math.Sqrt(38000 - 180*180),
			func(p float64) float64 { return map[float64]float64{0.1: 100, 0.5: 200, 0.9: 300, 0.99: 300}[p] }},
		// Half between 1000 and 2000, half between 2000 and 6000: mean (1500 + 4000)/2,
		// squares (1500² + 1000²/12 + 4000² + 4000²/12)/2.
		{Spec{Type: "empirical", Quantiles: [][]float64{{0, 1000}, {0.5, 2000}, {1, 6000}}}, 2750,
			math.Sqrt((1500*1500+1e6/12+16e6+16e6/12)/2 - 2750*2750),
			func(p float64) float64 { return max(1000+2000*p, 2000+8000*(p-0.5)) }},
		// A quarter is 100, the rest exponential with mean 5000, raised to 100 where it is below: its mean
		// is 100 + 5000·e^−0.02.
		{Spec{Type: "mixture", Components: []Component{
			{1, namedSpec("constant", map[string]float64{"value": 100})},
			{3, namedSpec("exponential", map[string]float64{"mean": 5000, "min": 100})},
		}}, 25 + 0.75*(100+5000*math.Exp(-0.02)), deviationOfMixture,
			func(p float64) float64 { return max(100, -5000*math.Log((1-p)/0.75)) }},
	}
}

// deviationOfMixture: with q = e^−0.02 the exponential part is 100 + X, where X is 0 or, with
// probability q, exponential: E[X] = 5000q, E[X²] = 2·5000²·q.
var deviationOfMixture = func() float64 {
	q := math.Exp(-0.02)
	mean, square := 0.75*5000*q, 0.75*2*5000*5000*q
	return math.Sqrt(square - mean*mean)
}()

// TestLengthsFollowTheirDistribution compares means, deviations and quantiles with the formulas.
func TestLengthsFollowTheirDistribution(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range families() {
		tested[c.spec.Type] = true
		t.Run(c.spec.Type, func(t *testing.T) {
			v := lengths(t, c.spec)
			if !slices.Equal(v, lengths(t, c.spec)) {
				t.Error("the same stream gave different lengths")
			}
			mean, deviation := moments(v)
			assertNear(t, "the mean", mean, c.mean, 0.01)
			assertNear(t, "the deviation", deviation, c.deviation, 0.02)
			slices.Sort(v)
			l, err := c.spec.Length()
			if err != nil {
				t.Fatal(err)
			}
			assertNear(t, "the mean by formula", l.Mean(), c.mean, 0.001)
			for _, p := range []float64{0.1, 0.5, 0.9, 0.99} {
				assertNear(t, "a quantile", v[int(p*samples)], c.quantile(p), 0.02)
				if got := float64(l.Quantile(p)); math.Abs(got-c.quantile(p)) > 0.6 {
					t.Errorf("the quantile of %g is %g, want %g", p, got, c.quantile(p))
				}
			}
		})
	}
	for _, name := range Lengths.Names() {
		if !tested[name] {
			t.Errorf("%s is not tested", name)
		}
	}
}

// TestMixtureOfEqualComponents: a mixture of equal components is that distribution, which checks
// that bisection and each cdf invert the quantiles.
func TestMixtureOfEqualComponents(t *testing.T) {
	for _, c := range families() {
		one, err := c.spec.Length()
		if err != nil {
			t.Fatal(err)
		}
		mixed, err := Spec{Type: "mixture", Components: []Component{{1, c.spec}, {0.5, c.spec}}}.Length()
		if err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for i := range 999 {
			p := float64(i+1) / 1000
			got, want := mixed.Quantile(p), one.Quantile(p)
			if got < last || got-want > 1 || want-got > 1 {
				t.Errorf("%s: the quantile of %g is %d mixed and %d alone, the one before %d", c.spec.Type, p, got,
					want, last)
			}
			last = got
		}
	}
}

// TestDurations: durations start at 0 and exceed the maximum length.
func TestDurations(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want int64
	}{
		{namedSpec("constant", map[string]float64{"value": 0}), 0},
		{namedSpec("constant", map[string]float64{"value": 1 << 40}), 1 << 40},
		{namedSpec("gaussian", map[string]float64{"mean": 1, "std_dev": 0, "max": 0}), 0},
	} {
		d, err := c.spec.Duration()
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Draw(NewStream(1, "d")); got != c.want {
			t.Errorf("%v draws %d, want %d", c.spec, got, c.want)
		}
		if _, err := c.spec.Length(); err == nil {
			t.Errorf("%v is accepted as a length", c.spec)
		}
	}
}

// TestBoundsClamp: clamping moves the mass beyond a limit onto it and leaves the rest unchanged.
func TestBoundsClamp(t *testing.T) {
	v := lengths(t, namedSpec("gaussian", map[string]float64{"mean": 256, "std_dev": 50, "min": 200, "max": 300}))
	atMin, atMax := 0.0, 0.0
	for _, x := range v {
		if x < 200 || x > 300 {
			t.Fatalf("%g lies outside 200..300", x)
		}
		if x == 200 {
			atMin++
		}
		if x == 300 {
			atMax++
		}
	}
	// Φ((200.5 − 256)/50) = Φ(−1.11) = 0.1335; 1 − Φ((299.5 − 256)/50) = 1 − Φ(0.87) = 0.1922.
	assertNear(t, "the share at min", atMin/samples, 0.1335, 0.03)
	assertNear(t, "the share at max", atMax/samples, 0.1922, 0.03)
}

// TestNarrowLognormal: a standard deviation below one token is allowed. Four of them are two tokens.
func TestNarrowLognormal(t *testing.T) {
	v := lengths(t, namedSpec("lognormal", map[string]float64{"mean": 100, "std_dev": 0.5}))
	if low, high := slices.Min(v), slices.Max(v); low < 97 || low > 99 || high < 101 || high > 103 {
		t.Errorf("%g to %g", low, high)
	}
}

// TestLengthsStayInBounds: for all parameters, lengths are between 1 and the maximum.
func TestLengthsStayInBounds(t *testing.T) {
	for _, s := range []Spec{
		namedSpec("gaussian", map[string]float64{"mean": 1, "std_dev": 1e9}),
		namedSpec("lognormal", map[string]float64{"mean": 1, "std_dev": 2e9}),
		namedSpec("exponential", map[string]float64{"mean": 2e9}),
	} {
		v := lengths(t, s)
		if low, high := slices.Min(v), slices.Max(v); low < 1 || high > tokens.max {
			t.Errorf("%s draws from %g to %g", s.Type, low, high)
		}
	}
}

func TestBadLengths(t *testing.T) {
	for _, c := range []struct {
		spec      Spec
		path, msg string
	}{
		{namedSpec("gausian", nil), "type",
			`unknown distribution "gausian"; did you mean "gaussian"? (have constant, gaussian, exponential, ` +
				`lognormal, pareto, uniform, empirical, mixture)`},
		{namedSpec("", nil), "type", "unknown distribution"},
		{namedSpec("constant", nil), "params.value", "must be given"},
		{namedSpec("gaussian", map[string]float64{"mean": 10}), "params.std_dev", "must be given"},
		{namedSpec("gaussian", map[string]float64{"mean": 10, "std_dev": -1}), "params.std_dev",
			"must be between 0 and 2147483647, is -1"},
		{namedSpec("exponential", map[string]float64{"mean": 0}), "params.mean",
			"must be between 1 and 2147483647, is 0"},
		{namedSpec("exponential", map[string]float64{"mean": math.NaN()}), "params.mean", "is NaN"},
		{namedSpec("lognormal", map[string]float64{"mean": math.Inf(1), "std_dev": 1}), "params.mean", "is +Inf"},
		{namedSpec("exponential", map[string]float64{"mean": 10, "min": 0}), "params.min", "must be between 1"},
		{namedSpec("exponential", map[string]float64{"mean": 10, "max": 2.5}), "params.max",
			"must be an integer, is 2.5"},
		{namedSpec("exponential", map[string]float64{"mean": 10, "min": 9, "max": 8}), "params.min",
			"must be at most max (8), is 9"},
		{namedSpec("exponential", map[string]float64{"mean": 10, "stddev": 8}), "params.stddev",
			`unknown parameter of exponential "stddev"`},
		{namedSpec("pareto", map[string]float64{"alpha": 2}), "params.mean", "pareto needs either mean or minimum"},
		{namedSpec("pareto", map[string]float64{"alpha": 2, "mean": 9, "minimum": 3}), "params.mean",
			"pareto needs either mean or minimum"},
		{namedSpec("pareto", map[string]float64{"alpha": 1, "mean": 9}), "params.alpha",
			"must be between 1.001 and 1000, is 1"},
		{namedSpec("uniform", map[string]float64{"min": 5}), "params.max", "must be given"},
		{namedSpec("uniform", map[string]float64{"min": 5, "max": 4}), "params.min", "must be at most max (4), is 5"},
		{namedSpec("uniform", map[string]float64{"min": 5, "max": 9, "mean": 7}), "params.mean", "(have min, max)"},
		{namedSpec("empirical", nil), "values", "empirical needs either values or quantiles"},
		{Spec{Type: "empirical", Values: []float64{}}, "values", "must have at least one entry"},
		{Spec{Type: "empirical", Values: []float64{9, 0}}, "values[1]", "must be between 1 and 2147483647, is 0"},
		{Spec{Type: "empirical", Values: []float64{9, 8}, Weights: []float64{1}}, "values",
			"as many as weights; there are 2 and 1"},
		{Spec{Type: "empirical", Values: []float64{9, 8}, Weights: []float64{1, 0}}, "weights[1]",
			"must be above 0 and at most 1e+12, is 0"},
		{Spec{Type: "empirical", Quantiles: [][]float64{{0.5, 9}}, Weights: []float64{1}}, "weights",
			"apply to values"},
		{Spec{Type: "empirical", Quantiles: [][]float64{}}, "quantiles", "must have at least one pair"},
		{Spec{Type: "empirical", Quantiles: [][]float64{{0.5, 9}, {0.9}}}, "quantiles[1]",
			"must be a pair of a probability and a value, has 1 numbers"},
		{Spec{Type: "empirical", Quantiles: [][]float64{{50, 9}}}, "quantiles[0][0]",
			"must be a probability between 0 and 1, is 50"},
		{Spec{Type: "empirical", Quantiles: [][]float64{{0.5, 0}}}, "quantiles[0][1]", "must be between 1 and"},
		{Spec{Type: "empirical", Quantiles: [][]float64{{0.5, 9}, {0.4, 10}}}, "quantiles[1]",
			"must follow the previous pair"},
		{Spec{Type: "empirical", Quantiles: [][]float64{{0.5, 9}, {0.6, 8}}}, "quantiles[1]",
			"must follow the previous pair"},
		{Spec{Type: "gaussian", Values: []float64{1}, Params: map[string]float64{"mean": 10, "std_dev": 1}},
			"values", "is not a field of gaussian, only of empirical"},
		{namedSpec("mixture", nil), "components", "must have at least one entry"},
		{Spec{Type: "mixture", Components: []Component{{0, namedSpec("constant", map[string]float64{"value": 1})}}},
			"components[0].weight", "must be above 0"},
		{Spec{Type: "mixture", Components: []Component{{1, namedSpec("constant", map[string]float64{"value": 0})}}},
			"components[0].params.value", "must be between 1"},
		{Spec{Type: "mixture", Components: []Component{{1,
			Spec{Type: "mixture", Components: []Component{{1, namedSpec("pareto", nil)}}}}}},
			"components[0].components[0].params.alpha", "must be given"},
		{Spec{Type: "constant", Components: []Component{}, Params: map[string]float64{"value": 1}}, "components",
			"is not a field of constant, only of mixture"},
		{namedSpec("constant", map[string]float64{"value": 10, "maxx": 8}), "params.maxx", `did you mean "max"?`},
	} {
		_, err := c.spec.Length()
		var bad *ParamError
		if !errors.As(err, &bad) || bad.Path != c.path || !strings.Contains(bad.Msg, c.msg) {
			t.Errorf("%v: %v; want %s: %s", c.spec, err, c.path, c.msg)
		}
	}
}
