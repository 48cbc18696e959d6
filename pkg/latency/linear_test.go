package latency

import (
	"math"
	"strings"
	"testing"
)

func TestLinear(t *testing.T) {
	for _, c := range []struct {
		beta  []float64
		batch Batch
		want  int64
	}{
		{[]float64{10000, 50, 200}, Batch{Prefill: 512}, 35600},                    // 10000 + 50·512
		{[]float64{10000, 50, 200}, Batch{Decode: 1, Context: 900}, 10200},         // no β3: context is ignored
		{[]float64{10000, 50, 200, 0.5}, Batch{Decode: 2, Context: 901}, 10851},    // 10400 + 450.5, half up
		{[]float64{0, 0, 0}, Batch{Decode: 3}, 1},                                  // never less than 1 µs
		{[]float64{0.25, 0.125, 0.0625}, Batch{Prefill: 1, Decode: 2}, 1},          // 0.5, half up
		{[]float64{1e9, 1e9, 1e9}, Batch{Prefill: 1 << 30, Decode: 1 << 30}, 1e15}, // bounded
	} {
		m, err := newLinear(Coefficients{Alpha: []float64{0, 0, 0}, Beta: c.beta})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Step(c.batch); got != c.want {
			t.Errorf("β %v: a step of %+v takes %d µs, want %d", c.beta, c.batch, got, c.want)
		}
	}
	m, err := newLinear(Coefficients{Alpha: []float64{2000, 0.5, 30.5}, Beta: []float64{1, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if q, o := m.Queueing(3), m.Output(1); q != 2002 || o != 31 { // 2001.5 and 30.5, each half up
		t.Errorf("queueing %d, output %d; want 2002 and 31", q, o)
	}
}

func TestCoefficientsAreChecked(t *testing.T) {
	ok := []float64{1, 1, 1}
	for _, c := range []struct {
		c    Coefficients
		want string
	}{
		{Coefficients{Alpha: []float64{1}, Beta: ok}, "alpha_us must have 3"},
		{Coefficients{Alpha: ok, Beta: []float64{1, 2}}, "beta_us must have 3 or 4"},
		{Coefficients{Alpha: ok, Beta: []float64{1, -2, 3}}, "beta_us[1]"},
		{Coefficients{Alpha: []float64{1, 2, math.NaN()}, Beta: ok}, "alpha_us[2]"},
		{Coefficients{Alpha: ok, Beta: []float64{math.Inf(1), 2, 3}}, "beta_us[0]"},
	} {
		if _, err := newLinear(c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.c, err, c.want)
		}
	}
}
