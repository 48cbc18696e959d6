package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/dist"
	"blis/pkg/policy"
	"blis/pkg/scale"
	"blis/pkg/stream"
)

// elastic is the part of a deployment whose number of replicas changes. Of a fleet, deployments that scale together,
// the first one has the auto-scaler, lead.
type elastic struct {
	plan    *scale.Plan
	policy  policy.Autoscaler
	limiter *scale.Scaler
	// trigger is nil if the auto-scaler looks at the end of each interval. Its condition has held since heldSince,
	// stream.Never if it does not.
	trigger   *policy.Trigger
	heldSince des.Time
	traffic   *policy.Traffic // nil unless the policy or the trigger needs it
	engine    *policy.Engine
	// build appends one more replica to those of the simulation. hitSize is the size of its blocks that can be hit,
	// stream the source of its random numbers.
	build   func()
	hitSize int
	stream  func(index int) *rand.Rand
	// present are its replicas that do not drain, serving those of them that get requests, both in order.
	present, serving []int32
	// draining is the number of its replicas that do, desired the number of the others that was decided last.
	draining, desired int
	// members are the deployments that the auto-scaler scales, in order, itself the first; none if it does not lead.
	// least and most are the bounds of this deployment, those of plan.Behavior of all.
	lead        *elastic
	members     []int32
	least, most int
	// placement chooses among the members; nil if each deployment scales on its own.
	placement  *policy.Placement
	lookNumber int64        // of the last look, among the decisions
	idleLooks  int          // see waitsForever
	looks      int64        // so far
	overrides  []forcedLook // of a run that is simulated again
	// model is its index in simulation.models, id that of the deployment, of a prefill pool, too.
	model int
	id    string
	seen  policy.Fleet // by the policy
	stats scaleStats
}

// scaleStats counts actions. lastAction is the time of the last one, and lastUp whether it added replicas.
type scaleStats struct {
	ups, downs, oscillations int64
	lastAction               des.Time
	lastUp                   bool
}

// oscillationUS is the time within which an action after an opposite one is an oscillation.
const oscillationUS = 600e6

// look is one look of an auto-scaler.
type look struct {
	number         int64
	deployment     int32
	recommendation policy.Recommendation
	current        int
}

// scalingContradiction reports options that need a constant number of replicas.
func scalingContradiction(c *cluster.Config, o *Options) error {
	scales := slices.ContainsFunc(c.Pools(), c.Scales)
	switch {
	case scales && o.Counterfactual.enabled():
		return errors.New("--counterfactual needs a constant number of replicas; remove policies.autoscale, " +
			"or use --counterfactual scaling:N")
	case !scales && o.Counterfactual.scaling > 0:
		return errors.New("--counterfactual scaling:N needs a deployment that scales (policies.autoscale)")
	case scales && o.Clairvoyant != "":
		return errors.New("--clairvoyant needs a constant number of replicas; remove policies.autoscale")
	}
	return nil
}

// newElastic returns the auto-scaler's part of a deployment that scales.
func newElastic(c *cluster.Config, d *cluster.Deployment, plane *policy.Plane, of *policy.Engine, seed uint64) (
	*elastic, error,
) {
	plan, err := c.ScalePlan(d)
	if err != nil {
		return nil, err
	}
	e := &elastic{plan: plan, policy: plane.Autoscale.Clone(), limiter: scale.NewScaler(plan.Behavior),
		trigger: plane.Trigger.Clone(), heldSince: never, engine: of,
		least: plan.Behavior.Min, most: plan.Behavior.Max,
		hitSize: d.HitSize(), stats: scaleStats{lastAction: -oscillationUS},
		stream: func(index int) *rand.Rand {
			return dist.NewStream(seed, "autoscale/"+d.ID+"/"+strconv.Itoa(index))
		}}
	if plane.ReadsTraffic() {
		e.traffic = policy.NewTraffic(plane.TrafficUS)
	}
	return e, nil
}

