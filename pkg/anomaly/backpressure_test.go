package anomaly_test

import (
	"fmt"
	"testing"

	"blis/pkg/anomaly"
)

// route routes n requests, one a second, of which the first are held back for this long.
func (s *stage) route(n, held int, us int64, byPrefill bool) {
	for i := range n {
		e := &anomaly.Event{Kind: anomaly.Routed, At: int64(i) * 1000 * ms, Replica: anomaly.NoReplica,
			Request: &anomaly.Request{ID: fmt.Sprint("r", i)}}
		if i < held {
			e.HeldUS, e.ByPrefill = us, byPrefill
		}
		s.detect(e)
	}
	s.Close(int64(n) * 1000 * ms)
}

// TestBackpressure: 10 of 20 requests waited 150 ms, the first from 150 ms before its routing on. The episode says
// which pool is short. Nine, or waits of 99 ms, are none.
func TestBackpressure(t *testing.T) {
	for pool, byPrefill := range map[string]bool{"prefill": true, "decode": false} {
		s := newStage()
		s.route(20, 10, 150*ms, byPrefill)
		s.expect(t, anomaly.Episode{Type: "pd_backpressure", Start: -150 * ms, End: 9000 * ms, Severity: 0.5, Count: 10,
			Requests: names("r", 10), Replica: anomaly.NoReplica,
			Text: "backpressure held back 10 of 20 requests (50.0 %) for 100 ms or longer: the " + pool +
				" pool is short"})
	}
	for _, c := range []struct {
		held int
		us   int64
	}{{9, 150 * ms}, {20, 99 * ms}} {
		s := newStage()
		s.route(20, c.held, c.us, true)
		s.expect(t)
	}
}
