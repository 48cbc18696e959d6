package calibrate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDriftByHand: residuals that grow by 50 µs a sequence, give or take 5 ms, with a
// stall of a second in each hundredth, give that slope back with an interval of about
// 1.645·5000/(14.4·√2000) = 13 µs to either side.
func TestDriftByHand(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var x, y []float64
	for i := range 2000 {
		n := 50 * random.Float64()
		d := 1000 + 50*n + 5000*random.NormFloat64()
		if i%100 == 0 {
			d += 1e6
		}
		x, y = append(x, n), append(y, d)
	}
	d := slopeOf(x, y)
	if d == nil || d.Low > 50 || d.High < 50 || math.Abs((d.High-d.Low)/2-12.8) > 1.5 {
		t.Fatalf("drift %+v", d)
	}
	if low, high := d.over(100); low != 0 || math.Abs(high-d.High/10) > 1e-9 {
		t.Errorf("100 sequences more: %g to %g ms", low, high)
	}
	if low, high := d.over(-100); high != 0 || math.Abs(low+d.High/10) > 1e-9 {
		t.Errorf("100 sequences fewer: %g to %g ms", low, high)
	}
	if d := slopeOf(make([]float64, 100), y[:100]); d != nil {
		t.Errorf("of one load: %+v", d)
	}
}

// TestLevelsAreSaid: one level is that of all intervals, and stands beside them.
func TestLevelsAreSaid(t *testing.T) {
	if math.Abs(ofLevel-1.645) > 1e-3 {
		t.Errorf("%g standard deviations for %g", ofLevel, level)
	}
	for text, want := range map[string]string{
		(&Drift{-1832, -2000, 20}).String():                   "come 1832 us sooner (-20 to 2000 at 90 %)",
		(&Drift{10, 5, 15}).String():                          "10 us later (5 to 15 at 90 %)",
		(&wholeBlocks{us: 7e3, err: 1e3, whole: 40}).text(16): "come 7 ms (±1.6 at 90 %) later",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}
