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
	r := s.request(slot)
	if r.sessionSlot == missing && r.attempt() == 0 {
		if err := s.readNext(); err != nil {
			return err
		}
	}
	if s.counts.Offered == 0 {
		s.events.firstArrival = s.now
	}
	if r.attempt() == 0 {
		s.counts.Offered++
	} else {
		s.counts.Retries++
	}
	if err := s.observers.notify(s, onArrival, slot); err != nil {
		return err
	}
	s.router.countArrival(r, s.now)
	if s.fleet != nil {
		s.countTraffic(r)
	}
	if r.rejectReason != "" {
		if r.model < 0 {
			s.unserved.count(r.out.Model)
		}
		r.deadline = never
		return s.drop(slot, stream.StateRejected, r.rejectReason)
	}
	if r.deadline >= 0 {
		s.events.queue.Push(des.NewEvent(r.deadline, deadline, r.position, slot))
	}
	return s.schedule(s.router.config.AdmissionLatencyUS, admission, slot)
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
		reason := s.rejectReason(&s.deployments[d], r)
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
	r := s.request(slot)
	r.admissionDelayed = false
	v, exhausted, err := s.verdict(slot)
	if err != nil {
		return err
	}
	switch {
	case v.Action == policy.Reject:
		return s.drop(slot, stream.StateRejected, stream.ReasonAdmission)
	case exhausted:
		return s.drop(slot, stream.StateTimedOut, stream.ReasonAdmissionDelay)
	case v.Action == policy.Delay:
		s.router.traffic.delays++
		r.out.Delays++
		r.admissionDelayed = true
		return s.schedule(v.DelayUS, admission, slot)
	}
	s.router.countInflight(r, 1)
	if !s.router.needs.constantPriority {
		view := s.router.views.view(s, r, s.router.needs.priority)
		priority, rule := s.router.policies.Priority.Priority(view, &r.hints)
		r.out.Priority = finite(priority)
		d := s.decisions.next(stream.StagePriority)
		d.rule = rule
		if err := s.observers.notify(s, onDecision, slot); err != nil {
			return err
		}
	}
	r.out.AdmittedUS = stream.Micros(s.now)
	return s.schedule(s.router.config.RoutingLatencyUS, routing, slot)
}

// verdict asks the admission policy. exhausted: it delays the request once more than allowed.
func (s *simulation) verdict(slot int32) (v policy.Verdict, exhausted bool, err error) {
	if s.router.needs.admitsAll {
		return policy.Verdict{}, false, nil
	}
	r := s.request(slot)
	view := s.router.views.view(s, r, s.router.needs.admission)
	view.Draw.Repeat = r.out.Delays // a delayed request gets another chance
	v = s.router.policies.Admission.Admit(view)
	if s.decisions.overridden() {
		v = s.decisions.override.verdict
	}
	d := s.decisions.next(stream.StageAdmission)
	d.verdict, d.view, d.candidates = v.Action.String(), view, len(view.Replicas)
	if v.Action == policy.Delay && r.out.Delays >= int64(s.router.config.MaxDelays) {
		exhausted, d.verdict, v.DelayUS = true, stream.VerdictExpire, 0
	}
	d.given = v
	return v, exhausted, s.observers.notify(s, onDecision, slot)
}

// drop ends a request that no replica holds.
func (s *simulation) drop(slot int32, state, reason string) error {
	err := s.finalize(slot, state, reason)
	s.release(slot)
	return err
}

// chooser picks the replica of a request among the candidates in the view, and the one that computes its prompt.
type chooser interface {
	observer
	choose(s *simulation, slot int32, v *policy.View) (policy.Choice, error)
	choosePrefill(s *simulation, slot int32, v *policy.View) (policy.Choice, error)
	// clone returns a chooser for a fork.
	clone() chooser
}

// policyChooser asks the routing policy.
type policyChooser struct{}

func (policyChooser) choose(s *simulation, slot int32, v *policy.View) (policy.Choice, error) {
	if err := s.observers.notify(s, onRouting, slot); err != nil {
		return policy.Choice{}, err
	}
	return s.router.policies.Routing.Route(v), nil
}

