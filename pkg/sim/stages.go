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

// The stages of a request, each one event: arrive, admit, route, enqueue; then
// the replica has it until it completes, or expire ends it before.

// modelOf returns the number of the model called name, of the first one if name
// is empty, -1 if nobody serves it.
func (s *simulation) modelOf(name string) int {
	if name == "" {
		return 0
	}
	return slices.IndexFunc(s.models, func(m servedModel) bool { return m.name == name })
}

// arrive offers a request to the cluster.
func (s *simulation) arrive(slot int32) error {
	if s.slots[slot].of == nowhere {
		if err := s.pull(); err != nil { // may move the slots
			return err
		}
	}
	r := &s.slots[slot]
	if s.counts.Offered == 0 {
		s.first = s.now
	}
	s.counts.Offered++
	if s.check != nil {
		if err := s.check.call(r); err != nil {
			return err
		}
	}
	s.offer(r)
	if r.refusal != "" {
		r.deadline = des.Time(stream.Never)
		return s.refuse(slot, stream.StateRejected, r.refusal)
	}
	if r.deadline >= 0 {
		s.queue.Push(des.NewEvent(r.deadline, deadline, r.position, slot))
	}
	return s.soon(s.router.AdmissionLatencyUS, admission, slot)
}

// impossible says why no deployment can ever serve the request: the reason of
// the first of its model; "" if one can.
func (s *simulation) impossible(r *request) string {
	if r.model < 0 {
		return stream.ReasonNoDeployment
	}
	r.out.Model = s.models[r.model].name
	first := ""
	for _, d := range s.models[r.model].deployments {
		why := s.deployments[d].limits.refuses(r.out.InputTokens, r.out.OutputTokens)
		if why == "" {
			return ""
		}
		if first == "" {
			first = why
		}
	}
	return first
}

// admit asks the admission policy and, if that lets the request pass, gives it
// its priority.
func (s *simulation) admit(slot int32) error {
	r := &s.slots[slot]
	r.delayed = false
	var v policy.Verdict
	spent := false // it was delayed as often as may be
	if !s.router.admitsAll {
		view := s.view(r, s.router.admission)
		v = s.router.Admission.Admit(view)
		if s.forced.at == s.decisions {
			v = s.forced.verdict
		}
		verdict := v.Action.String()
		if v.Action == policy.Delay && r.out.Delays >= int64(s.router.MaxDelays) {
			spent, verdict, v.DelayUS = true, stream.VerdictExpire, 0
		}
		if err := s.out.verdict(s, r, stream.StageAdmission, verdict, v, len(view.Replicas)); err != nil {
			return err
		}
		if s.regrets != nil {
			s.regrets.admitted(s, r, view, v)
		}
	}
	switch {
	case v.Action == policy.Reject:
		return s.refuse(slot, stream.StateRejected, stream.ReasonAdmission)
	case spent:
		return s.refuse(slot, stream.StateTimedOut, stream.ReasonAdmissionDelay)
	case v.Action == policy.Delay:
		s.router.delays++
		r.out.Delays++
		r.delayed = true
		return s.soon(v.DelayUS, admission, slot)
	}
	s.enter(r)
	if !s.router.onePriority {
		priority, rule := s.router.Priority.Priority(s.view(r, s.router.priority), &r.hints)
		r.out.Priority = finite(priority)
		if err := s.out.priority(s, r, rule); err != nil {
			return err
		}
	}
	r.out.AdmittedUS = stream.Micros(s.now)
	return s.soon(s.router.RoutingLatencyUS, routing, slot)
}

// refuse ends a request that is not in any replica.
func (s *simulation) refuse(slot int32, state, reason string) error {
	err := s.finish(slot, state, reason)
	s.release(slot)
	return err
}

// route sends a request to a replica, or lets it wait in flow control.
func (s *simulation) route(slot int32) error {
	if s.router.flows != nil {
		return s.hold(slot)
	}
	return s.dispatch(slot)
}

