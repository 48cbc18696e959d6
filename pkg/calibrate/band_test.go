package calibrate

import (
	"math"
	"strings"
	"testing"
)

// TestDoubtsByHand: of a fit to batches of 30 to 50 sequences about 40, whose slope is
// known to ±10 µs, a step of 100 sequences, of 10,000 + 100·50 µs, is known to
// 60·10/15000 = 4 %, and one of 45 as well as any; with 3 % of other doubt it is 5 %.
func TestDoubtsByHand(t *testing.T) {
	r := &Report{}
	r.fit.method = "by hand"
	r.fit.Beta = [4]float64{10000, 20, 50, 0}
	r.fit.doubts[5] = Interval{40, 60}
	r.fit.load = load{sequences: 40, least: 30, most: 50}
	if d := r.doubts(load{sequences: 45}); d.total() != 0 {
		t.Errorf("inside of what was fitted to: %v", d)
	}
	d := r.doubts(load{sequences: 100})
	if math.Abs(d.total()-0.04) > 1e-12 || !strings.Contains(d.String(), "100 sequences at a time are outside of the 30 to 50") {
		t.Errorf("outside: %g, %s", d.total(), &d)
	}
	d.add(0.03, "other")
	if math.Abs(d.total()-0.05) > 1e-12 {
		t.Errorf("both: %g", d.total())
	}
}