func (policyChooser) choosePrefill(s *simulation, slot int32, v *policy.View) (policy.Choice, error) {
	if err := s.observers.notify(s, onRouting, slot); err != nil {
		return policy.Choice{}, err
	}
	return s.router.policies.PrefillRouting.Route(v), nil
}

func (policyChooser) clone() chooser { return policyChooser{} }

func (policyChooser) hooks() []hook { return nil }

func (policyChooser) observe(*simulation, hook, int32) error { return nil }

// send routes a request and sends it to its replica.
func (s *simulation) send(slot int32) error {
	r := s.request(slot)
	if !s.reaches(r) {
		return s.failUnreached(slot)
	}
	needs := s.router.needs.routing
	candidates := s.frontEnds(s.openAmong(s.router.views.reachable(s, r, needs)))
	if p := s.deployments[s.replicas[candidates[0].Index].deployment].pool; p != nil && p.prefillFirst {
		return s.sendPrefillFirst(slot)
	}
	v := s.router.views.viewOf(s, r, needs, candidates)
	choice, err := s.router.chooser.choose(s, slot, v)
	if err != nil {
		return err
	}
	if s.decisions.overridden() {
		choice.Candidate = s.decisions.override.candidate
	}
	if err := s.recordRoute(slot, v, choice); err != nil {
		return err
	}
	to := r.replica
	d := &s.deployments[s.replicas[to].deployment]
	refused := s.failures != nil && !s.accepts(to)
	disaggregates := !refused && s.disaggregates(d, r)
	if !disaggregates { // else it is sent to a prefill replica first
		s.router.flow.recordSend(to)
	}
	if err := s.observers.notify(s, onSend, slot); err != nil {
		return err
	}
	if refused {
		return s.refuseSent(slot, to)
	}
	if reason := s.rejects(to); reason != "" {
		return s.rejectSent(slot, reason)
	}
	if disaggregates {
		return s.sendToPrefill(slot, d)
	}
	return s.leave(slot, d)
}

// recordRoute records that the routing policy has chosen the replica of a request.
func (s *simulation) recordRoute(slot int32, v *policy.View, choice policy.Choice) error {
	r, chosen := s.request(slot), v.Replicas[choice.Candidate]
	target := &s.replicas[chosen.Index]
	s.router.prefixes.recordRouting(s, r, &chosen, s.router.needs.routing)
	target.requests++
	s.countChoice(target)
	r.replica = chosen.Index
	if r.out.Redirects == 0 {
		r.out.RoutedUS = stream.Micros(s.now)
	}
	r.out.Deployment, r.out.Replica = s.deployments[target.deployment].id, target.index
	decision := s.decisions.next(stream.StageRouting)
	decision.view, decision.choice = v, choice
	if err := s.observers.notify(s, onDecision, slot); err != nil {
		return err
	}
	s.router.countSent(s, r, &chosen) // after the policy's view was recorded
	return nil
}

