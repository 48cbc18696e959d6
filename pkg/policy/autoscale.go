package policy

import "blis/pkg/scale"

// Autoscale is the policy that recommends numbers of replicas, and what follows from its recommendations.
type Autoscale struct {
	// Preset is one of AutoscalePresets, whose values hold where a file gives no others.
	Preset string `yaml:"preset" json:"preset,omitempty"`
	// Type is the name of a built-in policy with its Params, or expression with Desired, starlark with Program or tree
	// with Root, as in Spec.
	Type    string              `yaml:"type" json:"type"`
	Params  map[string]any      `yaml:"params" json:"params,omitempty"`
	Desired string              `yaml:"desired" json:"desired,omitempty"`
	Program string              `yaml:"program" json:"program,omitempty"`
	Root    *Node               `yaml:"root" json:"root,omitempty"`
	State   map[string]Variable `yaml:"state" json:"state,omitempty"`
	// Fleet scales the deployments of one model together; nil scales each on its own.
	Fleet        *FleetRules `yaml:"fleet" json:"fleet,omitempty"`
	scale.Config `yaml:",inline"`
}

// spec is the policy itself.
func (a *Autoscale) spec() *Spec {
	return &Spec{Type: a.Type, Params: a.Params, Desired: a.Desired, Program: a.Program, Root: a.Root, State: a.State}
}

// Recommendation is a number of replicas, with the quantity that decided.
type Recommendation struct {
	Replicas int
	Reason   Reason
}

// Autoscaler recommends how many replicas a deployment has. Each deployment has its own.
type Autoscaler interface {
	Policy
	Recommend(*Fleet) Recommendation
	Clone() Autoscaler
}

// autoscalers are the auto-scaling policies.
func autoscalers() table[Autoscaler] {
	type kind = policyKind[Autoscaler]
	return table[Autoscaler]{
		{Name: "target-utilization",
			Doc:   "keeps the mean of a signal at a target, as Kubernetes' Horizontal Pod Autoscaler does",
			Value: kind{params: targetUtilizationParams, build: newTargetUtilization}},
		{Name: "queue-depth",
			Doc:   "keeps the requests that wait, in replicas and in flow control, at a target for each replica",
			Value: kind{params: queueTargetParams, build: newQueueTarget}},
		{Name: "average-value",
			Doc:   "keeps totals of signals at targets for each replica, as KEDA's metrics of type AverageValue do",
			Value: kind{params: averageParams, build: newAverageValue}},
		{Name: "threshold",
			Doc:   "adds replicas while the mean of a signal is above a limit, and removes them below another",
			Value: kind{params: thresholdParams, build: newThreshold}},
		{Name: "slo-attainment",
			Doc:   "adds replicas while SLO targets are missed, and removes them while they are met on idle replicas",
			Value: kind{params: attainmentParams, build: newAttainment}},
		{Name: "predicted-load",
			Doc:   "predicts the requests of the next interval, and divides by what a replica serves within latencies",
			Value: kind{params: predictedLoadParams, build: newPredictedLoad}},
		{Name: "expression", Doc: "desired is a CEL number, which is rounded up",
			Value: kind{build: newReplicasExpression, composed: true}},
		{Name: "starlark", Doc: "program in Starlark: desired(…) returns the number, which is rounded up",
			Value: kind{build: newReplicasProgram, composed: true}},
		{Name: "tree", Doc: "a decision tree; leaves are numbers, CEL numbers or policies",
			Value: kind{build: newReplicasTree, composed: true}},
		{Name: "oscillator", Doc: "adds and removes replicas in turn",
			Value: kind{params: oscillatorParams, build: newOscillator, pathological: true}},
	}
}

// fleetSignals are the signals of a replica that auto-scaling policies average.
var fleetSignals = []struct {
	name  string
	needs Needs
	of    func(*Replica) float64
}{
	{"kv_util", needKVUtil, func(r *Replica) float64 { return r.KVUtil }},
	{"utilization", NeedRunning, slotsInUse},
	{"queue_depth", NeedQueueDepth, func(r *Replica) float64 { return float64(r.QueueDepth) }},
	{"running", NeedRunning, func(r *Replica) float64 { return float64(r.Running) }},
	{"inflight", 0, func(r *Replica) float64 { return float64(r.Inflight) }},
	{"kv_demand", needKVUtil | NeedPrefillTokens, func(r *Replica) float64 {
		return r.KVUtil + float64(r.Stats.PrefillTokens)/float64(r.Stats.KVTokens)
	}},
}

