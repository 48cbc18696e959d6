package policy

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// FuzzBundle: no bundle crashes, and one that builds decides.
func FuzzBundle(f *testing.F) {
	for _, text := range []string{
		`{"routing": {"type": "weighted", "params": {"prefix-affinity": 3}}, "admission": {"type": "slo-gated"}}`,
		`{"routing": {"type": "expression", "score": "-replica.queue_depth", "filter": "replica.kv_util < 0.9"}}`,
		`{"routing": {"type": "llm-d", "of": [{"type": "queue-scorer"}, {"type": "max-score-picker"}]}}`,
		`{"priority": {"type": "tree", "root": {"if": "rand() < 0.5", "then": {"value": 3}, "else": {"value": 2}}}}`,
		`{"admission": {"type": "chain", "of": [{"type": "rate-limit"}]}, "autoscale": {"type": "threshold"}}`,
		`{"routing": {"type": "expression", "score": "state.x", "state": {"x": {"init": 1, "next": "state.x + 1"}}}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b Bundle
		if json.Unmarshal([]byte(text), &b) != nil {
			return
		}
		b.Complete()
		plane, err := Build(&b, testEnv)
		if err != nil {
			return
		}
		random := rand.New(rand.NewPCG(1, 1))
		for i := range 5 {
			v, l := randomView(random, int64(i)*1000)
			for _, stage := range []string{"admission", "priority", "routing", "scheduler", "preemption"} {
				if c := plane.decide(stage, v, l).Candidate; c < 0 || c >= len(v.Replicas) {
					t.Fatalf("%q: %s: candidate %d of %d", text, stage, c, len(v.Replicas))
				}
			}
		}
	})
}
