package attribution

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"blis/pkg/stream"
)

// TestTimes: times that fit and those that do not, before the arrival or more than 71 minutes after it, are what they
// were set to, in any order.
func TestTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &request{from: stream.Micros(rapid.Int64Range(0, 1<<53).Draw(t, "arrival")), incidents: &noIncidents,
			times: noTimes}
		want := [moments]stream.Micros{never, never, never, never, never, never}
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			m := moment(rapid.IntRange(0, int(moments)-1).Draw(t, "moment"))
			after := rapid.OneOf(rapid.Int64Range(0, 1e6), rapid.Int64Range(math.MaxUint32-2, math.MaxUint32+2),
				rapid.Int64Range(0, 1<<60), rapid.Int64Range(-int64(r.from), 0))
			want[m] = rapid.OneOf(rapid.Just(never), rapid.Map(after, func(after int64) stream.Micros {
				return r.from + stream.Micros(after)
			})).Draw(t, "at")
			r.set(m, want[m])
		}
		for m := range moments {
			if got := r.at(m); got != want[m] {
				t.Errorf("moment %d is %d, want %d", m, got, want[m])
			}
		}
	})
	if noIncidents != (incidents{}) {
		t.Errorf("shared by all requests: %+v", noIncidents)
	}
}