// fleetSignal is the parameter that names one.
func fleetSignal(initial string) Param {
	var names []string
	for _, s := range fleetSignals {
		names = append(names, s.name)
	}
	return Param{Name: "signal", Kind: Choose, Choices: names, Default: initial,
		Doc: "signal of each replica; utilization is the share of its batch slots in use, kv_demand that of its KV " +
			"blocks in use and of those for prompts without a first token"}
}

// meanSignal is the mean of a signal over the replicas that serve.
type meanSignal struct {
	needs
	name   string // of its mean
	of     func(*Replica) float64
	values []float64 // scratch
}

func newMeanSignal(name string) meanSignal {
	for _, s := range fleetSignals {
		if s.name == name {
			return meanSignal{needs: needs(s.needs), name: "mean " + s.name, of: s.of}
		}
	}
	panic("policy: no signal " + name)
}

// read reads the values of all replicas and returns their mean, 0 without any.
func (m *meanSignal) read(f *Fleet) (mean float64) {
	m.values = m.values[:0]
	sum := 0.0
	for i := range f.Replicas {
		x := m.of(&f.Replicas[i])
		m.values = append(m.values, x)
		sum += x
	}
	return sum / float64(max(1, len(m.values)))
}

func toleranceParam() Param {
	return Param{Name: "tolerance", Kind: Number, Min: 0, Max: 1, Search: [2]float64{0, 0.3}, Default: 0.1,
		Doc: "part of the target by which the signal may differ without a change"}
}

var targetUtilizationParams = []Param{
	fleetSignal("kv_util"),
	{Name: "target", Kind: Number, Min: 1e-6, Max: 1e6, Search: [2]float64{0.2, 0.9}, Default: 0.6,
		Doc: "mean of the signal"},
	toleranceParam(),
}

// targetUtilization is scale.Target.ForMean.
type targetUtilization struct {
	meanSignal
	target scale.Target
}

func newTargetUtilization(b *builder, s *Spec) Autoscaler {
	v := b.params(s, targetUtilizationParams)
	return &targetUtilization{newMeanSignal(v.choice("signal")),
		scale.Target{Value: v.number("target"), Tolerance: v.number("tolerance")}}
}

func (t *targetUtilization) Recommend(f *Fleet) Recommendation {
	mean := t.read(f)
	n := t.target.ForMean(&scale.Fleet{Values: t.values, Loading: f.Loading, Provisioning: f.Provisioning})
	return Recommendation{n, Reason{t.name, mean, "for", t.target.Value}}
}

func (t *targetUtilization) Clone() Autoscaler { c := *t; c.values = nil; return &c }

var queueTargetParams = []Param{
	{Name: "target", Kind: Number, Unit: "requests", Min: 1e-3, Max: 1e6, Search: [2]float64{1, 50}, Default: 10.0,
		Doc: "waiting requests for each replica"},
	toleranceParam(),
}

// queueTarget is scale.Target.ForTotal.
type queueTarget struct {
	needs
	target scale.Target
}

func newQueueTarget(b *builder, s *Spec) Autoscaler {
	v := b.params(s, queueTargetParams)
	return &queueTarget{needs(NeedQueueDepth),
		scale.Target{Value: v.number("target"), Tolerance: v.number("tolerance")}}
}

func (q *queueTarget) Recommend(f *Fleet) Recommendation {
	total := float64(f.Waiting)
	for i := range f.Replicas {
		total += float64(f.Replicas[i].QueueDepth)
	}
	return Recommendation{q.target.ForTotal(total, f.Current(), 0),
		Reason{"waiting requests", total, "for each", q.target.Value}}
}

func (q *queueTarget) Clone() Autoscaler { c := *q; return &c }
