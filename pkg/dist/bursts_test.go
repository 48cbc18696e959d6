package dist

import (
	"math"
	"strings"
	"testing"
)

func mustDuration(t *testing.T, s Spec) *Length {
	t.Helper()
	l, err := s.Duration()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestBursts checks frequency and size of bursts.
func TestBursts(t *testing.T) {
	size := mustDuration(t, namedSpec("exponential", map[string]float64{"mean": 30, "min": 1}))
	interval := mustDuration(t, namedSpec("exponential", map[string]float64{"mean": 1e6}))
	b, r := Bursts(0.25, size, interval), NewStream(4, "bursts")
	arrivals, bursts, last := 0, 0, 0.0
	const span = 400_000e6 // µs, with a burst every 4 s
	for us := b(r); us < span; us = b(r) {
		arrivals++
		if us != last {
			bursts++
		}
		last = us
	}
	assertNear(t, "the number of bursts", float64(bursts), 100_000, 4/math.Sqrt(100_000))
	assertNear(t, "the mean size", float64(arrivals)/float64(bursts), size.Mean(), 4/math.Sqrt(100_000))
	// A higher probability includes the bursts of a lower one.
	few, many := Bursts(0.1, size, interval), Bursts(0.6, size, interval)
	q, r := NewStream(4, "bursts"), NewStream(4, "bursts")
	seen := map[float64]int{}
	for us := many(q); us < 1e9; us = many(q) {
		seen[us]++
	}
	for us := few(r); us < 1e9; us = few(r) {
		if seen[us]--; seen[us] < 0 {
			t.Errorf("a burst at %g is not among those of a higher probability", us)
		}
	}
}

func TestNoise(t *testing.T) {
	r := NewStream(4, "noise")
	for _, cv := range []float64{0, 0.5, 2} {
		v := make([]float64, samples)
		for i := range v {
			v[i] = Noise(cv)(r)
		}
		mean, deviation := moments(v)
		assertNear(t, "the mean", mean, 1, 0.02)
		assertNear(t, "the cv", deviation, cv, 0.1)
	}
}

// TestCorrelated: high and low ranks of the other quantity give long and short lengths, and
// together the draws have the original distribution.
func TestCorrelated(t *testing.T) {
	const share = 0.2 // of the upper part
	l := mustDuration(t, namedSpec("exponential", map[string]float64{"mean": 5000}))
	for _, rho := range []float64{0, 0.5, 1} {
		above, below := l.Correlated(rho, 1-share, 1), l.Correlated(rho, 0, 1-share)
		r := NewStream(4, "leaning")
		var all []float64
		mean := map[bool]float64{}
		for range samples {
			if r.Float64() < share {
				v := float64(above.Draw(r))
				all, mean[true] = append(all, v), mean[true]+v/(share*samples)
			} else {
				v := float64(below.Draw(r))
				all, mean[false] = append(all, v), mean[false]+v/((1-share)*samples)
			}
		}
		m, deviation := moments(all)
		assertNear(t, "the mean of all", m, 5000, 0.02)
		assertNear(t, "the deviation of all", deviation, 5000, 0.02)
		switch rho {
		case 0:
			assertNear(t, "above", mean[true], 5000, 0.03)
		case 0.5:
			if mean[true] < 6000 || mean[false] > 4750 {
				t.Errorf("means %v", mean)
			}
		case 1: // the top fifth of an exponential is its tail beyond ln 5 means
			assertNear(t, "above", mean[true], 5000*(1+math.Log(5)), 0.03)
		}
	}
}

// TestScaledMultipliesQuantiles checks all families.
func TestScaledMultipliesQuantiles(t *testing.T) {
	for _, c := range families() {
		l, err := c.spec.Length()
		if err != nil {
			t.Fatal(err)
		}
		scaled, err := c.spec.Scaled(8).Length()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []float64{0.05, 0.3, 0.99} {
			if got, want := scaled.Quantile(p), 8*l.Quantile(p); math.Abs(float64(got-want)) > 8 {
				t.Errorf("%s: the quantile of %g is %d scaled, want %d", c.spec.Type, p, got, want)
			}
		}
		again, err := c.spec.Length()
		if err != nil || again.Quantile(0.3) != l.Quantile(0.3) {
			t.Errorf("%s: scaling changed the original: %v", c.spec.Type, err)
		}
	}
}

// TestScaledKeepsInvalidQuantiles: they are reported when the scaled distribution is built.
func TestScaledKeepsInvalidQuantiles(t *testing.T) {
	for _, quantiles := range [][][]float64{{{0.5}}, {{}}, {{0, 1}, {0.5, 2, 3}}} {
		want := "must be a pair of a probability and a value"
		_, err := Spec{Type: "empirical", Quantiles: quantiles}.Scaled(8).Length()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %s", quantiles, err, want)
		}
	}
}
