package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPipeline: two stages of a replica that was busy for 1000 µs computed for 1500 of 2000 µs. Replicas with a single
// stage do not count.
func TestPipeline(t *testing.T) {
	replicas := []ReplicaTotals{{Stages: 2, StageUS: 1500, BusyUS: 1000}, {BusyUS: 5000}}
	if diff := cmp.Diff(&Pipeline{StageMS: 1.5, BubbleShare: 0.25}, pipelines(replicas)); diff != "" {
		t.Error(diff)
	}
	if got := pipelines(replicas[1:]); got != nil {
		t.Errorf("without stages: %+v", got)
	}
}
