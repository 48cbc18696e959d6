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
// numbers and has no observer but the given one. It must be taken between two events, and the
// workload must be in memory.
func (s *simulation) fork(o observer) *simulation {
	f := *s
	f.decisions.last, f.unserved, f.series = decision{}, nil, nil
	future := *s.feed.(*memoryFeed)
	f.feed = &future
	f.deployments = slices.Clone(s.deployments)
	for i := range s.replicas {
		s.replicas[i].engine.StopGrowth() // which changes the tree
	}
	f.tree = s.tree.Clone()
	f.events.queue, f.events.steps = s.events.queue.Clone(), s.events.steps.Clone()
	f.events.ready = slices.Clone(s.events.ready)
	f.requests = s.requests.clone()
	f.transfers, f.backpressure = s.transfers.clone(), s.backpressure.clone()
	f.sessions = s.sessions.clone()
	f.router = s.router.clone(f.tree)
	f.observers = observers{}
	f.observers.add(f.router.chooser)
	f.observers.add(o)
	f.replicas, f.choices = slices.Clone(s.replicas), nil
	f.servers = slices.Clone(s.servers)
	for i := range f.servers {
		f.servers[i].batches, f.servers[i].own = nil, nil
		f.servers[i].ranks = slices.Clone(f.servers[i].ranks)
	}
	storages := f.transfers.cloneStorages(f.tree)
	for i := range f.replicas {
		r := &f.replicas[i]
		r.jitter, r.result = r.jitter.clone(), nil
		r.engine = r.engine.Clone(r.engine.Cache().Clone(f.tree), f.stepModel(int32(i)), f.preemptionScorer(int32(i)))
		if x := r.engine.Storage(); x != nil {
			r.engine.UseStorage(storages[x])
		}
	}
	f.telemetry = s.telemetry.clone(f.replicas)
	for i := range f.replicas {
		watchCache(&f, int32(i), f.replicas[i].engine.Cache())
	}
	return &f
}

// preemptionScorer is the function by which an engine asks the preemption policy; nil if the policy
// is last-in.
func (s *simulation) preemptionScorer(replica int32) func(int32, engine.Progress) float64 {
	if policy.IsLastIn(s.router.policies.Preemption) {
		return nil
	}
	return func(tag int32, p engine.Progress) float64 { return s.preemptionScore(tag, replica, p) }
}

// clone returns an independent copy.
func (t *requestTable) clone() requestTable {
	c := requestTable{batches: slices.Clone(t.batches), count: t.count, free: slices.Clone(t.free), open: t.open}
	for i, x := range c.batches {
		own := *x
		c.batches[i] = &own
	}
	for slot := range c.count {
		r := c.at(slot)
		r.path = slices.Clone(r.path)
		r.items = slices.Clone(r.items)
		r.handoff.pieces.ends = slices.Clone(r.handoff.pieces.ends)
	}
	return c
}

// clone returns an independent copy. The sessions' records are shared, since they do not change.
func (t *sessionTable) clone() sessionTable {
	c := sessionTable{open: slices.Clone(t.open), spare: slices.Clone(t.spare)}
	for i := range c.open {
		v := &c.open[i]
		v.steps = slices.Clone(v.steps)
		for k := range v.steps {
			v.steps[k].children = slices.Clone(v.steps[k].children)
		}
	}
	return c
}

// clone returns an independent copy on a clone of the tree.
func (r *router) clone(tree *kv.Tree) *router {
	c := *r
	c.policies, c.chooser, c.views = r.policies.Clone(), r.chooser.clone(), views{requestOf: -1}
	if r.needs.all&policy.NeedShadow != 0 {
		c.prefixes.index = r.prefixes.index.Clone(tree)
	}
	if r.prefixes.blocks != nil {
		c.prefixes.blocks = r.prefixes.blocks.Clone(tree)
	}
	if r.active != nil {
		c.active = r.active.Clone()
	}
	c.prefixes.reports, c.flow = slices.Clone(r.prefixes.reports), r.flow.clone()
	c.names, c.traffic = r.names.clone(), r.traffic.clone()
	return &c
}

func (n *identities) clone() identities {
	c := *n
	c.classes, c.tenantIDs, c.sessionIDs = maps.Clone(n.classes), maps.Clone(n.tenantIDs), maps.Clone(n.sessionIDs)
	c.adapterIDs, c.grammarIDs = maps.Clone(n.adapterIDs), maps.Clone(n.grammarIDs)
	c.tenants = slices.Clone(n.tenants)
	for i := range c.tenants {
		c.tenants[i].rates = c.tenants[i].rates.clone()
	}
	return c
}

func (n counters) clone() counters {
	n.offered, n.completed = n.offered.clone(), n.completed.clone()
	return n
}

func (r eventRates) clone() eventRates { return eventRates{slices.Clone(r.times), r.first} }

func (r slidingRatio) clone() slidingRatio {
	r.samples = slices.Clone(r.samples)
	return r
}