// dispatch sends a request to a replica.
func (s *simulation) dispatch(slot int32) error {
	r := &s.slots[slot]
	v := s.view(r, s.router.routing)
	v.Account = s.out.begin(len(v.Replicas))
	choice := s.router.Routing.Route(v)
	if s.clairvoyant {
		v.Account = s.out.begin(len(v.Replicas))
		choice = s.judge.clairvoyant(s, r, v)
	}
	v.Account = nil
	if s.forced.at == s.decisions {
		choice.Candidate = s.forced.candidate
	}
	chosen := v.Replicas[choice.Candidate]
	target := &s.replicas[chosen.Index]
	d := &s.deployments[target.deployment]
	s.expect(r, &chosen, d)
	target.requests++
	if s.judge != nil {
		target.coming = append(target.coming, slot)
	}
	if d.measured != nil {
		d.use.sent(r.out.InputTokens, r.out.OutputTokens)
	}
	r.replica = chosen.Index
	r.out.RoutedUS, r.out.Deployment, r.out.Replica = stream.Micros(s.now), d.id, target.index
	if err := s.out.routing(s, r, v, choice); err != nil {
		return err
	}
	s.seen.states[chosen.Index].Inflight++ // the policy had not seen that
	if s.regrets != nil {
		if err := s.regrets.routed(s, r, v, choice); err != nil {
			return err
		}
	}
	return s.soon(d.model.Queueing(r.out.InputTokens), enqueue, slot)
}

// expect notes how much of the prompt the router expects to be cached at the chosen
// replica: what its shadow says or, where it looks into the caches and not at the
// shadow, what it saw there. The shadow learns of the choice.
func (s *simulation) expect(r *request, chosen *policy.Replica, d *deployment) {
	needs, shadow := s.router.routing, s.router.shadow
	matched := chosen.Matched
	switch {
	case needs&policy.NeedShadow != 0:
	case needs&policy.NeedCache != 0:
		matched = chosen.Cached
	case shadow != nil: // chosen has what admission saw last
		s.hear()
		one := []policy.Replica{*chosen}
		shadow.Look(r.path, int(r.out.InputTokens), one)
		matched = one[0].Matched
	default:
		return
	}
	if shadow != nil {
		shadow.Sent(chosen.Index, r.path, int(r.out.InputTokens))
	}
	r.out.ExpectedCachedTokens = min(int64(matched)*d.limits.blockSize, d.limits.hittable(r.out.InputTokens))
}

// enqueue hands a request to its replica.
func (s *simulation) enqueue(slot int32) {
	r := &s.slots[slot]
	s.before(r.replica, s.refreshed)
	s.replicas[r.replica].came(slot)
	e := s.replicas[r.replica].engine
	r.out.EnqueuedUS = stream.Micros(s.now)
	order := 0.0
	if !s.router.asTheyCome {
		order = s.router.Scheduler.Order(s.local(r, r.replica))
	}
	r.seq = e.Enqueue(engine.Request{Tag: slot, Path: r.path, Input: int(r.out.InputTokens), Output: int(r.out.OutputTokens), Order: order})
	if s.lookout != nil {
		s.lookout.enqueued(s, slot)
	}
	s.after(r.replica)
	s.wake(r.replica)
}

// came notes that a request is not on its way to the replica any more.
func (p *replica) came(slot int32) {
	if at := slices.Index(p.coming, slot); at >= 0 {
		p.coming = slices.Delete(p.coming, at, at+1)
	}
}

// victim is how gladly a running request of a replica is preempted.
func (s *simulation) victim(slot, replica int32, p engine.Progress) float64 {
	l := s.local(&s.slots[slot], replica)
	l.Sequence = policy.Sequence{Generated: p.Generated, Computed: p.Computed, Blocks: p.Blocks}
	return s.router.Preemption.Victim(l)
}

