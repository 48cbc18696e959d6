package sim

import "blis/pkg/policy"

// view shows a request and the candidates for it, with what needs says.
func (s *simulation) view(q *request, needs policy.Needs) *policy.View {
	r, v := s.router, &s.viewed
	v.NowUS, v.Request = s.now, nil
	if needs&policy.NeedRequest != 0 {
		v.Request = s.about(q)
	}
	v.Replicas = s.reachable(q, needs)
	v.Cluster.Inflight = r.inflight
	if needs&policy.NeedTenant != 0 {
		t := &r.tenants[q.tenant]
		v.Tenant = policy.Tenant{Requests: t.requests, Active: t.active, ActiveSheddable: t.sheddable}
		v.Cluster.Tenants = r.seenTenants
		if needs&policy.NeedRates != 0 {
			v.Tenant.Rate, v.Tenant.Burst = t.rates.perSecond(1, s.now), t.rates.burst(s.now)
		}
	}
	if needs&policy.NeedClusterRates != 0 {
		v.Cluster.Rate, v.Cluster.Throughput = r.offered.perSecond(1, s.now), r.completed.perSecond(1, s.now)
	}
	if needs&policy.NeedShadow != 0 {
		s.hear()
		r.shadow.Look(q.path, int(q.out.InputTokens), v.Replicas)
	}
	if needs&policy.NeedCache != 0 {
		s.lookIntoCaches(q, v.Replicas)
	}
	if needs&policy.NeedEstimate != 0 {
		s.estimate(v, q.out.InputTokens)
	}
	return v
}

// lookIntoCaches fills in what of the prompt is in the candidates' true caches,
// as they were when last read.
func (s *simulation) lookIntoCaches(q *request, candidates []policy.Replica) {
	for i := range candidates {
		r := &candidates[i]
		cache, input := s.replicas[r.Index].engine.Cache(), int(q.out.InputTokens)
		r.Blocks = int32(input / cache.BlockSize())
		if image := s.seen.own[r.Index].image; image != nil {
			r.Cached = int32(image.Match(q.path, input) / cache.BlockSize())
		} else {
			r.Cached = int32(cache.Match(q.path, input) / cache.BlockSize())
		}
	}
}

// reachable returns the states of the replicas that can hold the request, brought
// up to date for somebody with these needs.
func (s *simulation) reachable(r *request, needs policy.Needs) []policy.Replica {
	deployments := s.models[r.model].deployments
	if len(deployments) == 1 {
		d := &s.deployments[deployments[0]]
		s.lookAt(d, needs)
		return s.seen.states[d.first:d.end]
	}
	s.candidates = s.candidates[:0]
	for _, i := range deployments {
		if d := &s.deployments[i]; d.limits.refuses(r.out.InputTokens, r.out.OutputTokens) == "" {
			s.lookAt(d, needs)
			s.candidates = append(s.candidates, s.seen.states[d.first:d.end]...)
		}
	}
	return s.candidates
}

// lookAt looks at the replicas of a deployment.
func (s *simulation) lookAt(d *deployment, needs policy.Needs) {
	if s.seen.looks && needs&policy.NeedsSnapshot != 0 {
		for i := d.first; i < d.end; i++ {
			s.look(int32(i), needs)
		}
	}
}

// local shows a replica's scheduler a request.
func (s *simulation) local(q *request, i int32) *policy.Local {
	e := s.replicas[i].engine
	free, total := e.Cache().Free(), e.Cache().Total()
	s.here = policy.Local{NowUS: s.now, Request: s.about(q), Hints: q.hints,
		Replica: policy.Snapshot{QueueDepth: int32(e.Waiting()), Running: int32(e.Running()), FreeBlocks: int32(free), KVUtil: 1 - float64(free)/float64(total)}}
	return &s.here
}
