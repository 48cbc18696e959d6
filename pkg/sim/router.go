package sim

import (
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// router is the state of the control plane: policies and counts.
type router struct {
	cluster.ControlPlane
	*policy.Plane
	stageNeeds
	prefixState
	flowControl
	identities
	counters
}

// stageNeeds are the inputs that the policies of the first stages need. Policies that decide nothing
// are not evaluated: admission that admits all, constant priority, schedulers in arrival order.
type stageNeeds struct {
	admission, priority, routing      policy.Needs
	admitsAll, constantPriority, fcfs bool
}

// prefixState is the router's prefix index, nil if no policy needs it, and the evictions that have
// not reached it, in order of time.
type prefixState struct {
	shadow  *policy.Shadow
	reports []evictionReport
}

// flowControl holds the queues, one for each model (nil: no flow control), and the times of the next
// drains: drainAt after events, refreshAt after a snapshot refresh. Both are negative if none is
// pending.
type flowControl struct {
	flows              []*policy.Flow
	drainAt, refreshAt int64
	flowStats          flowStats
}

type flowStats struct{ queued, peak, rejected, expired int64 }

// identities are the classes, tenants and sessions of requests. lastClass is the class of the last
// request read.
type identities struct {
	classes               map[string]*stream.SLOClass
	lastClass             *stream.SLOClass
	tenants               []tenant
	tenantIDs, sessionIDs map[string]int32
}

// counters are totals over all requests: requests in flight, admission delays, the rates of offered
// and completed requests, and output lengths.
type counters struct {
	inflight, delays   int64
	tenantCount        int64 // with requests that have arrived; tenants may have one more, of a request only read
	offered, completed eventRates
	outputLengths      runningMean
}

// tenant holds the counts of one tenant.
type tenant struct {
	requests, active, sheddable int64
	rates                       eventRates
	outputLengths               runningMean
}

type runningMean struct{ sum, n int64 }

func (m *runningMean) add(x int64) { m.sum += x; m.n++ }

func newRouter(c *cluster.Config, classes []stream.SLOClass, plane *policy.Plane) *router {
	r := &router{ControlPlane: c.ControlPlane, Plane: plane,
		stageNeeds: stageNeeds{plane.Admission.Needs(), plane.Priority.Needs(), plane.Routing.Needs(),
			policy.IsAlwaysAdmit(plane.Admission), policy.IsConstant(plane.Priority), policy.IsFCFS(plane.Scheduler)},
		flowControl: flowControl{drainAt: -1, refreshAt: -1},
		identities: identities{classes: map[string]*stream.SLOClass{}, tenantIDs: map[string]int32{},
			sessionIDs: map[string]int32{}}}
	for i := range stream.Classes {
		r.classes[stream.Classes[i].Name] = &stream.Classes[i].Value
	}
	for i := range classes {
		r.classes[classes[i].Name] = &classes[i]
	}
	r.lastClass = &stream.SLOClass{Tier: policy.Standard}
	return r
}

// needs are the inputs of the policies and of flow control.
func (r *router) needs() policy.Needs {
	n := r.Plane.Needs()
	if r.FlowControl != nil {
		n |= policy.FlowNeeds
	}
	return n
}

// enrich adds what the control plane knows of a request that was just read. An unknown class has the
// standard tier.
func (s *simulation) enrich(q *request, in *stream.Request) {
	r := s.router
	if r.lastClass.Name != in.SLOClass { // usually that of the previous request
		if r.lastClass = r.classes[in.SLOClass]; r.lastClass == nil {
			r.lastClass = &stream.SLOClass{Name: strings.Clone(in.SLOClass), Tier: policy.Standard}
			r.classes[r.lastClass.Name] = r.lastClass
		}
	}
	q.class = r.lastClass
	q.tenant, q.session, q.predicted, q.turn = 0, missing, float64(in.PredictedOutputTokens), in.Turn
	q.hints = [policy.MaxHints]float64{}
	n := s.telemetry.needs
	if n&(policy.NeedTenant|policy.NeedPredicted) != 0 {
		q.tenant = internID(r.tenantIDs, in.Tenant)
		if int(q.tenant) == len(r.tenants) {
			r.tenants = append(r.tenants, tenant{})
		}
	}
	if n&policy.NeedSession != 0 && in.Session != "" {
		q.session = internID(r.sessionIDs, in.Session)
	}
}

// policyRequest returns what policies see of a request. Until admission its priority is that of its
// class.
func (s *simulation) policyRequest(q *request) *policy.Request {
	k := &s.requestScratch
	if s.requestScratchOf != q.position {
		o := &q.out
		*k = policy.Request{Tenant: o.Tenant, Class: o.SLOClass, Tier: q.class.Tier, Model: o.Model, Session: o.Session,
			TenantID: q.tenant, SessionID: q.session, InputTokens: o.InputTokens, Predicted: q.predicted,
			ArrivalUS: int64(o.ArrivalUS), DeadlineUS: int64(q.deadline), TTFTTargetMS: q.class.Targets.TTFTMS, Turn: q.turn}
		s.requestScratchOf = q.position
	}
	k.Delays, k.Priority = q.out.Delays, q.out.Priority
	if q.out.AdmittedUS.IsZero() {
		k.Priority = q.class.Priority
	}
	return k
}

// internID returns the number of a name and assigns a new one if necessary.
func internID(of map[string]int32, name string) int32 {
	n, ok := of[name]
	if !ok {
		n = int32(len(of))
		of[strings.Clone(name)] = n // the reader's string may be part of a larger buffer
	}
	return n
}

// countArrival counts a request that arrives and predicts its output length.
func (s *simulation) countArrival(q *request) {
	r, n := s.router, s.telemetry.needs
	if n&policy.NeedClusterRates != 0 {
		r.offered.add(s.now)
		r.offered.prune(s.now)
	}
	if n&(policy.NeedTenant|policy.NeedPredicted) == 0 {
		return
	}
	t := &r.tenants[q.tenant]
	if t.requests == 0 {
		r.tenantCount++
	}
	t.requests++
	if n&policy.NeedRates != 0 {
		t.rates.add(s.now)
		t.rates.prune(s.now)
	}
	if q.predicted == 0 && n&policy.NeedPredicted != 0 {
		answers := &t.outputLengths
		if answers.n == 0 {
			answers = &r.outputLengths
		}
		if answers.n > 0 {
			q.predicted = float64(answers.sum) / float64(answers.n)
		}
	}
}

// countAdmitted counts a request that was admitted, countDeparted one that has left.
func (s *simulation) countAdmitted(q *request) { s.countInflight(q, 1) }
func (s *simulation) countDeparted(q *request) { s.countInflight(q, -1) }

func (s *simulation) countInflight(q *request, n int64) {
	r := s.router
	r.inflight += n
	if s.telemetry.needs&policy.NeedTenant == 0 {
		return
	}
	t := &r.tenants[q.tenant]
	t.active += n
	if q.class.Tier == policy.Sheddable {
		t.sheddable += n
	}
}

// countCompleted counts a request that has completed.
func (s *simulation) countCompleted(q *request) {
	r, n := s.router, s.telemetry.needs
	if n&policy.NeedClusterRates != 0 {
		r.completed.add(s.now)
		r.completed.prune(s.now)
	}
	if n&policy.NeedPredicted != 0 {
		r.outputLengths.add(q.out.OutputTokens)
		r.tenants[q.tenant].outputLengths.add(q.out.OutputTokens)
	}
}
