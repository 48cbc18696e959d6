package fitness

import (
	"testing"

	"blis/pkg/stream"
)

// TestLargest: the largest number up to ten for which a condition holds, −1 if it never does.
func TestLargest(t *testing.T) {
	for most, want := range map[int64]int64{-1: -1, 0: 0, 3: 3, 10: 10, 99: 10} {
		if got := largest(10, func(k int64) bool { return k <= most }); got != want {
			t.Errorf("up to %d: %d, want %d", most, got, want)
		}
	}
}

// TestWatch: how many bad ones of 100 requests break a gate. p99 lies between values 98 and 99 of 0 to 99, so that two
// values above the limit are above it, and p50 between 49 and 50. A ratio of at least 0.9 allows ten misses.
func TestWatch(t *testing.T) {
	slow := func(o *stream.Outcome) { o.FirstTokenUS = 200_000 }
	limit := func(o *stream.Outcome) { o.FirstTokenUS = 100_000 }
	other := func(o *stream.Outcome) { o.FirstTokenUS, o.SLOClass = 200_000, "batch" }
	rejected := func(o *stream.Outcome) {
		o.State, o.FirstTokenUS, o.CompletedUS = stream.StateRejected, stream.Never, stream.Never
	}
	for _, c := range []struct {
		gate string
		bad  func(*stream.Outcome)
		want int // 0: none breaks it
	}{
		{"m.ttft.p99 <= 100", slow, 2}, {"m.ttft.p99 <= 100", limit, 0}, {"m.ttft.p99 < 100", limit, 2},
		{"m.ttft.p99 <= 100", other, 0}, {"m.ttft.p50 <= 100", slow, 51}, {"100 >= m.ttft.max", slow, 1},
		{"m.ttft.p99 >= 100", slow, 0}, {"m.ttft.mean <= 100", slow, 0}, {"m.ttft.p99 <= m.e2e.p99", slow, 0},
		{"m.goodput.ratio >= 0.9", slow, 11}, {"m.goodput.ratio > 0.9", slow, 10}, {"0.9 <= m.goodput.ratio", slow, 11},
		{"m.goodput.ratio <= 0.9", slow, 0}, {"m.goodput.ratio >= 0.9", other, 0},
		{"m.requests.rejected <= 3", rejected, 4}, {"m.requests.rejected < 3", rejected, 3},
		{"m.requests.rejected == 3", rejected, 4}, {"m.requests.rejected >= 3", rejected, 0},
		{"m.requests.failed <= 3", rejected, 0},
		{"m.kv.preemptions < 5 && m.requests.rejected <= 1", rejected, 2},
		{"m.kv.preemptions < 5 || m.requests.rejected <= 1", rejected, 0},
	} {
		f, err := Conditions([]string{"m.requests.timed_out <= 99", c.gate}, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, got := f.Watch(100, classes), 0
		for i := 1; i <= 100 && got == 0; i++ {
			o := &stream.Outcome{State: stream.StateCompleted, SLOClass: "critical", FirstTokenUS: 1000,
				CompletedUS: 2000, OutputTokens: 2}
			if w.Add(o) != nil {
				t.Errorf("%s: a good request breaks it", c.gate)
			}
			c.bad(o)
			o.Retried = true
			if w.Add(o) != nil {
				t.Errorf("%s: an attempt that is repeated breaks it", c.gate)
			}
			o.Retried = false
			if g := w.Add(o); g != nil {
				if got = i; g.Name != c.gate {
					t.Errorf("%s: the gate %s breaks", c.gate, g.Name)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: bad request %d breaks it, want %d", c.gate, got, c.want)
		}
	}
	f, err := Conditions([]string{"m.kv.preemptions < 5"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := f.Watch(100, classes); w != nil {
		t.Errorf("a gate that cannot be watched is: %+v", w)
	}
}
