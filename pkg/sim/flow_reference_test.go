package sim

import (
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/policy"
)

// TestReferenceOnFlow is TestReference with flow control.
func TestReferenceOnFlow(t *testing.T) {
	compareSeeds(t, 600, 100, reference.RandomFlow, 35, 36, 82, 88, 309)
}

// setFlow sets flow control.
func setFlow(one *cluster.Config, f *reference.Flow) {
	if f == nil {
		return
	}
	one.Policies.Priority.Type = "slo-based"
	one.ControlPlane.FlowControl = &cluster.FlowControl{Order: f.Order, Fairness: f.Fairness, PriorityBands: f.Bands,
		Capacity: f.Capacity, TTLUS: f.TTLUS, Saturation: f.Saturation, Detector: specOf(f.Detector),
		UsageLimit: specOf(f.Limit)}
}

// specOf converts a detector or a limit.
func specOf(p *reference.Plugin) *policy.Spec {
	if p == nil {
		return nil
	}
	s := &policy.Spec{Type: p.Name, Params: map[string]any{}}
	for name, x := range p.Numbers {
		s.Params[name] = x
	}
	for name, word := range p.Words {
		s.Params[name] = word
	}
	return s
}
