package sim

import (
	"maps"
	"slices"

	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/policy"
)

// override is a decision that replaces that of the policy: the one numbered decision, -1 for none.
// candidate applies to routing, verdict to admission.
type override struct {
	decision  int64
	candidate int
	verdict   policy.Verdict
}

// fork returns an independent copy of the simulation that continues from here with the same random
// numbers and reports only to the sink. It must be taken between two events, and the workload must
// be in memory.
func (s *simulation) fork(l sink) *simulation {
	f := *s
	f.sink, f.trace, f.checker, f.regrets, f.anomalies = l, &traceWriter{}, nil, nil, nil
	if s.oracle != nil {
		f.oracle = &oracle{rates: slices.Clone(s.oracle.rates)}
	}
	future := *s.arrivals.(*replayFeed)
	f.arrivals, f.segmentScratch = &future, nil
	f.deployments = slices.Clone(s.deployments)
	for i := range f.deployments {
		f.deployments[i].coverage = coverage{} // not reported for forks
	}
	f.tree = s.tree.Clone()
	f.queue, f.readyToStep = s.queue.Clone(), slices.Clone(s.readyToStep)
	f.slots, f.freeSlots = slices.Clone(s.slots), slices.Clone(s.freeSlots)
	for i := range f.slots {
		f.slots[i].path = slices.Clone(f.slots[i].path)
	}
	f.sessions = s.sessions.clone()
	f.viewScratch, f.requestScratch, f.requestScratchOf, f.localScratch, f.candidateScratch = policy.View{},
		policy.Request{}, -1, policy.Local{}, nil
	f.router = s.router.clone(f.tree)
	f.replicas = slices.Clone(s.replicas)
	for i := range f.replicas {
		r := &f.replicas[i]
		r.jitter, r.inTransit = r.jitter.clone(), slices.Clone(r.inTransit)
		r.engine = r.engine.Clone(r.engine.Cache().Clone(f.tree), r.jitter.wrap(f.deployments[r.deployment].model),
			f.preemptionScorer(int32(i)))
	}
	f.telemetry = s.telemetry.clone(f.replicas)
	for i := range f.replicas {
		f.watchCache(int32(i), f.replicas[i].engine.Cache())
	}
	return &f
}

// preemptionScorer is the function by which an engine asks the preemption policy; nil if the policy
// is last-in.
func (s *simulation) preemptionScorer(replica int32) func(int32, engine.Progress) float64 {
	if policy.IsLastIn(s.router.Preemption) {
		return nil
	}
	return func(tag int32, p engine.Progress) float64 { return s.preemptionScore(tag, replica, p) }
}

// clone returns an independent copy. The sessions' records are shared, since they do not change.
func (r *sessionTable) clone() sessionTable {
	c := sessionTable{open: slices.Clone(r.open), spare: slices.Clone(r.spare)}
	for i := range c.open {
		v := &c.open[i]
		v.steps, v.children = slices.Clone(v.steps), slices.Clone(v.children)
	}
	return c
}

// clone returns an independent copy on a clone of the tree.
func (r *router) clone(tree *kv.Tree) *router {
	c := *r
	c.Plane = r.Plane.Clone()
	if r.shadow != nil {
		c.shadow = r.shadow.Clone(tree)
	}
	c.reports = slices.Clone(r.reports)
	c.flows = slices.Clone(r.flows)
	for i := range c.flows {
		c.flows[i] = c.flows[i].Clone()
	}
	c.classes, c.tenantIDs, c.identities.sessionIDs = maps.Clone(r.classes), maps.Clone(r.tenantIDs),
		maps.Clone(r.identities.sessionIDs)
	c.tenants = slices.Clone(r.tenants)
	for i := range c.tenants {
		c.tenants[i].rates = c.tenants[i].rates.clone()
	}
	c.offered, c.completed = r.offered.clone(), r.completed.clone()
	return &c
}

func (r eventRates) clone() eventRates { return eventRates{slices.Clone(r.times), r.first} }

func (r slidingRatio) clone() slidingRatio {
	r.samples = slices.Clone(r.samples)
	return r
}

// clone returns an independent copy for clones of the replicas.
func (o *telemetry) clone(replicas []replica) *telemetry {
	c := *o
	c.states, c.stats, c.counters = slices.Clone(o.states), slices.Clone(o.stats), slices.Clone(o.counters)
	for i := range c.states {
		c.states[i].Stats = &c.stats[i]
		counters := &c.counters[i]
		counters.hits, counters.ttft, counters.tpot = counters.hits.clone(), counters.ttft.clone(), counters.tpot.clone()
		if counters.image != nil {
			counters.image = counters.image.Clone(replicas[i].engine.Cache())
		}
	}
	return &c
}
