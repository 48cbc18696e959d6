package sim

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// The stages of a request are events: arrive, admit, route, enqueue. Then the replica has it until
// it completes or expire ends it.

// modelIndex returns the index of the model with a name, 0 for the empty name, -1 if no deployment
// serves it.
func (s *simulation) modelIndex(name string) int {
	if name == "" {
		return 0
	}
	return slices.IndexFunc(s.models, func(m servedModel) bool { return m.name == name })
}

// arrive offers a request to the cluster.
func (s *simulation) arrive(slot int32) error {
	if s.slots[slot].sessionSlot == missing {
		if err := s.readNext(); err != nil { // may move the slots
			return err
		}
	}
	r := &s.slots[slot]
	if s.counts.Offered == 0 {
		s.firstArrival = s.now
	}
	s.counts.Offered++
	if s.checker != nil {
		if err := s.checker.call(r); err != nil {
			return err
		}
	}
	s.countArrival(r)
	if r.rejectReason != "" {
		r.deadline = des.Time(stream.Never)
		return s.drop(slot, stream.StateRejected, r.rejectReason)
	}
	if r.deadline >= 0 {
		s.queue.Push(des.NewEvent(r.deadline, deadline, r.position, slot))
	}
	return s.schedule(s.router.AdmissionLatencyUS, admission, slot)
}

// infeasible is why no deployment can ever serve the request: the reason of its model's first
// deployment; "" if one can.
func (s *simulation) infeasible(r *request) string {
	if r.model < 0 {
		return stream.ReasonNoDeployment
	}
	r.out.Model = s.models[r.model].name
	first := ""
	for _, d := range s.models[r.model].deployments {
		reason := s.deployments[d].limits.rejectReason(r.out.InputTokens, r.out.OutputTokens)
		if reason == "" {
			return ""
		}
		if first == "" {
			first = reason
		}
	}
	return first
}

// admit applies the admission policy and gives an admitted request its priority.
func (s *simulation) admit(slot int32) error {
	r := &s.slots[slot]
	r.admissionDelayed = false
	var v policy.Verdict
	exhausted := false // no more delays are allowed
	if !s.router.admitsAll {
		view := s.view(r, s.router.admission)
		v = s.router.Admission.Admit(view)
		if s.override.decision == s.decisionCount {
			v = s.override.verdict
		}
		verdict := v.Action.String()
		if v.Action == policy.Delay && r.out.Delays >= int64(s.router.MaxDelays) {
			exhausted, verdict, v.DelayUS = true, stream.VerdictExpire, 0
		}
		if err := s.trace.verdict(s, r, stream.StageAdmission, verdict, v, len(view.Replicas)); err != nil {
			return err
		}
		if s.regrets != nil {
			s.regrets.recordAdmission(s, r, view, v)
		}
	}
	switch {
	case v.Action == policy.Reject:
		return s.drop(slot, stream.StateRejected, stream.ReasonAdmission)
	case exhausted:
		return s.drop(slot, stream.StateTimedOut, stream.ReasonAdmissionDelay)
	case v.Action == policy.Delay:
		s.router.delays++
		r.out.Delays++
		r.admissionDelayed = true
		return s.schedule(v.DelayUS, admission, slot)
	}
	s.countAdmitted(r)
	if !s.router.constantPriority {
		priority, rule := s.router.Priority.Priority(s.view(r, s.router.priority), &r.hints)
		r.out.Priority = finite(priority)
		if err := s.trace.priority(s, r, rule); err != nil {
			return err
		}
	}
	r.out.AdmittedUS = stream.Micros(s.now)
	return s.schedule(s.router.RoutingLatencyUS, routing, slot)
}

// drop ends a request that no replica holds.
func (s *simulation) drop(slot int32, state, reason string) error {
	err := s.finalize(slot, state, reason)
	s.release(slot)
	return err
}

// route sends a request to a replica, or queues it in flow control.
func (s *simulation) route(slot int32) error {
	if s.router.flows != nil {
		return s.enqueueFlow(slot)
	}
	return s.send(slot)
}

