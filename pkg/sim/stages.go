package sim

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/record"
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
	if err := s.pull(); err != nil { // may move the slots
		return err
	}
	r := &s.slots[slot]
	if s.counts.Offered == 0 {
		s.first = s.now
	}
	s.counts.Offered++
	if r.refusal != "" {
		r.deadline = des.Time(record.Never)
		err := s.finish(slot, record.StateRejected, r.refusal)
		s.release(slot)
		return err
	}
	if r.deadline >= 0 {
		s.queue.Push(des.NewEvent(r.deadline, deadline, r.position, slot))
	}
	return s.soon(s.plane.AdmissionLatencyUS, admission, slot)
}

// impossible says why no deployment can ever serve the request: the reason of
// the first of its model; "" if one can.
func (s *simulation) impossible(r *request) string {
	if r.model < 0 {
		return record.ReasonNoDeployment
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

// admit lets every request pass.
func (s *simulation) admit(slot int32) error {
	s.slots[slot].out.AdmittedUS = record.Micros(s.now)
	return s.soon(s.plane.RoutingLatencyUS, routing, slot)
}

// route sends a request to a replica.
func (s *simulation) route(slot int32) error {
	r := &s.slots[slot]
	v := &s.view
	v.Group, v.InputTokens, v.Path, v.Replicas = r.model, int(r.out.InputTokens), r.path, s.reachable(r)
	if s.shadow != nil {
		s.shadow.Look(v)
	}
	choice := s.router.Route(v)
	chosen := v.Replicas[choice.Candidate]
	target := &s.replicas[chosen.Index]
	d := &s.deployments[target.deployment]
	if s.shadow != nil {
		s.shadow.Sent(chosen.Index, r.path, v.InputTokens)
		// The last prompt token is computed whatever is cached.
		hittable := d.limits.blockSize * ((r.out.InputTokens - 1) / d.limits.blockSize)
		r.out.ExpectedCachedTokens = min(int64(chosen.Matched)*d.limits.blockSize, hittable)
	}
	s.states[chosen.Index].Inflight++
	target.requests++
	if d.measured != nil {
		d.use.sent(r.out.InputTokens, r.out.OutputTokens)
	}
	r.replica = chosen.Index
	r.out.RoutedUS, r.out.Deployment, r.out.Replica = record.Micros(s.now), d.id, target.index
	if err := s.out.decision(s, r, choice); err != nil {
		return err
	}
	s.decisions++
	return s.soon(d.model.Queueing(r.out.InputTokens), enqueue, slot)
}

// reachable returns the states of the replicas that can hold the request.
func (s *simulation) reachable(r *request) []policy.Replica {
	deployments := s.models[r.model].deployments
	if len(deployments) == 1 {
		d := &s.deployments[deployments[0]]
		return s.states[d.first:d.end]
	}
	s.candidates = s.candidates[:0]
	for _, i := range deployments {
		if d := &s.deployments[i]; d.limits.refuses(r.out.InputTokens, r.out.OutputTokens) == "" {
			s.candidates = append(s.candidates, s.states[d.first:d.end]...)
		}
	}
	return s.candidates
}

// enqueue hands a request to its replica.
func (s *simulation) enqueue(slot int32) {
	r := &s.slots[slot]
	e := s.replicas[r.replica].engine
	r.out.EnqueuedUS = record.Micros(s.now)
	r.seq = e.Enqueue(engine.Request{Tag: slot, Path: r.path, Input: int(r.out.InputTokens), Output: int(r.out.OutputTokens)})
	s.states[r.replica].QueueDepth = int32(e.Waiting())
	s.wake(r.replica)
}

// expire ends a request at its deadline, wherever it is.
func (s *simulation) expire(slot int32) error {
	r := &s.slots[slot]
	r.deadline = des.Time(record.Never)
	left := true
	if r.seq != nowhere {
		e := s.replicas[r.replica].engine
		var had engine.Result
		had, left = e.Abort(r.seq)
		r.took(&had)
		s.states[r.replica].QueueDepth = int32(e.Waiting())
	}
	if err := s.finish(slot, record.StateTimedOut, record.ReasonDeadline); err != nil {
		return err
	}
	if !left {
		return nil // until its step ends
	}
	if r.replica != nowhere {
		s.states[r.replica].Inflight--
	}
	s.release(slot)
	if r.seq == nowhere {
		s.forsake() // the stage it was on its way to
	}
	return nil
}

// took notes what a replica did for the request.
func (r *request) took(had *engine.Result) {
	r.out.GeneratedTokens = int64(had.Generated)
	r.out.ITLUS = had.Gaps.List
	if had.Gaps.Max > 0 {
		r.out.ITLMaxUS = record.Micros(had.Gaps.Max)
	}
}

// finish makes a request final and writes its outcome.
func (s *simulation) finish(slot int32, state, reason string) error {
	r := &s.slots[slot]
	r.final = true
	s.open--
	o := &r.out
	o.State, o.Reason = state, reason
	o.SLOMet = metrics.SLOMet(o, s.targets[o.SLOClass])
	switch state {
	case record.StateCompleted:
		s.counts.Completed++
	case record.StateRejected:
		s.counts.Rejected++
	case record.StateTimedOut:
		s.counts.TimedOut++
	case record.StateUnfinished:
		s.counts.Unfinished++
	}
	s.metrics.Add(o)
	s.metrics.Until(record.Micros(s.now))
	if s.check != nil {
		if err := s.check.outcome(r); err != nil {
			return err
		}
	}
	return s.out.outcome(o)
}

// close ends the run: what is not final by now is unfinished.
func (s *simulation) close() error {
	var open []int32
	for slot := range s.slots {
		r := &s.slots[slot]
		if r.position >= 0 && !r.final {
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
		if err := s.finish(slot, record.StateUnfinished, record.ReasonHorizon); err != nil {
			return err
		}
	}
	for i := range s.replicas {
		s.replicas[i].engine.Stop(s.now)
	}
	c := &s.counts
	if sum := c.Completed + c.Rejected + c.TimedOut + c.Failed + c.Unfinished; sum != c.Offered {
		return fmt.Errorf("%d requests offered, %d accounted for", c.Offered, sum)
	}
	return nil
}