// checkScale lets the auto-scaler of a deployment look, if its trigger says so.
func (s *simulation) checkScale(i int32) error {
	d := &s.deployments[i]
	e := d.elastic
	if !s.waitsForever(e) {
		s.events.queue.Push(des.NewEvent(s.now+e.plan.IntervalUS, scaleCheck, int64(i), i))
	}
	s.look(d)
	if !e.isTriggered(s.now) {
		return nil
	}
	if e.traffic != nil {
		e.traffic.Look(s.now)
	}
	l := &s.fleet.last
	*l = look{deployment: i, recommendation: e.activated(e.policy.Recommend(&e.seen)), current: e.seen.Current()}
	e.desired = e.forced(e.limiter.Next(s.now, l.current, l.recommendation.Replicas))
	e.limiter.Changed(s.now, e.desired-l.current)
	if e.desired != l.current {
		s.events.queue.Push(des.NewEvent(s.now, scaleAction, int64(i), i))
	}
	l.number, e.lookNumber = s.decisions.count, s.decisions.count
	s.decisions.count++
	err := s.observers.notify(s, onScale, i)
	e.looks++
	return err
}

// activated is a recommendation to a deployment that may have no replicas. The last one stays while requests are in
// flight or wait, and the first one comes when more wait than its activation.
func (e *elastic) activated(r policy.Recommendation) policy.Recommendation {
	f := &e.seen
	if e.plan.Behavior.Min > 0 {
		return r
	}
	waiting, activation := float64(f.Waiting), float64(e.plan.Activation)
	if f.Current() == 0 {
		if f.Waiting <= e.plan.Activation {
			return policy.Recommendation{Reason: policy.Reason{Quantity: "requests that wait", Value: waiting, Op: "<=",
				Limit: activation}}
		}
		r.Replicas = max(r.Replicas, 1)
		return r
	}
	inFlight := f.Waiting
	for i := range f.Replicas {
		inFlight += int(f.Replicas[i].Inflight)
	}
	if r.Replicas < 1 && inFlight > 0 {
		return policy.Recommendation{Replicas: 1, Reason: policy.Reason{Quantity: "requests in flight",
			Value: float64(inFlight), Op: ">", Limit: 0}}
	}
	return r
}

// maxIdleLooks is the number of looks at a deployment without replicas after which nothing will happen any more, if
// nothing has.
const maxIdleLooks = 1000

// waitsForever reports whether requests wait for a deployment without replicas which will get none. The run can then
// end.
func (s *simulation) waitsForever(e *elastic) bool {
	if present, draining := s.size(e); present+draining > 0 || !s.isQuiet() {
		e.idleLooks = 0
		return false
	}
	e.idleLooks++
	return e.idleLooks > maxIdleLooks
}

// isTriggered reports whether the auto-scaler looks now.
func (e *elastic) isTriggered(now des.Time) bool {
	if e.trigger == nil {
		return true
	}
	if !e.trigger.Holds(&e.seen) {
		e.heldSince = never
		return false
	}
	if e.heldSince < 0 {
		e.heldSince = now
	}
	if now-e.heldSince < e.plan.HoldUS {
		return false
	}
	e.heldSince = never
	return true
}

// needs is what the policy and the trigger read.
func (e *elastic) needs() policy.Needs {
	n := e.policy.Needs()
	if e.trigger != nil {
		n |= e.trigger.Needs()
	}
	return n
}

// look updates what the auto-scaler of a deployment sees.
func (s *simulation) look(d *deployment) {
	e := d.elastic
	f := &e.seen
	*f = policy.Fleet{NowUS: s.now, Replicas: f.Replicas[:0], Traffic: e.traffic, Engine: e.engine,
		Min: e.plan.Behavior.Min, ScaledUS: max(0, e.stats.lastAction)}
	needs := e.needs()
	for _, m := range e.members {
		s.lookAt(f, &s.deployments[m], needs)
	}
}

