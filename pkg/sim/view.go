package sim

import "blis/pkg/policy"

// view returns the policies' view of a request and its candidates, filled in as needs says.
func (s *simulation) view(q *request, needs policy.Needs) *policy.View {
	r, v := s.router, &s.viewScratch
	v.NowUS, v.Request = s.now, nil
	if needs&policy.NeedRequest != 0 {
		v.Request = s.policyRequest(q)
	}
	v.Replicas = s.reachable(q, needs)
	v.Cluster.Inflight = r.inflight
	if needs&policy.NeedTenant != 0 {
		t := &r.tenants[q.tenant]
		v.Tenant = policy.Tenant{Requests: t.requests, Active: t.active, ActiveSheddable: t.sheddable}
		v.Cluster.Tenants = r.tenantCount
		if needs&policy.NeedRates != 0 {
			v.Tenant.Rate, v.Tenant.Burst = t.rates.perSecond(1, s.now), t.rates.burst(s.now)
		}
	}
	if needs&policy.NeedClusterRates != 0 {
		v.Cluster.Rate, v.Cluster.Throughput = r.offered.perSecond(1, s.now), r.completed.perSecond(1, s.now)
	}
	if needs&policy.NeedShadow != 0 {
		s.applyEvictions()
		r.shadow.Match(q.path, int(q.out.InputTokens), v.Replicas)
	}
	if needs&policy.NeedCache != 0 {
		s.matchCaches(q, v.Replicas)
	}
	if needs&policy.NeedEstimate != 0 {
		s.estimate(v, q.out.InputTokens)
	}
	return v
}

// matchCaches fills in the prompt blocks found in the candidates' caches, as of their last refresh.
func (s *simulation) matchCaches(q *request, candidates []policy.Replica) {
	for i := range candidates {
		r := &candidates[i]
		cache, input := s.replicas[r.Index].engine.Cache(), int(q.out.InputTokens)
		r.Blocks = int32(input / cache.BlockSize())
		if image := s.telemetry.counters[r.Index].image; image != nil {
			r.Cached = int32(image.Match(q.path, input) / cache.BlockSize())
		} else {
			r.Cached = int32(cache.Match(q.path, input) / cache.BlockSize())
		}
	}
}

// reachable returns the states of the replicas that can hold the request, with the fields in needs
// refreshed.
func (s *simulation) reachable(r *request, needs policy.Needs) []policy.Replica {
	deployments := s.models[r.model].deployments
	if len(deployments) == 1 {
		d := &s.deployments[deployments[0]]
		s.refreshDeployment(d, needs)
		return s.telemetry.states[d.first:d.end]
	}
	s.candidateScratch = s.candidateScratch[:0]
	for _, i := range deployments {
		if d := &s.deployments[i]; d.limits.rejectReason(r.out.InputTokens, r.out.OutputTokens) == "" {
			s.refreshDeployment(d, needs)
			s.candidateScratch = append(s.candidateScratch, s.telemetry.states[d.first:d.end]...)
		}
	}
	return s.candidateScratch
}

// refreshDeployment refreshes the replicas of a deployment.
func (s *simulation) refreshDeployment(d *deployment, needs policy.Needs) {
	if s.telemetry.refreshOnView && needs&policy.NeedsSnapshot != 0 {
		for i := d.first; i < d.end; i++ {
			s.refresh(int32(i), needs)
		}
	}
}

// local returns the view of a request that a replica's scheduler has.
func (s *simulation) local(q *request, i int32) *policy.Local {
	e := s.replicas[i].engine
	free, total := e.Cache().Free(), e.Cache().Total()
	s.localScratch = policy.Local{NowUS: s.now, Request: s.policyRequest(q), Hints: q.hints,
		Replica: policy.Snapshot{QueueDepth: int32(e.Waiting()), Running: int32(e.Running()), FreeBlocks: int32(free),
			KVUtil: 1 - float64(free)/float64(total)}}
	return &s.localScratch
}
