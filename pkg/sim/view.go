package sim

import (
	"blis/pkg/kv"
	"blis/pkg/latency"
	"blis/pkg/policy"
)

// views are what policies see, rebuilt for each call of a policy.
type views struct {
	current policy.View
	// request is what policies see of the request at position requestOf.
	request    policy.Request
	requestOf  int64
	scheduler  policy.Local
	candidates []policy.Replica
	gate       []policy.Replica
	prefill    []policy.Replica
	// noPrefixes: policies find nothing of a prompt in any cache.
	noPrefixes bool
}

// view returns the policies' view of a request and its candidates, filled in as needs says.
func (w *views) view(s *simulation, q *request, needs policy.Needs) *policy.View {
	return w.viewOf(s, q, needs, w.reachable(s, q, needs))
}

// viewOf is view with these candidates.
func (w *views) viewOf(s *simulation, q *request, needs policy.Needs, candidates []policy.Replica) *policy.View {
	r, v := s.router, &w.current
	v.NowUS, v.Request, v.Trace, v.Matched = s.now, nil, nil, nil
	v.Extremes = s.telemetry.extremes
	v.Draw = policy.DrawKey{Request: q.position}
	if needs&policy.NeedRequest != 0 {
		v.Request = w.policyRequest(q)
	}
	v.Replicas = candidates
	v.Cluster.Inflight = r.traffic.inflight
	if needs&policy.NeedTenant != 0 {
		t := &r.names.tenants[q.tenant]
		v.Tenant = policy.Tenant{Requests: t.requests, Active: t.active, ActiveSheddable: t.sheddable}
		v.Cluster.Tenants = r.traffic.tenants
		if needs&policy.NeedRates != 0 {
			v.Tenant.Rate, v.Tenant.Burst = t.rates.perSecond(1, s.now), t.rates.burst(s.now)
		}
	}
	if needs&policy.NeedClusterRates != 0 {
		v.Cluster.Rate = r.traffic.offered.perSecond(1, s.now)
		v.Cluster.Throughput = r.traffic.completed.perSecond(1, s.now)
	}
	prompt := q.out.InputTokens
	if w.noPrefixes {
		prompt = 0
	}
	if needs&policy.NeedShadow != 0 {
		v.Matched = r.prefixes.match(s, q.path, prompt, v.Replicas)
	}
	if needs&policy.NeedBlockIndex != 0 {
		r.prefixes.blocks.Match(q.path, int(prompt), v.Replicas)
	}
	if needs&policy.NeedActiveBlocks != 0 {
		r.active.Match(q.path, int(q.out.InputTokens), v.Replicas)
	}
	if needs&policy.NeedAdapter != 0 {
		s.telemetry.matchAdapters(s, q.adapter, v.Replicas)
	}
	if needs&policy.NeedCache != 0 {
		matchCaches(s, q.path, int(prompt), v.Replicas)
	}
	if needs&policy.NeedTierBlocks != 0 {
		matchTiers(s, q.path, v.Replicas)
	}
	if needs&policy.NeedEstimate != 0 {
		estimatePrefill(s, q.out.InputTokens, v.Replicas)
	}
	return v
}

// gated is the view of flow control: prefill replicas are among those that it looks at, too.
func (w *views) gated(s *simulation, q *request, needs policy.Needs) *policy.View {
	candidates := w.reachable(s, q, needs)
	for _, i := range s.models[q.model].deployments {
		p := s.deployments[i].pool
		if p == nil || s.rejectReason(&s.deployments[i], q) != "" {
			continue
		}
		w.gate = append(append(w.gate[:0], candidates...), w.prefillCandidates(s, q, &s.deployments[i], needs)...)
		candidates = w.gate
	}
	return w.viewOf(s, q, needs, candidates)
}

