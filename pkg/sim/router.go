package sim

import (
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/policy"
	"blis/pkg/record"
)

// router is the control plane's own state: its policies and what it counts.
type router struct {
	cluster.ControlPlane
	*policy.Plane
	admission, priority, routing policy.Needs
	// Policies that have nothing to decide are not asked.
	admitsAll, equal, inTurn bool

	shadow *policy.Shadow // nil unless somebody asks for prefixes
	// reports are evictions that it has not heard of, in the order of their times.
	reports []report
	// flows are the queues in front of routing, one for each model; nil is none.
	flows []*policy.Flow
	// drainAt is the instant at which flows are about to be looked at, tickAt the
	// same for when snapshots are read; negative if that is not pending.
	drainAt, tickAt int64
	flow            flowCounts

	classes  map[string]*record.SLOClass
	class    *record.SLOClass // of the request read last
	tenants  []tenant
	numbers  map[string]int32 // of tenants
	sessions map[string]int32
	inflight int64
	delays   int64

	offered, completed rates
	// answers sums the lengths of completed answers.
	answers mean
}

// tenant is what the router counts of one.
type tenant struct {
	requests, active, sheddable int64
	rates                       rates
	answers                     mean
}

type mean struct{ sum, n int64 }

func (m *mean) add(x int64) { m.sum += x; m.n++ }

type flowCounts struct{ queued, peak, rejected, expired int64 }

func newRouter(c *cluster.Config, classes []record.SLOClass, plane *policy.Plane) *router {
	r := &router{ControlPlane: c.ControlPlane, Plane: plane, admission: plane.Admission.Needs(), priority: plane.Priority.Needs(), routing: plane.Routing.Needs(),
		admitsAll: policy.IsAlwaysAdmit(plane.Admission), equal: policy.IsConstant(plane.Priority), inTurn: policy.IsFCFS(plane.Scheduler),
		classes: map[string]*record.SLOClass{}, numbers: map[string]int32{}, sessions: map[string]int32{}, drainAt: -1, tickAt: -1}
	for i := range record.Classes {
		r.classes[record.Classes[i].Name] = &record.Classes[i].Value
	}
	for i := range classes {
		r.classes[classes[i].Name] = &classes[i]
	}
	r.class = &record.SLOClass{Tier: "standard"}
	return r
}

// needs is what the policies and flow control need together.
func (r *router) needs() policy.Needs {
	n := r.Plane.Needs()
	if r.FlowControl != nil {
		n |= flowNeeds
	}
	return n
}

// know fills in what the control plane knows of a request that was read. A class
// that nobody knows is of the standard tier.
func (s *simulation) know(q *request, in *record.Request) {
	r := s.router
	if r.class.Name != in.SLOClass { // mostly it is that of the one before
		if r.class = r.classes[in.SLOClass]; r.class == nil {
			r.class = &record.SLOClass{Name: strings.Clone(in.SLOClass), Tier: "standard"}
			r.classes[r.class.Name] = r.class
		}
	}
	q.class = r.class
	q.tenant, q.session, q.predicted, q.turn = 0, nowhere, float64(in.PredictedOutputTokens), in.Turn
	q.hints = [policy.MaxHints]float64{}
	n := s.seen.needs
	if n&(policy.NeedTenant|policy.NeedPredicted) != 0 {
		q.tenant = number(r.numbers, in.Tenant)
		if int(q.tenant) == len(r.tenants) {
			r.tenants = append(r.tenants, tenant{})
		}
	}
	if n&policy.NeedSession != 0 && in.Session != "" {
		q.session = number(r.sessions, in.Session)
	}
}

// about is what policies may know of a request. Its priority is its class's until
// it is admitted.
func (s *simulation) about(q *request) *policy.Request {
	k := &s.shown
	if s.shownAt != q.position {
		o := &q.out
		*k = policy.Request{Tenant: o.Tenant, Class: o.SLOClass, Tier: q.class.Tier, Model: o.Model, Session: o.Session,
			TenantID: q.tenant, SessionID: q.session, Group: int32(q.model), InputTokens: o.InputTokens, Predicted: q.predicted,
			ArrivalUS: int64(o.ArrivalUS), DeadlineUS: int64(q.deadline), TTFTTargetMS: q.class.Targets.TTFTMS, Turn: q.turn}
		s.shownAt = q.position
	}
	k.Delays, k.Priority = q.out.Delays, q.out.Priority
	if q.out.AdmittedUS.IsZero() {
		k.Priority = q.class.Priority
	}
	return k
}

