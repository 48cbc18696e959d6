package attribution

import (
	"testing"

	"pgregory.net/rapid"
)

// TestMetReplicasAreMeasuredAlike: what is found of the requests of a replica without losses is what is found of all,
// or they are not measured, which is only where some lack times.
func TestMetReplicasAreMeasuredAlike(t *testing.T) {
	measured := 0
	rapid.Check(t, func(t *rapid.T) {
		const replicas = 2
		h := withCapacity(replicas, 4, 100)
		h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)["latency"] = map[string]any{
			"alpha_us": []any{0, 0, 30, 40 * rapid.IntRange(0, 1).Draw(t, "for each sequence")}}
		a := New(h)
		for i := range rapid.IntRange(1, 15).Draw(t, "requests") {
			o := drawOutcome(t, i, replicas)
			a.Outcome(&o, false)
		}
		a.derive()
		a.computeStats()
		a.measureReplicas()
		rates := a.stats.prefillRates
		for n, requests := range a.byReplica() {
			var outputs []uint32
			for _, r := range requests {
				outputs = append(outputs, r.outputUS)
				r.outputUS, r.shared = a.topology.deploymentOf(r.replica).outputUS(0), true
			}
			var m metReplica
			a.stats.prefillRates = make([]float64, replicas)
			if !m.measure(a, int32(n), requests, &a.speedUnits()[n], &samplesByCompany{}) {
				continue
			}
			measured++
			if a.stats.prefillRates[n] != rates[n] {
				t.Fatalf("replica %d computes %v tokens/us, of all %v", n, a.stats.prefillRates[n], rates[n])
			}
			for i, r := range requests {
				if r.outputUS != outputs[i] || a.completed(r) && m.requests[i].decoding != r.decoding() {
					t.Fatalf("request %d %+v: %+v with %d us, of all %+v with %d us", i, r.times,
						m.requests[i].decoding, r.outputUS, r.decoding(), outputs[i])
				}
			}
		}
	})
	if measured < 100 {
		t.Errorf("only %d replicas were measured", measured)
	}
}
