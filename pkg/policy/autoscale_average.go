package policy

import (
	"strings"

	"blis/pkg/scale"
)

// totalSignals are those of which each replica has a share. The unit of their targets is in their names.
var totalSignals = []struct {
	name, doc string
	needs     Needs
	of        func(*Fleet) float64
}{
	{"inflight", "requests sent to replicas that have not left", 0,
		func(f *Fleet) float64 { return f.sum(func(r *Replica) float64 { return float64(r.Inflight) }) }},
	{"pending", "requests in flow control", 0, func(f *Fleet) float64 { return float64(f.Waiting) }},
	{"queue_depth", "requests in the replicas' queues", NeedQueueDepth,
		func(f *Fleet) float64 { return f.sum(func(r *Replica) float64 { return float64(r.QueueDepth) }) }},
	{"kv_util", "shares of KV blocks in use, added up", needKVUtil,
		func(f *Fleet) float64 { return f.sum(func(r *Replica) float64 { return r.KVUtil }) }},
	{"prefill_tokens", "tokens of prompts without a first token", NeedPrefillTokens,
		func(f *Fleet) float64 {
			return f.sum(func(r *Replica) float64 { return float64(r.Stats.PrefillTokens) })
		}},
	{"saturation", "mean over the replicas of max(queue/5, KV usage/0.8)", NeedQueueDepth | needKVUtil,
		func(f *Fleet) float64 { return (&View{Replicas: f.Replicas}).Saturation() }},
}

// totalNames are the names of totalSignals.
func totalNames() (names []string) {
	for _, s := range totalSignals {
		names = append(names, s.name)
	}
	return names
}

var averageParams = []Param{
	{Name: "targets", Kind: Table, Keys: "signal (" + strings.Join(totalNames(), ", ") + ")", Min: 1e-6, Max: 1e9,
		Search: [2]float64{1, 100}, Default: map[string]float64{"inflight": 16},
		Doc: "value of each signal for one replica; the signal that wants most replicas decides"},
	toleranceParam(),
}

// averageValue is scale.Target.ForTotal of several signals.
type averageValue struct {
	needs
	of      []func(*Fleet) float64
	names   []string
	targets []scale.Target
}

func newAverageValue(b *builder, s *Spec) Autoscaler {
	v := b.params(s, averageParams)
	targets := v.table("targets")
	b.checkKeys("params.targets", sortedKeys(targets), "signal", totalNames())
	if len(targets) == 0 {
		b.fail("params.targets", "must name at least one signal")
	}
	a := &averageValue{}
	for _, t := range totalSignals {
		if target, ok := targets[t.name]; ok {
			a.needs |= needs(t.needs)
			a.of, a.names = append(a.of, t.of), append(a.names, "total "+t.name)
			a.targets = append(a.targets, scale.Target{Value: target, Tolerance: v.number("tolerance")})
		}
	}
	return a
}

func (a *averageValue) Recommend(f *Fleet) (most Recommendation) {
	for i, of := range a.of {
		total := of(f)
		if n := a.targets[i].ForTotal(total, f.Current(), 0); i == 0 || n > most.Replicas {
			most = Recommendation{n, Reason{a.names[i], total, "for each", a.targets[i].Value}}
		}
	}
	return most
}

func (a *averageValue) Clone() Autoscaler { c := *a; return &c }
