package anomaly_test

import (
	"fmt"
	"testing"

	"blis/pkg/anomaly"
)

const (
	second = 1_000_000
	minute = 60 * second
)

// scale adds or removes replicas of deployment 0.
func (s *stage) scale(at int64, change int32) {
	s.detect(&anomaly.Event{Kind: anomaly.Scaled, At: at, Change: change})
}

// TestScaleOscillation: of the actions at 0, 1, 2, 20, 21, 85 and 200 min those at 1, 2 and 21 undo the one before; the
// first of them to the last has 4 actions, of which 3 undo. A single one is no oscillation.
func TestScaleOscillation(t *testing.T) {
	s := newStage()
	for _, a := range []struct {
		at     int64
		change int32
	}{{0, 1}, {1, -1}, {2, 2}, {20, 1}, {21, -1}, {85, -1}, {200, 1}, {205, -1}} {
		s.scale(a.at*minute, a.change)
	}
	s.Close(300 * minute)
	s.expect(t, anomaly.Episode{Type: "scale_oscillation", Start: 1 * minute, End: 21 * minute, Severity: 0.75,
		Count: 3, Replica: anomaly.NoReplica, OfDeployment: true,
		Text: "3 of 4 changes of the number of replicas undid one of the last 10 minutes"})
}

// TestNoScaleOscillation: growing, and shrinking 10 minutes later, is none.
func TestNoScaleOscillation(t *testing.T) {
	s := newStage()
	for i := range int64(12) {
		s.scale(i*minute, 1)
	}
	for i := range int64(12) {
		s.scale((21+i)*minute, -1)
	}
	s.Close(60 * minute)
	s.expect(t)
	s = newStage()
	for i := range int64(6) {
		s.scale(i*10*minute, int32(1-2*(i%2)))
	}
	s.Close(60 * minute)
	s.expect(t)
}

// slow adds n steps of a replica that take factor times 10 ms and end at a time.
func (s *stage) slow(until int64, replica int32, n, percent int64) {
	s.detect(&anomaly.Event{Kind: anomaly.Slowed, At: until, Replica: replica, Slow: anomaly.Slow{
		From: until - n*100*percent, Until: until, Steps: n, NormalUS: n * 10_000, ActualUS: n * 100 * percent}})
}

// TestReplicaSlow: 30 steps of 10 ms at three times their length are an episode with the requests that finish in it.
// 19 steps are none, nor are 1,000 that take 10 % longer. A pause of more than a minute ends an episode.
func TestReplicaSlow(t *testing.T) {
	s := newStage()
	s.slow(10*second, 3, 10, 300)
	s.slow(10*second, 4, 19, 300)
	s.slow(10*second, 5, 1000, 110)
	s.slow(20*second, 3, 20, 300)
	for i, id := range []string{"a", "b"} {
		s.detect(&anomaly.Event{Kind: anomaly.Finished, At: int64(20+i) * second, Replica: 3,
			Request: &anomaly.Request{ID: id}})
	}
	s.slow(100*second, 3, 40, 200)
	s.Close(200 * second)
	s.expect(t, anomaly.Episode{Type: "replica_slow", Start: 9_700_000, End: 20 * second,
		Severity: 1 - float64(300_000)/900_000, Count: 30, Requests: []string{"a"}, Replica: 3,
		Text: "30 steps took 3.00 times as long as they should"},
		anomaly.Episode{Type: "replica_slow", Start: 99_200_000, End: 100 * second, Severity: 0.5, Count: 40,
			Replica: 3, Text: "40 steps took 2.00 times as long as they should"})
}

// TestCapacityLost: two of four replicas are down for 5 s, one for 12 s, from 3 s on. A loss of 9 s or of one replica
// of 16 is none.
func TestCapacityLost(t *testing.T) {
	s := newStage()
	event := func(kind anomaly.EventKind, at int64, deployment, replicas int32) {
		s.detect(&anomaly.Event{Kind: kind, At: at * second, Deployment: deployment, Replicas: replicas})
	}
	event(anomaly.Lost, 3, 0, 4)
	for i := range 25 {
		s.detect(&anomaly.Event{Kind: anomaly.Finished, At: 4 * second,
			Request: &anomaly.Request{ID: fmt.Sprint("r", i), Failed: i%2 == 0}})
	}
	event(anomaly.Lost, 5, 0, 4)
	event(anomaly.Lost, 6, 1, 16)
	event(anomaly.Restored, 10, 0, 0)
	event(anomaly.Restored, 15, 0, 0)
	event(anomaly.Lost, 20, 0, 4)
	event(anomaly.Restored, 29, 0, 0)
	s.Close(300 * second)
	var failed []string
	for i := 0; i < 25; i += 2 {
		failed = append(failed, fmt.Sprint("r", i))
	}
	s.expect(t, anomaly.Episode{Type: "capacity_lost", Start: 3 * second, End: 15 * second, Severity: 0.5, Count: 2,
		Requests: failed, Replica: anomaly.NoReplica, OfDeployment: true,
		Text: "2 of 4 replicas were down; 13 requests failed meanwhile"})
}

// TestCapacityLostListsTwentyRequests: of more failed requests all count, and the first 20 are listed.
func TestCapacityLostListsTwentyRequests(t *testing.T) {
	s := newStage()
	s.detect(&anomaly.Event{Kind: anomaly.Lost, At: second, Replicas: 2})
	var first []string
	for i := range 22 {
		id := fmt.Sprint("r", i)
		s.detect(&anomaly.Event{Kind: anomaly.Finished, At: 2 * second,
			Request: &anomaly.Request{ID: id, Failed: true}})
		if i < 20 {
			first = append(first, id)
		}
	}
	s.detect(&anomaly.Event{Kind: anomaly.Restored, At: 21 * second})
	s.Close(300 * second)
	s.expect(t, anomaly.Episode{Type: "capacity_lost", Start: second, End: 21 * second, Severity: 0.5, Count: 1,
		Requests: first, Replica: anomaly.NoReplica, OfDeployment: true,
		Text: "1 of 2 replicas were down; 22 requests failed meanwhile"})
}
