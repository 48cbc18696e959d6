package sim

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"blis/pkg/internal/reference"
)

// TestScalingContradictions: what cannot be combined with auto-scaling yet is an error.
func TestScalingContradictions(t *testing.T) {
	c, requests := reference.RandomScaling(1)
	for _, o := range []Options{{Trace: "decisions", Clairvoyant: "latency"},
		{Trace: "decisions", Counterfactual: Counterfactual{top: 1, text: "1"}}} {
		err := runCluster(context.Background(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)),
			new(bytes.Buffer), o)
		if err == nil || !strings.Contains(err.Error(), "needs a constant number of replicas") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}