// expire ends a request at its deadline, wherever it is.
func (s *simulation) expire(slot int32) error {
	r := &s.slots[slot]
	r.deadline = des.Time(stream.Never)
	reason := stream.ReasonDeadline
	switch {
	case r.seq != nowhere:
		return s.abort(slot)
	case r.held:
		s.unhold(slot)
	default:
		s.stale++ // the stage it was on its way to, as soon as it is gone
	}
	if r.delayed {
		reason = stream.ReasonAdmissionDelay
	}
	if r.replica != nowhere {
		s.seen.states[r.replica].Inflight--
		s.replicas[r.replica].came(slot)
	}
	if !r.out.AdmittedUS.IsZero() {
		s.leave(r)
	}
	return s.refuse(slot, stream.StateTimedOut, reason)
}

// abort ends a request at its deadline that its replica has.
func (s *simulation) abort(slot int32) error {
	r := &s.slots[slot]
	at := r.replica
	s.before(at, s.refreshed)
	e := s.replicas[at].engine
	had, left := e.Abort(r.seq)
	r.took(&had)
	s.after(at)
	if err := s.finish(slot, stream.StateTimedOut, stream.ReasonDeadline); err != nil {
		return err
	}
	if left { // else when its step ends
		s.depart(at, slot)
		s.drainSoon()
	}
	return nil
}

// depart counts a request as gone that its replica no longer has.
func (s *simulation) depart(replica, slot int32) {
	s.seen.states[replica].Inflight--
	s.leave(&s.slots[slot])
	s.release(slot)
}

// took notes what a replica did for the request.
func (r *request) took(had *engine.Result) {
	r.out.GeneratedTokens = int64(had.Generated)
	r.out.ITLUS = had.Gaps.List
	if had.Gaps.Max > 0 {
		r.out.ITLMaxUS = stream.Micros(had.Gaps.Max)
	}
}

// finish makes a request final and writes its outcome.
func (s *simulation) finish(slot int32, state, reason string) error {
	r := &s.slots[slot]
	r.final = true
	s.open--
	o := &r.out
	o.State, o.Reason = state, reason
	r.resumed(s.now)
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
	s.ledger.final(r.position, o, stream.Micros(s.now))
	if s.regrets != nil {
		s.regrets.ended(r)
	}
	if s.check != nil {
		if err := s.check.outcome(r); err != nil {
			return err
		}
	}
	if s.lookout != nil {
		if err := s.lookout.final(s, slot); err != nil {
			return err
		}
	}
	if err := s.out.outcome(o); err != nil || r.of == nowhere {
		return err
	}
	s.called(r)
	if state == stream.StateCompleted { // proceed does the rest
		return nil
	}
	return s.failed(r.of, r.step, o) // may move the slots
}

// close ends the run: what is not final by now is unfinished.
func (s *simulation) close() error {
	var open []int32
	for slot := range s.slots {
		r := &s.slots[slot]
		// A fork may have a horizon before the arrival that was read last.
		if r.position >= 0 && !r.final && des.Time(r.out.ArrivalUS) <= s.horizon {
			open = append(open, int32(slot))
		}
	}
	slices.SortFunc(open, func(a, b int32) int { return cmp.Compare(s.slots[a].position, s.slots[b].position) })
	if s.horizon != noHorizon && len(open) > 0 {
		s.now = s.horizon
	}
	for _, slot := range open {
		r := &s.slots[slot]
		if r.seq != nowhere {
			had, _ := s.replicas[r.replica].engine.Abort(r.seq)
			r.took(&had)
		}
		if err := s.finish(slot, stream.StateUnfinished, stream.ReasonHorizon); err != nil {
			return err
		}
	}
	if err := s.closeSessions(); err != nil {
		return err
	}
	for i := range s.replicas {
		s.replicas[i].engine.Stop(s.now)
	}
	if s.lookout != nil {
		if err := s.lookout.close(s); err != nil {
			return err
		}
	}
	c := &s.counts
	if sum := c.Completed + c.Rejected + c.TimedOut + c.Failed + c.Unfinished; sum != c.Offered {
		return fmt.Errorf("%d requests offered, %d accounted for", c.Offered, sum)
	}
	return nil
}
