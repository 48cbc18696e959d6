package latency

import (
	"math"
	"math/rand/v2"
	"testing"

	"blis/pkg/des"
)

// constantStep is a model with a constant step time.
type constantStep struct{ us des.Time }

func (s constantStep) Queueing(int64) des.Time { return 7 }
func (s constantStep) Step(Batch) des.Time     { return s.us }
func (s constantStep) Output(int64) des.Time   { return 9 }

func TestJitter(t *testing.T) {
	const us, draws = 1_000_000, 200_000
	for _, cv := range []float64{0.01, 0.1, 0.5} {
		m := Jitter(constantStep{us}, cv, rand.New(rand.NewPCG(1, 2)).NormFloat64)
		sum, squares := 0.0, 0.0
		for range draws {
			x := float64(m.Step(Batch{})) / us
			sum += x
			squares += x * x
		}
		mean := sum / draws
		got := math.Sqrt(squares/draws-mean*mean) / mean
		// The mean has standard error cv/√draws; the sample cv is less accurate.
		if math.Abs(mean-1) > 5*cv/math.Sqrt(draws) || math.Abs(got/cv-1) > 0.02 {
			t.Errorf("cv %g: mean %.5f and cv %.5f of %d draws", cv, mean, got, draws)
		}
		if m.Queueing(1) != 7 || m.Output(1) != 9 {
			t.Errorf("cv %g: queueing %d, output %d; want 7 and 9", cv, m.Queueing(1), m.Output(1))
		}
	}
}

func TestJitterFactor(t *testing.T) {
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
		m := Jitter(constantStep{c.us}, 1, func() float64 { return c.z }) // cv 1: σ² = ln 2
		if got := m.Step(Batch{}); got != c.want {
			t.Errorf("z %g: %d µs, want %d", c.z, got, c.want)
		}
	}
	base := constantStep{5}
	if m := Jitter(base, 0, nil); m != Model(base) {
		t.Errorf("without jitter: %v", m)
	}
}
