package sim

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"blis/pkg/internal/reference"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// choices observes how often each request is delayed, and its replica, by position. sent are the
// positions in order of routing.
type choices struct {
	of   map[int64][2]int64
	sent []int64
}

func (c *choices) hooks() []hook { return []hook{onSend} }

func (c *choices) observe(s *simulation, _ hook, slot int32) error {
	q := s.request(slot)
	c.of[q.position] = [2]int64{q.out.Delays, int64(q.replica)}
	c.sent = append(c.sent, q.position)
	return nil
}

// drawnPolicies decide by random numbers alone.
var drawnPolicies = policy.Bundle{
	Admission: policy.Spec{Type: "expression", Admit: `rand() < 0.3 ? "delay" : "admit"`,
		Params: map[string]any{"delay_ms": 0.02}},
	Routing: policy.Spec{Type: "expression", Score: "rand() < 0.5 ? 0.5 : rand()"},
}

// TestForksDrawTheSameNumbers: after another decision about one request, all others have the random
// numbers that they had, although steps of sessions arrive at other times and in another order.
func TestForksDrawTheSameNumbers(t *testing.T) {
	changed, reordered := 0, 0
	for seed := range uint64(200) {
		c, requests := reference.RandomSessions(seed)
		c.Scheduler, c.Preemption, c.HorizonUS, c.Replicas = "", "", reference.Never, 3
		config := clusterOf(c)
		config.Policies.Admission, config.Policies.Routing = drawnPolicies.Admission, drawnPolicies.Routing
		config.ControlPlane.MaxDelays = 100
		config.Policies.Complete()
		reader := stream.NewReader(bytes.NewReader(workloadOf(requests)))
		a, header, err := openArrivals(reader)
		must(err)
		k := &recordingFeed{feed: a}
		for more := true; more; {
			next, _, err := k.next()
			must(err)
			more = next != nil
		}
		reader.Close()
		s, _ := k.workload.start(t, config, header.SLOClasses)
		own := &choices{of: map[int64][2]int64{}}
		s.observers.add(own)
		s.events.limit = int64(seed%20) + 3
		must(s.run(func() error { return nil }))
		before := len(own.sent)
		other := &choices{of: maps.Clone(own.of)}
		f := s.fork(other)
		f.decisions.override = override{decision: s.decisions.count, candidate: 1,
			verdict: policy.Verdict{Action: policy.Delay, DelayUS: 2}}
		if s.finishForTest() != nil || f.finishForTest() != nil {
			continue // a livelock
		}
		different := 0
		for position, x := range own.of {
			if y, both := other.of[position]; both && x != y {
				different++
			}
		}
		if different > 1 {
			t.Fatalf("seed %d: %d requests had another decision after one was changed", seed, different)
		}
		changed += different
		if !slices.Equal(own.sent[before:], other.sent) {
			reordered++
		}
	}
	t.Logf("%d changed decisions, %d forks with another order", changed, reordered)
	if changed < 50 || reordered < 10 {
		t.Errorf("only %d changed decisions, %d forks with another order", changed, reordered)
	}
}
