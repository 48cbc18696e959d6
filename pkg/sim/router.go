package sim

import (
	"slices"
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// router is the control plane: its policies and what it knows of requests.
type router struct {
	config   cluster.ControlPlane
	policies *policy.Plane
	needs    stageNeeds
	chooser  chooser
	prefixes prefixes
	active   *policy.ActiveBlocks // nil if no policy needs it
	flow     flowControl
	names    identities
	traffic  counters
	views    views
}

// stageNeeds are the inputs that the policies need, in all and by stage. Policies that decide nothing
// are not evaluated: admission that admits all, constant priority, schedulers in arrival order.
type stageNeeds struct {
	all, admission, priority, routing, prefill policy.Needs
	admitsAll, constantPriority, fcfs          bool
}

// identities are the classes, tenants and sessions of requests. lastClass is the class of the last
// request read.
type identities struct {
	classes               map[string]*stream.SLOClass
	lastClass             *stream.SLOClass
	tenants               []tenant
	tenantIDs, sessionIDs map[string]int32
	adapterIDs            map[string]int32 // nil before the first request with one
	grammarIDs            map[string]int32 // the same
}

// counters are totals over all requests: requests in flight, admission delays, the rates of offered
// and completed requests, and output lengths.
type counters struct {
	inflight, delays   int64
	tenants            int64 // with requests that have arrived; one more may have been read
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

func newRouter(c *cluster.Config, classes []stream.SLOClass, plane *policy.Plane) (*router, error) {
	r := &router{config: c.ControlPlane, policies: plane, chooser: policyChooser{},
		needs: stageNeeds{plane.Needs(), plane.Admission.Needs(), plane.Priority.Needs(), plane.Routing.Needs(), 0,
			policy.IsAlwaysAdmit(plane.Admission), policy.IsConstant(plane.Priority), policy.IsFCFS(plane.Scheduler)},
		flow: flowControl{drainAt: -1, refreshAt: -1}, views: views{requestOf: -1},
		names: identities{classes: map[string]*stream.SLOClass{}, lastClass: &stream.SLOClass{Tier: policy.Standard},
			tenantIDs: map[string]int32{}, sessionIDs: map[string]int32{}}}
	if plane.PrefillRouting != nil {
		r.needs.prefill = plane.PrefillRouting.Needs()
	}
	if slices.ContainsFunc(c.Deployments, func(d cluster.Deployment) bool {
		return d.Disaggregates() && d.Decider.ReadsCaches()
	}) && r.needs.routing&policy.NeedsPrefix == 0 {
		r.needs.all |= policy.NeedShadow
	}
	if r.config.FlowControl != nil {
		r.flow.config = *r.config.FlowControl
		gate, _, err := r.flow.config.Gate()
		if err != nil {
			return nil, err
		}
		r.flow.gate = gate
		r.needs.all |= gate.Needs()
	}
	for i := range stream.Classes {
		r.names.classes[stream.Classes[i].Name] = &stream.Classes[i].Value
	}
	for i := range classes {
		r.names.classes[classes[i].Name] = &classes[i]
	}
	return r, nil
}

// enrich adds what the control plane knows of a request that was just read. An unknown class has the
// standard tier.
func (r *router) enrich(q *request, in *stream.Request) {
	names := &r.names
	if names.lastClass.Name != in.SLOClass { // usually that of the previous request
		if names.lastClass = names.classes[in.SLOClass]; names.lastClass == nil {
			names.lastClass = &stream.SLOClass{Name: strings.Clone(in.SLOClass), Tier: policy.Standard}
			names.classes[names.lastClass.Name] = names.lastClass
		}
	}
	q.class, q.requested = names.lastClass, float64(in.Priority)
	q.tenant, q.session, q.predicted, q.turn = 0, missing, float64(in.PredictedOutputTokens), in.Turn
	q.hints = [policy.MaxHints]float64{}
	n := r.needs.all
	if n&(policy.NeedTenant|policy.NeedPredicted) != 0 {
		q.tenant = internID(names.tenantIDs, in.Tenant)
		if int(q.tenant) == len(names.tenants) {
			names.tenants = append(names.tenants, tenant{})
		}
	}
	if n&policy.NeedSession != 0 && in.Session != "" {
		q.session = internID(names.sessionIDs, in.Session)
	}
}

// grammar returns the number of a grammar, from 1 on; 0 for none.
func (n *identities) grammar(name string) int32 {
	if name == "" {
		return 0
	}
	if n.grammarIDs == nil {
		n.grammarIDs = map[string]int32{}
	}
	return 1 + internID(n.grammarIDs, name)
}

// adapter returns the number of an adapter, from 1 on; 0 for none.
func (n *identities) adapter(name string) int32 {
	if name == "" {
		return 0
	}
	if n.adapterIDs == nil {
		n.adapterIDs = map[string]int32{}
	}
	return 1 + internID(n.adapterIDs, name)
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
func (r *router) countArrival(q *request, now des.Time) {
	n := r.needs.all
	if n&policy.NeedClusterRates != 0 {
		r.traffic.offered.add(now)
		r.traffic.offered.prune(now)
	}
	if n&(policy.NeedTenant|policy.NeedPredicted) == 0 {
		return
	}
	t := &r.names.tenants[q.tenant]
	if t.requests == 0 {
		r.traffic.tenants++
	}
	t.requests++
	if n&policy.NeedRates != 0 {
		t.rates.add(now)
		t.rates.prune(now)
	}
	if q.predicted == 0 && n&policy.NeedPredicted != 0 {
		lengths := &t.outputLengths
		if lengths.n == 0 {
			lengths = &r.traffic.outputLengths
		}
		if lengths.n > 0 {
			q.predicted = float64(lengths.sum) / float64(lengths.n)
		}
	}
}

// countInflight counts n more admitted requests like q that have not left.
func (r *router) countInflight(q *request, n int64) {
	r.traffic.inflight += n
	if r.needs.all&policy.NeedTenant == 0 {
		return
	}
	t := &r.names.tenants[q.tenant]
	t.active += n
	if q.class.Tier == policy.Sheddable {
		t.sheddable += n
	}
}

// countCompleted counts a request that has completed.
func (r *router) countCompleted(q *request, now des.Time) {
	if r.needs.all&policy.NeedClusterRates != 0 {
		r.traffic.completed.add(now)
		r.traffic.completed.prune(now)
	}
	if r.needs.all&policy.NeedPredicted != 0 {
		r.traffic.outputLengths.add(q.out.OutputTokens)
		r.names.tenants[q.tenant].outputLengths.add(q.out.OutputTokens)
	}
}
