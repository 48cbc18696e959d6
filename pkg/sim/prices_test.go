package sim

import (
	"testing"

	"blis/pkg/stream"
)

// TestMeanPrices: with steps of 100 µs for one sequence and 150 for two, half of which is paid by them, a sequence's
// share of a step is least with two: 37.5 µs at a price of 1. A token costs 2 µs, half of which is paid by it.
func TestMeanPrices(t *testing.T) {
	s := meanPrices([]float64{100, 150}, 2, 0.5)
	for k, price := range s.price {
		if s.prefill[k] != price || s.share[k] != 37.5*price || s.decode[k] != min(100+50*price, 150+37.5*price) {
			t.Errorf("price %g: a token costs %g, a share %g, a step %g", price, s.prefill[k], s.share[k], s.decode[k])
		}
	}
}

// TestTwoCallsAreParallel: calls with one name, one iteration and the same parents are, from two on; tools are none.
func TestTwoCallsAreParallel(t *testing.T) {
	v := &session{Session: stream.Session{ID: "s", Steps: []stream.SessionStep{{ID: "a"},
		{ID: "b1", Step: "b", After: []stream.Index{0}}, {ID: "b2", Step: "b", After: []stream.Index{0}},
		{ID: "b3", Step: "b", After: []stream.Index{1}}, {ID: "t", Step: "b", Tool: "x", After: []stream.Index{0}}}}}
	v.prepare(&sessionTable{})
	if v.out.Calls != 4 || v.out.Parallel != 2 {
		t.Errorf("%d calls, %d of them parallel, want 4 and 2", v.out.Calls, v.out.Parallel)
	}
	for k, want := range []bool{false, true, true, false, false} {
		if v.steps[k].parallel != want {
			t.Errorf("step %s is parallel: %v", v.Steps[k].ID, v.steps[k].parallel)
		}
	}
}
