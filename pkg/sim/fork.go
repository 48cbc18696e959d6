package sim

import (
	"maps"
	"slices"

	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/policy"
)

// forced is a decision that is not left to the policies: the one with number at
// (-1 is none), of routing the candidate, of admission the verdict.
type forced struct {
	at        int64
	candidate int
	verdict   policy.Verdict
}

// fork returns a simulation that goes on from here by itself, with the same
// random numbers to come, and tells only the ledger. It begins between two events,
// and its workload must be one in memory.
func (s *simulation) fork(l ledger) *simulation {
	f := *s
	f.ledger, f.out, f.check, f.regrets, f.lookout = l, &output{}, nil, nil, nil
	if s.judge != nil {
		f.judge = &judge{paces: slices.Clone(s.judge.paces)}
	}
	future := *s.arrivals.(*again)
	f.arrivals, f.segments = &future, nil
	f.deployments = slices.Clone(s.deployments)
	for i := range f.deployments {
		f.deployments[i].use = use{} // what forks use is told nowhere
	}
	f.tree = s.tree.Clone()
	f.queue, f.starting = s.queue.Clone(), slices.Clone(s.starting)
	f.slots, f.spare = slices.Clone(s.slots), slices.Clone(s.spare)
	for i := range f.slots {
		f.slots[i].path = slices.Clone(f.slots[i].path)
	}
	f.sessions = s.sessions.clone()
	f.viewed, f.shown, f.shownAt, f.here, f.candidates = policy.View{}, policy.Request{}, -1, policy.Local{}, nil
	f.router = s.router.clone(f.tree)
	f.replicas = slices.Clone(s.replicas)
	for i := range f.replicas {
		r := &f.replicas[i]
		r.jitter, r.coming = r.jitter.clone(), slices.Clone(r.coming)
		r.engine = r.engine.Clone(r.engine.Cache().Clone(f.tree), r.jitter.of(f.deployments[r.deployment].model), f.victims(int32(i)))
	}
	f.seen = s.seen.clone(f.replicas)
	for i := range f.replicas {
		f.watchCache(int32(i), f.replicas[i].engine.Cache())
	}
	return &f
}

// victims is how the engine of a replica asks the preemption policy; nil where
// that has nothing to say.
func (s *simulation) victims(replica int32) func(int32, engine.Progress) float64 {
	if policy.IsLastIn(s.router.Preemption) {
		return nil
	}
	return func(tag int32, p engine.Progress) float64 { return s.victim(tag, replica, p) }
}

// clone returns a sessionTable that goes on from here by itself. The sessions'
// records, which do not change, are shared.
func (r *sessionTable) clone() sessionTable {
	c := sessionTable{open: slices.Clone(r.open), spare: slices.Clone(r.spare)}
	for i := range c.open {
		v := &c.open[i]
		v.steps, v.children = slices.Clone(v.steps), slices.Clone(v.children)
	}
	return c
}

// clone returns a router that goes on from here by itself, on a clone of the tree.
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
	c.classes, c.numbers, c.people.sessions = maps.Clone(r.classes), maps.Clone(r.numbers), maps.Clone(r.people.sessions)
	c.tenants = slices.Clone(r.tenants)
	for i := range c.tenants {
		c.tenants[i].rates = c.tenants[i].rates.clone()
	}
	c.offered, c.completed = r.offered.clone(), r.completed.clone()
	return &c
}

func (r rates) clone() rates { return rates{slices.Clone(r.times), r.first} }

func (r recent) clone() recent {
	r.samples = slices.Clone(r.samples)
	return r
}

// clone returns what is seen of clones of the replicas.
func (o *observer) clone(replicas []replica) *observer {
	c := *o
	c.states, c.stats, c.own = slices.Clone(o.states), slices.Clone(o.stats), slices.Clone(o.own)
	for i := range c.states {
		c.states[i].Stats = &c.stats[i]
		own := &c.own[i]
		own.hits, own.ttft, own.tpot = own.hits.clone(), own.ttft.clone(), own.tpot.clone()
		if own.image != nil {
			own.image = own.image.Clone(replicas[i].engine.Cache())
		}
	}
	return &c
}
