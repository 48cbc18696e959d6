package attribution

import (
	"math"
	"testing"

	"blis/pkg/stream"
)

// The choice leads by 0.9 from its prefix: 3 * (0.8 - 0.5). Its queue costs it 2 * (0.25 - 0.5) = -0.5 against main/1
// and 2 * (0.25 - 1) = -1.5 against main/2, whose prefix is 0.8 shorter: a lead of 2.4. The first is the better choice
// from the weight 0.9/0.25 = 3.6 on, the second from 2.4/0.75 = 3.2 on. A candidate that was excluded does not count.
func TestFlipWeightByHand(t *testing.T) {
	h := header(4)
	config := h.Run.Config.(map[string]any)
	config["policies"].(map[string]any)["routing"] = map[string]any{"type": "weighted",
		"params": map[string]any{"prefix-affinity": 3.0, "queue-depth": 2.0}}
	a := New(h)
	candidate := func(replica stream.Index, prefix, queue float64) stream.Candidate {
		return stream.Candidate{Deployment: "main", Replica: replica, Terms: []float64{prefix, queue},
			Score: stream.Number(3*prefix + 2*queue)}
	}
	d := &stream.Decision{ID: "d", Stage: stream.StageRouting, Request: "r", Deployment: "main", Replica: 0,
		Scorers: []string{"prefix-affinity", queueScorer}, Considered: []stream.Candidate{candidate(0, 0.8, 0.25),
			candidate(1, 0.5, 0.5), candidate(2, 0, 1), candidate(3, 0.7, 1)}}
	d.Considered[3].Filtered = true
	a.Decision(d)
	r := a.requests.at(0)
	if math.Abs(r.seen().flipWeight-3.2) > 1e-12 {
		t.Errorf("the weight is %v", r.seen().flipWeight)
	}
	x := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}
	// A little above, with two digits.
	if c := x.flipQueues(); len(c) != 1 || c[0].Path != "policies.routing.params.queue-depth" || c[0].To != 3.3 ||
		c[0].From != 2.0 {
		t.Errorf("%+v", c)
	}
	none := *r.seen()
	none.flipWeight, r.derived = 0, &derived{unpacked: &none}
	if c := x.flipQueues(); len(c) != 2 { // as without it: queues weigh like prefixes
		t.Errorf("%+v", c)
	}
}