// enqueue hands a request to its replica.
func (s *simulation) enqueue(slot int32) error {
	r := s.request(slot)
	if r.handoff.departed {
		s.events.stale--
		return nil
	}
	switch r.handoff.stage {
	case prefilling:
		return s.enqueuePrefill(slot)
	case lapsed:
		if r.handoff.stage = atDecode; !s.deployments[s.replicas[r.replica].deployment].pool.recomputes {
			at := r.replica
			s.leaveOnTheWay(slot)
			if err := s.drop(slot, stream.StateFailed, stream.ReasonTransferTimeout); err != nil {
				return err
			}
			return s.fleet.settle(s, at)
		}
	}
	r.handoff.leaseEnd = never
	if reason := s.rejects(r.replica); reason != "" {
		return s.rejectSent(slot, reason)
	}
	s.telemetry.beforeChange(s, r.replica, s.instantDone())
	e, d := s.replicas[r.replica].engine, &s.deployments[s.replicas[r.replica].deployment]
	if r.out.EnqueuedUS.IsZero() {
		r.out.EnqueuedUS = stream.Micros(s.now)
	}
	s.router.flow.recordEnqueue(r, r.replica)
	order := 0.0
	if !s.router.needs.fcfs {
		order = s.router.policies.Scheduler.Order(s.router.views.local(s, r, r.replica))
	}
	r.engineSeq = e.Enqueue(engine.Request{Tag: slot, Path: r.path, Input: int(r.out.InputTokens),
		Output: int(r.out.OutputTokens), Order: order, Priority: r.out.Priority, Moved: r.moved,
		EOS:    r.eos && d.limits.endsByEOS(r.out.InputTokens, r.out.OutputTokens),
		Drafts: s.drafts(d, r), Adapter: r.adapter, Items: r.items, Remote: r.handoff.stage == atPrefill,
		Grammar: r.grammar.id, CompileUS: d.compileUS(r), Now: s.now})
	r.moved = nil
	if r.grammar.id != 0 {
		s.awaitGrammar(slot)
	}
	if d.door != nil {
		s.countAdmitted(r)
	}
	if err := s.observers.notify(s, onEnqueue, slot); err != nil {
		return err
	}
	s.telemetry.afterChange(s, r.replica)
	s.markReady(r.replica)
	return nil
}

// drafts is what decides which drafts of a request are accepted, if its deployment d has speculative decoding.
func (s *simulation) drafts(d *deployment, r *request) engine.Drafts {
	if !d.speculates {
		return engine.Drafts{}
	}
	return engine.Drafts{Seed: draftSeed(s.draftSeed, r.out.ID), Acceptance: r.draftAcceptance}
}

// preemptionScore ranks a running request of a replica for preemption.
func (s *simulation) preemptionScore(slot, replica int32, p engine.Progress) float64 {
	l := s.router.views.local(s, s.request(slot), replica)
	l.Draw.Repeat = s.now // each preemption draws again
	l.Sequence = policy.Sequence{Generated: p.Generated, Computed: p.Computed, Blocks: p.Blocks}
	return s.router.policies.Preemption.PreemptionScore(l)
}

// expire ends a request at its deadline, whatever its stage.
func (s *simulation) expire(slot int32) error {
	r := s.request(slot)
	r.deadline = never
	reason := stream.ReasonDeadline
	switch {
	case r.isFinal: // lost; the step with it has not ended
		return nil
	case r.handoff.stage != noHandoff && r.handoff.stage != atDecode:
		return s.endHandoff(slot, stream.StateTimedOut, reason)
	case r.engineSeq != missing:
		return s.abort(slot, stream.StateTimedOut, reason)
	case r.inFlowQueue:
		s.router.flow.remove(s, r, slot)
	case r.isEncoding():
		s.stopEncoding(slot)
	default:
		s.events.stale++ // its next stage, once it is gone
	}
	if r.admissionDelayed {
		reason = stream.ReasonAdmissionDelay
	}
	at := r.replica
	if at != missing {
		s.leaveOnTheWay(slot)
	} else if !r.out.AdmittedUS.IsZero() {
		s.router.countInflight(r, -1)
	}
	if err := s.drop(slot, stream.StateTimedOut, reason); err != nil || at == missing {
		return err
	}
	return s.fleet.settle(s, at)
}

// leaveOnTheWay counts a request that has left on the way to its replica.
func (s *simulation) leaveOnTheWay(slot int32) {
	r := s.request(slot)
	s.router.countLeft(s, r)
	s.router.flow.recordDeparture(r)
	s.router.flow.schedule(s)
	s.router.countInflight(r, -1)
}

// abort ends a request that a replica holds.
func (s *simulation) abort(slot int32, state, reason string) error {
	r := s.request(slot)
	at := r.replica
	s.telemetry.beforeChange(s, at, s.instantDone())
	e := s.replicas[at].engine
	waiting := e.Waiting()
	partial, removed := e.Abort(r.engineSeq)
	r.recordResult(&partial)
	s.telemetry.afterChange(s, at)
	if e.WaitsForTransfers() { // others may have waited for its blocks
		s.wake(at)
	}
	if e.Waiting() < waiting || r.handoff.stage != noHandoff {
		s.router.flow.schedule(s)
	}
	if err := s.finalize(slot, state, reason); err != nil || !removed {
		return err // if it is not removed, it leaves when its step ends
	}
	s.depart(slot)
	s.router.flow.schedule(s)
	return s.fleet.settle(s, at)
}

