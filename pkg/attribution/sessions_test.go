package attribution

import (
	"fmt"
	"math"
	"testing"

	"blis/pkg/stream"
)

// Calls that are there before the first one ends are parallel: their last one ends 30 ms after the mean end. Turns of a
// chat, which follow one another, are not, and neither is a call that arrives as another one ends.
func TestParallelCallsByHand(t *testing.T) {
	for _, c := range []struct {
		calls [][2]int64 // arrival and end in ms
		joins int64
		ms    float64
	}{{[][2]int64{{0, 100}, {0, 130}, {50, 130}, {60, 160}}, 1, 30}, {[][2]int64{{0, 100}, {100, 200}}, 0, 0},
		{[][2]int64{{0, 100}, {99, 200}}, 1, 50}, {[][2]int64{{0, 100}}, 0, 0},
		{[][2]int64{{0, 100}, {5000, 5100}, {9000, 9100}}, 0, 0}} {
		a := New(header(1))
		for i, at := range c.calls {
			o := served(fmt.Sprint(i), 0, at[0], 1)
			o.ArrivalUS, o.CompletedUS = stream.Micros(1000*at[0]), stream.Micros(1000*at[1])
			o.Session, o.Step = "s", "a"
			a.Outcome(&o, false)
		}
		a.Session(&stream.SessionOutcome{State: stream.StateCompleted, CompletedUS: 10_000_000})
		if s := a.sessionTime(); s.Joins != c.joins || s.JoinMS != c.ms || s.Join != c.ms/10_000 {
			t.Errorf("%v: %+v", c.calls, s)
		}
	}
}

// Eight sessions take 100, 200, … 800 ms, 3600 in sum. Tools take 10 ms in each, but 300 in the slowest two: 660 ms.
// Each has a call that waits 40 or, where starved is true, 300 ms.
func TestSessionTimeByHand(t *testing.T) {
	for _, starved := range []bool{false, true} {
		a := New(header(1))
		for i := range int64(8) {
			tools, wait := int64(10_000), int64(40)
			if i >= 6 {
				tools = 300_000
			}
			if starved {
				wait = 300
			}
			o := served(fmt.Sprint(i), 0, 0, wait)
			o.Session, o.Step = fmt.Sprint("s", i), "a"
			a.Outcome(&o, false)
			a.Session(&stream.SessionOutcome{State: stream.StateCompleted, ToolUS: tools,
				CompletedUS: stream.Micros(100_000 * (i + 1))})
		}
		s, cause, waiting := a.sessionTime(), "", 320./3600
		if starved {
			cause, waiting = "starved_sessions", 2400./3600
		}
		if math.Abs(s.Tools-660./3600) > 1e-9 || s.SlowToolMS != 300 || s.OtherToolMS != 10 ||
			math.Abs(s.Waiting-waiting) > 1e-9 || s.Cause() != cause {
			t.Errorf("%+v, cause %q", s, s.Cause())
		}
	}
	if none := (*SessionTime)(nil).Cause(); none != "" {
		t.Error(none)
	}
}
