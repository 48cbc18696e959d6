package attribution

import (
	"testing"

	"blis/pkg/stream"
)

// TestNoRejectionByEstimatesWithPools: predictive-slo does not know the queues of prefill replicas.
func TestNoRejectionByEstimatesWithPools(t *testing.T) {
	for _, pools := range []bool{false, true} {
		h := header(1)
		h.SLOClasses = []stream.SLOClass{{Name: "a", Targets: stream.Targets{TTFTMS: 100}}}
		if pools {
			d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
			d["prefill"] = map[string]any{"replicas": 1}
		}
		a := New(h)
		o := served("r", 0, 0, 0)
		a.Outcome(&o, false)
		x := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}
		if changes := x.rejectLate(); (changes == nil) != pools {
			t.Errorf("pools: %v, changes %+v", pools, changes)
		}
	}
}