// send routes a request and sends it to its replica.
func (s *simulation) send(slot int32) error {
	r := &s.slots[slot]
	v := s.view(r, s.router.routing)
	v.Trace = s.trace.beginRouting(len(v.Replicas))
	choice := s.router.Routing.Route(v)
	if s.clairvoyant {
		v.Trace = s.trace.beginRouting(len(v.Replicas))
		choice = s.oracle.clairvoyant(s, r, v)
	}
	v.Trace = nil
	if s.override.decision == s.decisionCount {
		choice.Candidate = s.override.candidate
	}
	chosen := v.Replicas[choice.Candidate]
	target := &s.replicas[chosen.Index]
	d := &s.deployments[target.deployment]
	s.recordExpectedHits(r, &chosen, d)
	target.requests++
	if s.oracle != nil {
		target.inTransit = append(target.inTransit, slot)
	}
	if d.measuredRange != nil {
		d.coverage.add(r.out.InputTokens, r.out.OutputTokens)
	}
	r.replica = chosen.Index
	r.out.RoutedUS, r.out.Deployment, r.out.Replica = stream.Micros(s.now), d.id, target.index
	if err := s.trace.routing(s, r, v, choice); err != nil {
		return err
	}
	s.telemetry.states[chosen.Index].Inflight++ // after the policy's view was recorded
	if s.regrets != nil {
		if err := s.regrets.recordRouting(s, r, v, choice); err != nil {
			return err
		}
	}
	return s.schedule(d.model.Queueing(r.out.InputTokens), enqueue, slot)
}

// recordExpectedHits records how many prompt tokens the router expects to be cached at the chosen
// replica: from its prefix index or, if it uses the true caches instead, from these. It adds the
// prompt to the prefix index.
func (s *simulation) recordExpectedHits(r *request, chosen *policy.Replica, d *deployment) {
	needs, shadow := s.router.routing, s.router.shadow
	matched := chosen.Matched
	switch {
	case needs&policy.NeedShadow != 0:
	case needs&policy.NeedCache != 0:
		matched = chosen.Cached
	case shadow != nil: // chosen has what admission saw last
		s.applyEvictions()
		one := []policy.Replica{*chosen}
		shadow.Match(r.path, int(r.out.InputTokens), one)
		matched = one[0].Matched
	default:
		return
	}
	if shadow != nil {
		shadow.RecordRouting(chosen.Index, r.path, int(r.out.InputTokens))
	}
	r.out.ExpectedCachedTokens = min(int64(matched)*d.limits.blockSize, d.limits.maxCachedTokens(r.out.InputTokens))
}

// enqueue hands a request to its replica.
func (s *simulation) enqueue(slot int32) {
	r := &s.slots[slot]
	s.beforeChange(r.replica, s.eventsDone)
	s.replicas[r.replica].removeInTransit(slot)
	e := s.replicas[r.replica].engine
	r.out.EnqueuedUS = stream.Micros(s.now)
	order := 0.0
	if !s.router.fcfs {
		order = s.router.Scheduler.Order(s.local(r, r.replica))
	}
	r.engineSeq = e.Enqueue(engine.Request{Tag: slot, Path: r.path, Input: int(r.out.InputTokens),
		Output: int(r.out.OutputTokens), Order: order})
	if s.anomalies != nil {
		s.anomalies.enqueued(s, slot)
	}
	s.afterChange(r.replica)
	s.markReady(r.replica)
}

// removeInTransit removes a request from those in transit to the replica.
func (p *replica) removeInTransit(slot int32) {
	if at := slices.Index(p.inTransit, slot); at >= 0 {
		p.inTransit = slices.Delete(p.inTransit, at, at+1)
	}
}

// preemptionScore ranks a running request of a replica for preemption.
func (s *simulation) preemptionScore(slot, replica int32, p engine.Progress) float64 {
	l := s.local(&s.slots[slot], replica)
	l.Sequence = policy.Sequence{Generated: p.Generated, Computed: p.Computed, Blocks: p.Blocks}
	return s.router.Preemption.PreemptionScore(l)
}

// expire ends a request at its deadline, whatever its stage.
func (s *simulation) expire(slot int32) error {
	r := &s.slots[slot]
	r.deadline = des.Time(stream.Never)
	reason := stream.ReasonDeadline
	switch {
	case r.engineSeq != missing:
		return s.abort(slot)
	case r.inFlowQueue:
		s.removeFromFlow(slot)
	default:
		s.staleEvents++ // its next stage, once it is gone
	}
	if r.admissionDelayed {
		reason = stream.ReasonAdmissionDelay
	}
	if r.replica != missing {
		s.telemetry.states[r.replica].Inflight--
		s.replicas[r.replica].removeInTransit(slot)
	}
	if !r.out.AdmittedUS.IsZero() {
		s.countDeparted(r)
	}
	return s.drop(slot, stream.StateTimedOut, reason)
}