// depart counts a request that has left its replica.
func (s *simulation) depart(slot int32) {
	r := s.request(slot)
	if r.handoff.stage == prefilling { // it has left the decode replica already
		s.router.countLeftReplica(s, r.handoff.replica)
		s.router.flow.recordDeparture(r)
		s.release(slot)
		return
	}
	s.router.countLeft(s, r)
	s.router.flow.recordDeparture(r)
	s.router.countInflight(r, -1)
	s.leaveSlot(slot)
}

// recordResult adds the engine's result to the outcome.
func (r *request) recordResult(res *engine.Result) {
	r.out.GeneratedTokens = int64(res.Generated)
	r.out.ITLUS = res.Gaps.List
	if res.Gaps.Max > 0 {
		r.out.ITLMaxUS = stream.Micros(res.Gaps.Max)
	}
}

// finalize makes a request final and writes its outcome. Its client may then send it again.
func (s *simulation) finalize(slot int32, state, reason string) error {
	r := s.request(slot)
	r.isFinal = true
	s.countEnd(r)
	s.requests.open--
	if s.transfers != nil && !s.transfers.quiet {
		s.transfers.left[slot] = r.out.ID
	}
	o := &r.out
	o.State, o.Reason = state, reason
	r.endPreemption(s.now)
	if state != stream.StateCompleted {
		o.EndedUS = stream.Micros(s.now)
	}
	at, again := s.nextAttempt(r)
	if o.Retried = again; again {
		err := s.observers.notify(s, onFinal, slot)
		s.sendAgain(slot, at)
		return err
	}
	o.SLOMet = metrics.SLOMet(o, r.class.Targets)
	s.counts.Count(state)
	if s.fleet != nil {
		s.countEnded(r)
	}
	if err := s.observers.notify(s, onFinal, slot); err != nil || r.sessionSlot == missing {
		return err
	}
	s.sessions.countCall(s, r)
	if state == stream.StateCompleted { // callCompleted does the rest
		return nil
	}
	return s.sessions.callFailed(s, r.sessionSlot, r.step, o)
}

// byPosition orders slots by the positions of their requests in the stream.
func (s *simulation) byPosition(a, b int32) int {
	return cmp.Compare(s.request(a).position, s.request(b).position)
}

// close ends the run: requests that are not final are unfinished.
func (s *simulation) close() error {
	var open []int32
	for slot := range s.requests.count {
		r := s.request(slot)
		// In a fork the horizon may precede the last arrival read.
		if r.position >= 0 && !r.isFinal && des.Time(r.out.ArrivalUS) <= s.horizon {
			open = append(open, slot)
		}
	}
	slices.SortFunc(open, s.byPosition)
	if s.horizon != noHorizon && len(open) > 0 {
		s.now = s.horizon
	}
	for _, slot := range open {
		r := s.request(slot)
		if r.engineSeq != missing {
			partial, _ := s.replicas[r.replica].engine.Abort(r.engineSeq)
			r.recordResult(&partial)
		}
		if err := s.finalize(slot, stream.StateUnfinished, stream.ReasonHorizon); err != nil {
			return err
		}
	}
	if err := s.sessions.close(s); err != nil {
		return err
	}
	for i := range s.replicas {
		s.replicas[i].engine.Stop(s.now)
	}
	if err := s.observers.notify(s, onClose, missing); err != nil {
		return err
	}
	c := &s.counts
	if sum := c.Completed + c.Rejected + c.TimedOut + c.Failed + c.Unfinished; sum != c.Offered {
		return fmt.Errorf("%d requests were offered, but %d have a final state", c.Offered, sum)
	}
	return nil
}
