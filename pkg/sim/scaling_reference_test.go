package sim

import (
	"fmt"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/policy"
	"blis/pkg/scale"
	"blis/pkg/stream"
)

// TestReferenceOnScaling is TestReference with an auto-scaler: its looks and the states of replicas must be equal too.
func TestReferenceOnScaling(t *testing.T) {
	compareSeeds(t, 3000, 300, reference.RandomScaling, 1620)
}

// setScaling converts the auto-scaler of the reference. Both pools have the same one, with bounds of their own.
func setScaling(c *cluster.Config, of *reference.Config) {
	d, s := &c.Deployments[0], of.Scaling
	if s != nil {
		d.MinReplicas, d.MaxReplicas = &s.Min, s.Max
	}
	if x := of.Disaggregation; x != nil && x.Pool.Scaling != nil {
		s = x.Pool.Scaling
		d.Prefill.MinReplicas, d.Prefill.MaxReplicas = &s.Min, s.Max
	}
	if s == nil {
		return
	}
	us := func(n int64) scale.Duration { return scale.Duration(fmt.Sprintf("%dus", n)) }
	constant := func(n int64) scale.Delay {
		return scale.Delay{Type: "constant", Params: map[string]any{"value": n}}
	}
	limits := func(of []reference.ScaleLimit) (all []scale.LimitConfig) {
		for _, l := range of {
			all = append(all, scale.LimitConfig{Replicas: l.Replicas, Percent: l.Percent, Period: us(l.PeriodUS)})
		}
		return all
	}
	a := &policy.Autoscale{Type: s.Policy, Config: scale.DefaultConfig()}
	switch s.Policy {
	case "queue-depth":
		a.Params = map[string]any{"target": s.Target, "tolerance": s.Tolerance}
	case "oscillator":
		a.Params = map[string]any{"step": s.Step}
	case "slo-attainment":
		a.Params = map[string]any{"target": s.Up, "down": s.Down, "step": s.Step}
	case "expression":
		a.Desired = reference.Formulas[s.Formula].Text
	case "tree":
		a.Root = &policy.Node{If: "deployment.replicas < 0", Then: &policy.Node{Value: 1},
			Else: &policy.Node{Value: reference.Formulas[s.Formula].Text}}
	case "threshold":
		a.Params = map[string]any{"signal": s.Signal, "up": s.Up, "down": s.Down, "step": s.Step,
			"settle": s.Settle}
		if s.Each {
			a.Params["across"] = "each"
		}
	case "average-value":
		a.Params = map[string]any{"targets": map[string]any{"inflight": s.Target, "kv_util": 0.3, "pending": 2},
			"tolerance": s.Tolerance}
	default:
		a.Params = map[string]any{"signal": s.Signal, "target": s.Target, "tolerance": s.Tolerance}
	}
	a.Interval, a.Cooldown = us(s.IntervalUS), us(s.CooldownUS)
	if s.Trigger > 0 {
		a.Interval = ""
		a.Trigger = &scale.Trigger{When: reference.Conditions[s.Trigger].Text, For: us(s.HoldUS),
			CheckEvery: us(s.IntervalUS)}
	}
	a.Activation = s.Activation
	a.Stabilization = scale.Stabilization{Up: us(s.UpWindowUS), Down: us(s.DownWindowUS)}
	a.Limits = scale.Limits{Up: limits(s.UpLimits), Down: limits(s.DownLimits), Select: s.Select}
	a.Actuation.Provision, a.Actuation.Load = constant(s.ProvisionUS), constant(s.LoadUS)
	a.Actuation.Warmup = scale.WarmupConfig{Curve: s.Curve, Duration: us(s.WarmupUS), Factor: s.Factor}
	a.Actuation.RouteWhileWarming = !s.WarmingWaits
	a.Actuation.Drain = scale.DrainConfig{Mode: scale.DrainWait, Timeout: us(s.TimeoutUS)}
	if s.Immediate {
		a.Actuation.Drain.Mode = scale.DrainImmediate
	}
	if s.Redirect {
		a.Actuation.Drain.Mode = scale.DrainRedirect
	}
	c.Policies.Autoscale = a
}

// readFleet returns a record of the auto-scaler as the reference writes it, "" for others.
func readFleet(t *testing.T, r *stream.Reader) string {
	t.Helper()
	switch r.Kind() {
	case stream.KindScaling:
		var x stream.Scaling
		if err := r.Decode(&x); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d of %d: advice %d, desired %d", x.AtUS, x.Current, x.Recommended, x.Desired)
	case stream.KindReplicaState:
		var x stream.ReplicaState
		if err := r.Decode(&x); err != nil {
			t.Fatal(err)
		}
		name := "replica"
		if x.Deployment == "main.prefill" {
			name = "prefill replica"
		}
		return fmt.Sprintf("%d %s %d %s with %d", x.AtUS, name, x.Replica, x.State, x.Inflight)
	}
	return ""
}