// number returns the number of a name, a new one if need be.
func number(of map[string]int32, name string) int32 {
	n, ok := of[name]
	if !ok {
		n = int32(len(of))
		of[strings.Clone(name)] = n // the reader's may be part of larger memory
	}
	return n
}

// offer counts a request that arrives.
func (s *simulation) offer(q *request) {
	r, n := s.router, s.seen.needs
	if n&policy.NeedClusterPer != 0 {
		r.offered.add(s.now)
		r.offered.forget(s.now)
	}
	if n&(policy.NeedTenant|policy.NeedPredicted) == 0 {
		return
	}
	t := &r.tenants[q.tenant]
	t.requests++
	if n&policy.NeedRates != 0 {
		t.rates.add(s.now)
		t.rates.forget(s.now)
	}
	if q.predicted == 0 && n&policy.NeedPredicted != 0 {
		answers := &t.answers
		if answers.n == 0 {
			answers = &r.answers
		}
		if answers.n > 0 {
			q.predicted = float64(answers.sum) / float64(answers.n)
		}
	}
}

// enter counts a request that was admitted, leave one that is gone.
func (s *simulation) enter(q *request) { s.count(q, 1) }
func (s *simulation) leave(q *request) { s.count(q, -1) }

func (s *simulation) count(q *request, n int64) {
	r := s.router
	r.inflight += n
	if s.seen.needs&policy.NeedTenant == 0 {
		return
	}
	t := &r.tenants[q.tenant]
	t.active += n
	if q.class.Tier == "sheddable" {
		t.sheddable += n
	}
}

// done counts a request that has completed.
func (s *simulation) done(q *request) {
	r, n := s.router, s.seen.needs
	if n&policy.NeedClusterPer != 0 {
		r.completed.add(s.now)
		r.completed.forget(s.now)
	}
	if n&policy.NeedPredicted != 0 {
		r.answers.add(q.out.OutputTokens)
		r.tenants[q.tenant].answers.add(q.out.OutputTokens)
	}
}

// view shows a request and the candidates for it, with what needs says.
func (s *simulation) view(q *request, needs policy.Needs) *policy.View {
	r, v := s.router, &s.viewed
	v.NowUS, v.Request = s.now, s.about(q)
	if s.seen.looks && needs&policy.NeedsSnapshot != 0 {
		for _, d := range s.models[q.model].deployments {
			for i := s.deployments[d].first; i < s.deployments[d].end; i++ {
				s.look(int32(i))
			}
		}
	}
	v.Replicas = s.reachable(q)
	v.Cluster.Inflight = r.inflight
	if needs&policy.NeedTenant != 0 {
		t := &r.tenants[q.tenant]
		v.Tenant = policy.Tenant{Requests: t.requests, Active: t.active, ActiveSheddable: t.sheddable}
		v.Cluster.Tenants = int64(len(r.tenants))
		if needs&policy.NeedRates != 0 {
			v.Tenant.Rate, v.Tenant.Burst = t.rates.perSecond(1, s.now), t.rates.burst(s.now)
		}
	}
	if needs&policy.NeedClusterPer != 0 {
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
		s.estimate(v)
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

// reachable returns the states of the replicas that can hold the request.
func (s *simulation) reachable(r *request) []policy.Replica {
	deployments := s.models[r.model].deployments
	if len(deployments) == 1 {
		d := &s.deployments[deployments[0]]
		return s.seen.states[d.first:d.end]
	}
	s.candidates = s.candidates[:0]
	for _, i := range deployments {
		if d := &s.deployments[i]; d.limits.refuses(r.out.InputTokens, r.out.OutputTokens) == "" {
			s.candidates = append(s.candidates, s.seen.states[d.first:d.end]...)
		}
	}
	return s.candidates
}

// local shows a replica's scheduler a request.
func (s *simulation) local(q *request, i int32) *policy.Local {
	e := s.replicas[i].engine
	free, total := e.Cache().Free(), e.Cache().Total()
	s.here = policy.Local{NowUS: s.now, Request: s.about(q), Hints: q.hints,
		Replica: policy.Snapshot{QueueDepth: int32(e.Waiting()), Running: int32(e.Running()), FreeBlocks: int32(free), KVUtil: 1 - float64(free)/float64(total)}}
	return &s.here
}
