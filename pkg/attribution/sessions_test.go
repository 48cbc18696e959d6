package attribution

import (
	"fmt"
	"math"
	"testing"

	"blis/pkg/stream"
)

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
