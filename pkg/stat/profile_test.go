package stat

import (
	"math"
	"testing"
)

// TestProfileByHand: one request decodes from 0 to 4, another from 2 to 6.
func TestProfileByHand(t *testing.T) {
	p := Spans{{0, 4, 1}, {2, 6, 1}, {3, 3, 9}, {math.NaN(), 1, 1}}.Profile()
	for _, c := range []struct{ from, to, want float64 }{
		{0, 4, 1.5}, {0, 6, 8.0 / 6}, {3, 4, 2}, {5, 7, 0.5}, {-2, 2, 0.5},
	} {
		if got := p.Mean(c.from, c.to); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("mean from %g to %g is %g, want %g", c.from, c.to, got, c.want)
		}
	}
	if p.Peak() != 2 || !math.IsNaN(p.Mean(3, 3)) {
		t.Errorf("peak %g", p.Peak())
	}
}