// abort ends a request at its deadline that a replica holds.
func (s *simulation) abort(slot int32) error {
	r := &s.slots[slot]
	at := r.replica
	s.beforeChange(at, s.eventsDone)
	e := s.replicas[at].engine
	partial, removed := e.Abort(r.engineSeq)
	r.recordResult(&partial)
	s.afterChange(at)
	if err := s.finalize(slot, stream.StateTimedOut, stream.ReasonDeadline); err != nil {
		return err
	}
	if removed { // else it leaves when its step ends
		s.depart(at, slot)
		s.scheduleDrain()
	}
	return nil
}

// depart counts a request that has left its replica.
func (s *simulation) depart(replica, slot int32) {
	s.telemetry.states[replica].Inflight--
	s.countDeparted(&s.slots[slot])
	s.release(slot)
}

// recordResult adds the engine's result to the outcome.
func (r *request) recordResult(res *engine.Result) {
	r.out.GeneratedTokens = int64(res.Generated)
	r.out.ITLUS = res.Gaps.List
	if res.Gaps.Max > 0 {
		r.out.ITLMaxUS = stream.Micros(res.Gaps.Max)
	}
}

// finalize makes a request final and writes its outcome.
func (s *simulation) finalize(slot int32, state, reason string) error {
	r := &s.slots[slot]
	r.isFinal = true
	s.openCount--
	o := &r.out
	o.State, o.Reason = state, reason
	r.endPreemption(s.now)
	if state != stream.StateCompleted {
		o.EndedUS = stream.Micros(s.now)
	}
	o.SLOMet = metrics.SLOMet(o, r.class.Targets)
	switch state {
	case stream.StateCompleted:
		s.counts.Completed++
	case stream.StateRejected:
		s.counts.Rejected++
	case stream.StateTimedOut:
		s.counts.TimedOut++
	case stream.StateUnfinished:
		s.counts.Unfinished++
	}
	s.sink.addOutcome(r.position, o, stream.Micros(s.now))
	if s.regrets != nil {
		s.regrets.recordEnd(r)
	}
	if s.checker != nil {
		if err := s.checker.outcome(r); err != nil {
			return err
		}
	}
	if s.anomalies != nil {
		if err := s.anomalies.finished(s, slot); err != nil {
			return err
		}
	}
	if err := s.trace.outcome(o); err != nil || r.sessionSlot == missing {
		return err
	}
	s.countCall(r)
	if state == stream.StateCompleted { // callCompleted does the rest
		return nil
	}
	return s.callFailed(r.sessionSlot, r.step, o) // may move the slots
}

// close ends the run: requests that are not final are unfinished.
func (s *simulation) close() error {
	var open []int32
	for slot := range s.slots {
		r := &s.slots[slot]
		// In a fork the horizon may precede the last arrival read.
		if r.position >= 0 && !r.isFinal && des.Time(r.out.ArrivalUS) <= s.horizon {
			open = append(open, int32(slot))
		}
	}
	slices.SortFunc(open, func(a, b int32) int { return cmp.Compare(s.slots[a].position, s.slots[b].position) })
	if s.horizon != noHorizon && len(open) > 0 {
		s.now = s.horizon
	}
	for _, slot := range open {
		r := &s.slots[slot]
		if r.engineSeq != missing {
			partial, _ := s.replicas[r.replica].engine.Abort(r.engineSeq)
			r.recordResult(&partial)
		}
		if err := s.finalize(slot, stream.StateUnfinished, stream.ReasonHorizon); err != nil {
			return err
		}
	}
	if err := s.closeSessions(); err != nil {
		return err
	}
	for i := range s.replicas {
		s.replicas[i].engine.Stop(s.now)
	}
	if s.anomalies != nil {
		if err := s.anomalies.close(s); err != nil {
			return err
		}
	}
	c := &s.counts
	if sum := c.Completed + c.Rejected + c.TimedOut + c.Failed + c.Unfinished; sum != c.Offered {
		return fmt.Errorf("%d requests were offered, but %d have a final state", c.Offered, sum)
	}
	return nil
}
