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
	compareSeeds(t, 3000, 300, reference.RandomScaling, 1620, 3602)
}

// TestReferenceOnScalingFleets is TestReferenceOnScaling with deployments that scale together: the choices of
// deployments must be equal, too.
func TestReferenceOnScalingFleets(t *testing.T) {
	compareSeeds(t, 3000, 300, reference.RandomFleets)
}

// fleetNumbers has, by deployment, the numbers in the cluster of its replicas; it is nil without a fleet.
type fleetNumbers map[string][]int

// startsOf are the numbers of the replicas at the start.
func startsOf(c *reference.Config) fleetNumbers {
	if c.Scaling == nil || len(c.Scaling.Fleet) == 0 {
		return nil
	}
	n, all := fleetNumbers{}, 0
	for k, m := range c.Scaling.Fleet {
		for range m.Start {
			n[reference.MemberName(k)] = append(n[reference.MemberName(k)], all)
			all++
		}
	}
	return n
}

// of is the number of a replica.
func (n fleetNumbers) of(deployment string, replica stream.Index) int {
	if n == nil || replica < 0 {
		return int(replica)
	}
	return n[deployment][replica]
}

// add numbers a new replica.
func (n fleetNumbers) add(deployment string, replica stream.Index) {
	if n == nil || int(replica) < len(n[deployment]) {
		return
	}
	all := 0
	for _, numbers := range n {
		all += len(numbers)
	}
	n[deployment] = append(n[deployment], all)
}

// deploymentsOf are d, or the deployments of a fleet, which are like it.
func deploymentsOf(d cluster.Deployment, c *reference.Config) (all []cluster.Deployment) {
	if c.Scaling == nil || len(c.Scaling.Fleet) == 0 {
		return []cluster.Deployment{d}
	}
	for k, m := range c.Scaling.Fleet {
		x, of := d, c.Member(k)
		x.ID, x.Replicas, x.MinReplicas, x.MaxReplicas = reference.MemberName(k), m.Start, &m.Min, m.Max
		x.Engine.MaxNumSeqs, x.Latency.BetaUS, x.Cost = of.MaxNumSeqs, of.Beta, &scale.Cost{PerGPUHour: m.Price}
		all = append(all, x)
	}
	return all
}

// setScaling converts the auto-scaler of the reference. Both pools have the same one, with bounds of their own.
func setScaling(c *cluster.Config, of *reference.Config) {
	d, s := &c.Deployments[0], of.Scaling
	if s != nil && len(s.Fleet) == 0 {
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
			"settle": s.Settle, "cancel_starting": s.Cancel, "inclusive": s.Inclusive, "check_removal": s.CheckRemoval}
		if s.Each {
			a.Params["across"] = "each"
		}
	case "predicted-load":
		a.Params = map[string]any{"predictor": "constant", "ttft_ms": s.Predict.TTFTMS, "tpot_ms": s.Predict.TPOTMS,
			"max_change": s.Predict.MaxChange, "settle": s.Settle, "cancel_starting": s.Cancel}
		if s.Predict.Kalman {
			a.Params["predictor"] = "kalman"
			a.Params["q_level"], a.Params["q_trend"] = s.Predict.Level, s.Predict.Trend
			a.Params["r"], a.Params["min_points"] = s.Predict.Noise, s.Predict.MinPoints
		}
	case "average-value":
		a.Params = map[string]any{"targets": map[string]any{"inflight": s.Target, "kv_util": 0.3, "pending": 2},
			"tolerance": s.Tolerance}
	default:
		a.Params = map[string]any{"signal": s.Signal, "target": s.Target, "tolerance": s.Tolerance}
	}
	if rule := reference.PlacementRules[s.Rule]; len(s.Fleet) > 0 {
		a.Fleet = &policy.FleetRules{Grow: rule.Grow, Shrink: rule.Shrink}
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
func readFleet(t *testing.T, r *stream.Reader, numbers fleetNumbers) string {
	t.Helper()
	switch r.Kind() {
	case stream.KindScaling:
		var x stream.Scaling
		if err := r.Decode(&x); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d of %d: advice %d, desired %d", x.AtUS, x.Current, x.Recommended, x.Desired)
	case stream.KindScalingChoice:
		var x stream.ScalingChoice
		if err := r.Decode(&x); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s: %s, of %d", x.AtUS, x.Deployment, x.Change, len(x.Considered))
	case stream.KindReplicaState:
		var x stream.ReplicaState
		if err := r.Decode(&x); err != nil {
			t.Fatal(err)
		}
		name := "replica"
		if x.Deployment == "main.prefill" {
			name = "prefill replica"
		}
		if x.State == stream.ReplicaProvisioning {
			numbers.add(x.Deployment, x.Replica)
		}
		return fmt.Sprintf("%d %s %d %s with %d", x.AtUS, name, numbers.of(x.Deployment, x.Replica),
			x.State, x.Inflight)
	}
	return ""
}
