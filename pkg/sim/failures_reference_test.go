package sim

import (
	"fmt"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/scale"
)

// TestReferenceOnFailures is TestReference with replicas that fail, and with an auto-scaler or flow control.
func TestReferenceOnFailures(t *testing.T) {
	compareSeeds(t, 3000, 300, reference.RandomFailures)
}

// setFailures converts the failures of the reference.
func setFailures(c *cluster.Config, f *reference.Failures) {
	if f == nil {
		return
	}
	us := func(n int64) scale.Duration { return scale.Duration(fmt.Sprintf("%dus", n)) }
	inflight := map[bool]string{false: "fail", true: "redirect"}
	c.Failures = &cluster.Failures{Restart: scale.DefaultRestart()}
	r := &c.Failures.Restart
	r.Load = scale.Delay{Type: "constant", Params: map[string]any{"value": f.Start.LoadUS}}
	r.Warmup = scale.WarmupConfig{Curve: f.Start.Curve, Duration: us(f.Start.WarmupUS), Factor: f.Start.Factor}
	r.RouteWhileWarming = !f.Start.WarmingWaits
	for _, e := range f.Events {
		x := cluster.Failure{At: us(e.AtUS), Kind: cluster.FailureDown, Deployment: "main", Replica: e.Replica,
			Inflight: inflight[e.Redirect]}
		switch {
		case e.Factor > 0:
			x.Kind, x.Factor, x.Inflight = cluster.FailureSlow, e.Factor, ""
		case e.Cut:
			x.Kind, x.Inflight = cluster.FailurePartition, ""
		}
		if e.Prefill {
			x.Deployment = "main.prefill"
		}
		if e.ForUS != reference.Never {
			x.For = us(e.ForUS)
		}
		c.Failures.Events = append(c.Failures.Events, x)
	}
	if f.ProbeUS > 0 {
		c.ControlPlane.HealthCheck = &cluster.HealthCheck{Interval: us(f.ProbeUS), Failures: f.Probes}
	}
}
