package calibrate

import (
	"math"
	"strings"
	"testing"

	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// TestBandHoldsItsMiddle: also where shorter and longer steps both give more, as they
// were seen to of a median.
func TestBandHoldsItsMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Float64Range(0.001, 1e6)
		is, shorter, longer := ms.Draw(t, "is"), ms.Draw(t, "shorter"), ms.Draw(t, "longer")
		low, high := bandOf(is, shorter, longer, -rapid.Float64Range(0, 10).Draw(t, "early"), rapid.Float64Range(0, 10).Draw(t, "late"))
		if middle := round(is, 5); *low > middle || *high < middle {
			t.Errorf("%g with steps as fitted, %g and %g: a band of %g to %g", is, shorter, longer, *low, *high)
		}
	})
}

// TestWaiting: of two requests that are in the queue for 30 steps, the one behind
// another's prompt found a place free, and the one that waits for blocks did not.
func TestWaiting(t *testing.T) {
	for held, want := range map[int64]float64{100: 0, 9000: 0.5} {
		p := &part{run: &run{seats: 10, replicas: 1, room: 9600}, in: []bool{true, true}}
		p.run.requests = []stream.Request{{ArrivalUS: 0, InputTokens: held, OutputTokens: 101}, {ArrivalUS: 50_000, InputTokens: held, OutputTokens: 101}}
		simulated := []seen{{ttft: 10e3, e2e: 1010e3, queue: 0}, {ttft: 310e3, e2e: 1310e3, queue: 300e3}}
		if got := p.waited(simulated); got != want {
			t.Errorf("with prompts of %d tokens %g wait for a place, want %g", held, got, want)
		}
	}
}

// TestDoubtsByHand: of a fit to batches of 30 to 50 sequences about 40, whose slope is
// known to ±10 µs, a step of 100 sequences, of 10,000 + 100·50 µs, is known to
// 60·10/15000 = 4 %, and one of 45 as well as any; with 3 % of other doubt it is 5 %.
func TestDoubtsByHand(t *testing.T) {
	r := &Report{}
	r.fit.method = "by hand"
	r.fit.Beta = [4]float64{10000, 20, 50, 0}
	r.fit.doubts[beta2] = Interval{40, 60}
	r.fit.load = load{sequences: 40, least: 30, most: 50}
	if d, err := r.doubts(load{sequences: 45}); err != nil || d.total() != 0 {
		t.Errorf("inside of what was fitted to: %v, %v", d, err)
	}
	d, err := r.doubts(load{sequences: 100})
	if err != nil || math.Abs(d.total()-0.04) > 1e-12 || !strings.Contains(d.String(), "100 sequences at a time are outside of the 30 to 50") {
		t.Errorf("outside: %g, %s", d.total(), &d)
	}
	d.add(0.03, "other")
	if math.Abs(d.total()-0.05) > 1e-12 {
		t.Errorf("both: %g", d.total())
	}
}
