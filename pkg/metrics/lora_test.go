package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoRA: the loads, copies and waits of replicas are added. Replicas that copied no adapter have no metrics of them.
func TestLoRA(t *testing.T) {
	replicas := []ReplicaTotals{{AdapterLoads: 2, AdapterCopies: 5, AdapterUS: 1500}, {},
		{AdapterLoads: 1, AdapterCopies: 3, AdapterUS: 250}}
	if diff := cmp.Diff(&LoRA{Loads: 3, Copies: 8, LoadMS: 1.75}, loras(replicas)); diff != "" {
		t.Error(diff)
	}
	if got := loras(replicas[1:2]); got != nil {
		t.Errorf("without adapters: %+v", got)
	}
}
