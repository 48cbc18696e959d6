package sim

import (
	"bytes"
	"context"
	"testing"

	"blis/pkg/internal/reference"
)

// TestWaitForCapacity: a request every 2 s finds no replica, waits for the next look, at a multiple of 1 s, and for
// 300 ms until the replica is there; it is gone at the next look. Requests wait only for capacity. The time of its
// replicas costs a GPU each, from the look to the look that removes it, for 5 tokens within no target.
func TestWaitForCapacity(t *testing.T) {
	c, requests, err := reference.ParseStory(`cluster beta=5000,0,0
flow
scale min=0 interval=1000000 target=2 provision=100000 load=200000
arrive id=a at=1500000 in=4 out=1 ttft=700
arrive id=b at=3600000 in=4 out=1 ttft=800
arrive id=c at=5400000 in=4 out=1`)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := runCluster(context.Background(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)), &out,
		Options{Trace: "decisions"}); err != nil {
		t.Fatal(err)
	}
	m := metricsOf(t, out.Bytes())
	// a waits from 1.5 s to 2.3 s, b from 3.6 s to 4.3 s, c from 5.4 s to 6.3 s: 0.8, 0.7 and 0.9 s.
	if m.Scale == nil || m.Scale.WaitForCapacityMS == nil || *m.Scale.WaitForCapacityMS != 800 {
		t.Errorf("scale: %+v", m.Scale)
	}
	// b alone is within its target: 700 ms and a step of 5 ms. GPUs are held from the first arrival on, from 2 s to
	// 3 s, from 4 s to 5 s, and from 6 s to the end at 6.305 s: 2.305 s for 5 tokens.
	if m.Cost.PerMillionWithinSLO == nil || *m.Cost.PerMillionWithinSLO != 2_305_000.0/5 {
		t.Errorf("cost: %+v", m.Cost)
	}
}
