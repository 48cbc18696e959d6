package report

import (
	"strings"
	"testing"

	"blis/pkg/attribution"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// TestReplicasWithoutRequests: a quarter of those that were always up must be idle, at 10 requests a replica.
func TestReplicasWithoutRequests(t *testing.T) {
	for _, c := range []struct {
		requests []int64
		changed  stream.Index // this replica failed
		want     string
	}{
		{[]int64{30, 20, 0, 15, 15, 0, 0, 0}, stream.NoIndex,
			"replicas: 4 of 8 got no request (main/2, 5, 6, 7); the busiest got 37.5 %.\n"},
		{[]int64{30, 19, 0, 15, 15, 0, 0, 0}, stream.NoIndex, ""},
		{[]int64{30, 20, 0, 30}, stream.NoIndex, "replicas: 1 of 4 got no request (main/2); the busiest got 37.5 %.\n"},
		{[]int64{30, 20, 0, 30}, 2, ""},
		{[]int64{30, 20, 20, 0, 30}, stream.NoIndex, ""},
		{[]int64{200, 0, 0, 0, 0, 0, 0, 0, 0, 0}, stream.NoIndex,
			"replicas: 9 of 10 got no request (main/1, 2, 3, 4, 5, 6, 7, 8 and 1 more); the busiest got 100.0 %.\n"},
	} {
		a := attribution.New(&stream.Header{Run: &stream.RunHeader{Config: map[string]any{"deployments": []any{
			map[string]any{"id": "main", "replicas": len(c.requests)}}}}})
		if !c.changed.IsZero() {
			a.ReplicaState(&stream.ReplicaState{Deployment: "main", Replica: c.changed, State: stream.ReplicaFailed})
		}
		m := &metrics.Raw{}
		for i, n := range c.requests {
			m.Replicas = append(m.Replicas, metrics.Replica{Deployment: "main", Index: stream.Index(i), Requests: n})
		}
		w := &writer{Input: &Input{Metrics: m, Analyzer: a}, limit: 1000}
		if w.idleReplicas(); string(w.text) != c.want {
			t.Errorf("%v: %q, want %q", c.requests, w.text, strings.TrimSpace(c.want))
		}
	}
}