// policyRequest returns what policies see of a request. Until admission its priority is that of its
// class.
func (w *views) policyRequest(q *request) *policy.Request {
	k := &w.request
	if w.requestOf != q.position {
		o := &q.out
		*k = policy.Request{Tenant: o.Tenant, Class: o.SLOClass, Tier: q.class.Tier, Model: o.Model, Session: o.Session,
			TenantID: q.tenant, SessionID: q.session, InputTokens: o.InputTokens, Predicted: q.predicted,
			ArrivalUS: int64(o.ArrivalUS), DeadlineUS: int64(q.deadline), TTFTTargetMS: q.class.Targets.TTFTMS,
			Requested: q.requested, Turn: q.turn}
		w.requestOf = q.position
	}
	k.Delays, k.Priority = q.out.Delays, q.out.Priority
	if q.out.AdmittedUS.IsZero() {
		k.Priority = q.class.Priority
	}
	return k
}

// reachable returns the states of the replicas that can hold the request, with the fields in needs
// refreshed.
func (w *views) reachable(s *simulation, r *request, needs policy.Needs) []policy.Replica {
	deployments := s.models[r.model].deployments
	if len(deployments) == 1 && s.fleet == nil {
		d := &s.deployments[deployments[0]]
		s.telemetry.refreshAll(s, d.first, d.end, needs)
		return s.telemetry.states[d.first:d.end]
	}
	w.candidates = w.candidates[:0]
	for _, i := range deployments {
		if d := &s.deployments[i]; s.rejectReason(d, r) == "" {
			if s.failures != nil {
				w.addHealthy(s, d, r, needs, false)
				continue
			}
			if d.elastic != nil {
				w.addServing(s, d.elastic, needs)
				continue
			}
			s.telemetry.refreshAll(s, d.first, d.end, needs)
			w.candidates = append(w.candidates, s.telemetry.states[d.first:d.end]...)
		}
	}
	if s.failures != nil && len(w.candidates) == 0 { // admission sees all
		for _, i := range deployments {
			w.addHealthy(s, &s.deployments[i], r, needs, true)
		}
	}
	return w.candidates
}

// addServing adds the replicas of a deployment that scales to the candidates.
func (w *views) addServing(s *simulation, e *elastic, needs policy.Needs) {
	for _, i := range e.serving {
		s.telemetry.refreshAll(s, int(i), int(i)+1, needs)
		w.candidates = append(w.candidates, s.telemetry.states[i])
	}
}

// local returns the view of a request that a replica's scheduler has.
func (w *views) local(s *simulation, q *request, i int32) *policy.Local {
	e := s.replicas[i].engine
	free, total := e.Cache().Free(), e.Cache().Total()
	w.scheduler = policy.Local{NowUS: s.now, Request: w.policyRequest(q), Hints: q.hints,
		Draw: policy.DrawKey{Request: q.position},
		Replica: policy.Snapshot{QueueDepth: int32(e.Waiting()), Running: int32(e.Running()), FreeBlocks: int32(free),
			KVUtil: 1 - float64(free)/float64(total)}}
	return &w.scheduler
}

// matchCaches fills in the prompt blocks found in the candidates' caches, as of their last refresh.
func matchCaches(s *simulation, path kv.Path, input int, candidates []policy.Replica) {
	for i := range candidates {
		r := &candidates[i]
		cache := s.replicas[r.Index].engine.Cache()
		r.Blocks = int32(input / cache.BlockSize())
		if image := s.telemetry.counters[r.Index].image; image != nil {
			r.Cached = int32(image.Match(path, input) / cache.BlockSize())
		} else {
			r.Cached = int32(cache.Match(path, input) / cache.BlockSize())
		}
	}
}

// estimatePrefill fills in the time that each candidate needs to compute a prompt alone.
func estimatePrefill(s *simulation, input int64, candidates []policy.Replica) {
	for i := range candidates {
		r := &candidates[i]
		d := &s.deployments[s.replicas[r.Index].deployment]
		cached := min(int64(r.Matched)*d.limits.blockSize, d.limits.maxCachedTokens(input))
		n := input - cached
		b := latency.Batch{Prefill: n, Chunks: 1, PriorContext: cached, Pairs: n*cached + n*(n+1)/2}
		r.Stats.PrefillUS = float64(d.model.Step(b))
	}
}
