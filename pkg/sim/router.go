package sim

import (
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// router is the control plane's own state: its policies and what it counts.
type router struct {
	cluster.ControlPlane
	*policy.Plane
	asked
	prefixes
	waiting
	people
	traffic
}

// asked is what the policies of the first stages are shown. Those that have
// nothing to decide are not asked: admission that admits all, priorities that are
// all the same, schedulers that take requests as they come.
type asked struct {
	admission, priority, routing       policy.Needs
	admitsAll, onePriority, asTheyCome bool
}

// prefixes are the router's shadow of the caches, nil unless somebody asks for
// it, and the evictions it has not heard of, in the order of their times.
type prefixes struct {
	shadow  *policy.Shadow
	reports []report
}

// waiting is flow control: its queues, one for each model (nil is none), and when
// they are looked at next, drainAt for what happens and tickAt for what is read;
// negative if that is not pending.
type waiting struct {
	flows           []*policy.Flow
	drainAt, tickAt int64
	flowStats       flowStats
}

type flowStats struct{ queued, peak, rejected, expired int64 }

// people are the classes, tenants and sessions that requests name. class is that
// of the request read last; numbers are of tenants.
type people struct {
	classes           map[string]*stream.SLOClass
	class             *stream.SLOClass
	tenants           []tenant
	numbers, sessions map[string]int32
}

// traffic is counted over all requests: those admitted and not gone, delays, the
// rates of offered and completed ones, and the lengths of answers.
type traffic struct {
	inflight, delays   int64
	seenTenants        int64 // of requests that have arrived; one more may have been read
	offered, completed rates
	answers            mean
}

// tenant is what the router counts of one.
type tenant struct {
	requests, active, sheddable int64
	rates                       rates
	answers                     mean
}

type mean struct{ sum, n int64 }

func (m *mean) add(x int64) { m.sum += x; m.n++ }

func newRouter(c *cluster.Config, classes []stream.SLOClass, plane *policy.Plane) *router {
	r := &router{ControlPlane: c.ControlPlane, Plane: plane,
		asked: asked{plane.Admission.Needs(), plane.Priority.Needs(), plane.Routing.Needs(),
			policy.IsAlwaysAdmit(plane.Admission), policy.IsConstant(plane.Priority), policy.IsFCFS(plane.Scheduler)},
		waiting: waiting{drainAt: -1, tickAt: -1},
		people:  people{classes: map[string]*stream.SLOClass{}, numbers: map[string]int32{}, sessions: map[string]int32{}}}
	for i := range stream.Classes {
		r.classes[stream.Classes[i].Name] = &stream.Classes[i].Value
	}
	for i := range classes {
		r.classes[classes[i].Name] = &classes[i]
	}
	r.class = &stream.SLOClass{Tier: policy.Standard}
	return r
}

// needs is what the policies and flow control need together.
func (r *router) needs() policy.Needs {
	n := r.Plane.Needs()
	if r.FlowControl != nil {
		n |= policy.FlowNeeds
	}
	return n
}

// know fills in what the control plane knows of a request that was read. A class
// that nobody knows is of the standard tier.
func (s *simulation) know(q *request, in *stream.Request) {
	r := s.router
	if r.class.Name != in.SLOClass { // mostly it is that of the one before
		if r.class = r.classes[in.SLOClass]; r.class == nil {
			r.class = &stream.SLOClass{Name: strings.Clone(in.SLOClass), Tier: policy.Standard}
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
			TenantID: q.tenant, SessionID: q.session, InputTokens: o.InputTokens, Predicted: q.predicted,
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
	if n&policy.NeedClusterRates != 0 {
		r.offered.add(s.now)
		r.offered.forget(s.now)
	}
	if n&(policy.NeedTenant|policy.NeedPredicted) == 0 {
		return
	}
	t := &r.tenants[q.tenant]
	if t.requests == 0 {
		r.seenTenants++
	}
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
	if q.class.Tier == policy.Sheddable {
		t.sheddable += n
	}
}

// done counts a request that has completed.
func (s *simulation) done(q *request) {
	r, n := s.router, s.seen.needs
	if n&policy.NeedClusterRates != 0 {
		r.completed.add(s.now)
		r.completed.forget(s.now)
	}
	if n&policy.NeedPredicted != 0 {
		r.answers.add(q.out.OutputTokens)
		r.tenants[q.tenant].answers.add(q.out.OutputTokens)
	}
}