// lookAt adds the replicas of a deployment to what is seen.
func (s *simulation) lookAt(f *policy.Fleet, d *deployment, needs policy.Needs) {
	e := d.elastic
	f.Draining += e.draining
	for _, i := range e.present {
		switch s.fleet.members[i].phase {
		case provisioning:
			f.Provisioning++
		case loading, failed: // one that is down comes back
			f.Loading++
		default:
			s.telemetry.refreshAll(s, int(i), int(i)+1, needs)
			f.Replicas = append(f.Replicas, s.telemetry.states[i])
		}
	}
	if queues := s.router.flow.queues; len(queues) > 0 {
		f.Waiting = queues[e.model].Len()
	}
}

// actScale changes the number of replicas of a deployment to what was decided.
func (s *simulation) actScale(i int32) error {
	e := s.deployments[i].elastic
	n, _ := s.size(e)
	e.stats.count(s.now, e.desired > n)
	for ; n < e.desired; n++ {
		to, err := s.place(e, true)
		if err != nil {
			return err
		}
		if err := s.addReplica(to); err != nil {
			return err
		}
	}
	for ; n > e.desired; n-- {
		from, err := s.place(e, false)
		if err != nil {
			return err
		}
		if err := s.removeReplica(s.nextRemoved(s.deployments[from].elastic)); err != nil {
			return err
		}
	}
	return nil
}

func (c *scaleStats) count(now des.Time, up bool) {
	if up {
		c.ups++
	} else {
		c.downs++
	}
	if up != c.lastUp && now-c.lastAction < oscillationUS {
		c.oscillations++
	}
	c.lastAction, c.lastUp = now, up
}

// nextRemoved is the replica to remove next: the youngest of those that are not ready or, if all are, the one with
// the fewest requests in flight, of equals the youngest.
func (s *simulation) nextRemoved(e *elastic) int32 {
	best := e.present[0]
	for _, i := range e.present[1:] {
		starts, bestStarts := s.fleet.members[i].phase != ready, s.fleet.members[best].phase != ready
		switch {
		case starts != bestStarts:
			if starts {
				best = i
			}
		case starts || s.telemetry.states[i].Inflight <= s.telemetry.states[best].Inflight:
			best = i
		}
	}
	return best
}

// scaling records a look.
func (o *traceWriter) scaling(s *simulation) error {
	l := &s.fleet.last
	d := &s.deployments[l.deployment]
	f := &d.elastic.seen
	return o.records.Any(&stream.Scaling{Kind: stream.KindScaling, ID: decisionID(l.number),
		Stage: stream.StageAutoscale, AtUS: stream.Micros(s.now), Deployment: s.fleetName(d), Current: int64(l.current),
		Ready: int64(len(f.Replicas)), Loading: int64(f.Loading),
		Provisioning: int64(f.Provisioning), Draining: int64(f.Draining),
		FlowWaiting: int64(f.Waiting), Recommended: int64(l.recommendation.Replicas), Desired: int64(d.elastic.desired),
		Reason: string(l.recommendation.Reason.Append(nil))})
}

// replicaState records the phase that a replica has from now on.
func (o *traceWriter) replicaState(s *simulation, i int32) error {
	r := &s.replicas[i]
	return o.records.Any(&stream.ReplicaState{Kind: stream.KindReplicaState, AtUS: stream.Micros(s.now),
		Deployment: s.deployments[r.deployment].id, Replica: r.index,
		State: stream.ReplicaStates[s.fleet.members[i].phase], Inflight: int64(s.telemetry.states[i].Inflight)})
}

// fleetName names the deployments that the auto-scaler of d scales.
func (s *simulation) fleetName(d *deployment) string {
	name := d.id
	for _, m := range d.elastic.members[1:] {
		name += "+" + s.deployments[m].id
	}
	return name
}
