package latency

import (
	"math"
	"math/rand/v2"
	"testing"

	"blis/pkg/des"
)

// steady takes always the same.
type steady struct{ us des.Time }

func (s steady) Queueing(int64) des.Time { return 7 }
func (s steady) Step(Batch) des.Time     { return s.us }
func (s steady) Output(int64) des.Time   { return 9 }

func TestJitter(t *testing.T) {
	const us, draws = 1_000_000, 200_000
	for _, cv := range []float64{0.01, 0.1, 0.5} {
		m := Jitter(steady{us}, cv, rand.New(rand.NewPCG(1, 2)).NormFloat64)
		sum, squares := 0.0, 0.0
		for range draws {
			x := float64(m.Step(Batch{})) / us
			sum += x
			squares += x * x
		}
		mean := sum / draws
		got := math.Sqrt(squares/draws-mean*mean) / mean
		// The mean's own deviation is cv/√draws; a lognormal's cv is known worse.
		if math.Abs(mean-1) > 5*cv/math.Sqrt(draws) || math.Abs(got/cv-1) > 0.02 {
			t.Errorf("cv %g: mean %.5f and cv %.5f of %d draws", cv, mean, got, draws)
		}
		if m.Queueing(1) != 7 || m.Output(1) != 9 {
			t.Errorf("cv %g: queueing %d, output %d; want 7 and 9", cv, m.Queueing(1), m.Output(1))
		}
	}
}

func TestJitterExactly(t *testing.T) {
	for _, c := range []struct {
		z    float64
		us   des.Time
		want des.Time
	}{
		{0, 1000, 707},                        // exp(−ln 2/2)
		{math.Sqrt(math.Ln2), 1000, 1414},     // exp(ln 2 − ln 2/2)
		{math.Sqrt(math.Ln2) / 2, 1000, 1000}, // exp(0)
		{-20, 1000, 1},                        // never less than 1 µs
	} {
		m := Jitter(steady{c.us}, 1, func() float64 { return c.z }) // cv 1: σ² = ln 2
		if got := m.Step(Batch{}); got != c.want {
			t.Errorf("z %g: %d µs, want %d", c.z, got, c.want)
		}
	}
	plain := steady{5}
	if m := Jitter(plain, 0, nil); m != Model(plain) {
		t.Errorf("without jitter: %v", m)
	}
}
