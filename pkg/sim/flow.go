package sim

import (
	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// Flow control: requests wait in front of routing while the replicas of their
// model are saturated.

// hold lets a request wait until it can be dispatched, which may be at once. One
// that would have to wait in a full queue is rejected, and was never admitted.
func (s *simulation) hold(slot int32) error {
	r := &s.slots[slot]
	model := r.model
	f, c := s.router.flows[model], s.router.FlowControl
	f.Push(slot, s.about(r))
	r.held = true
	if err := s.drain(model); err != nil {
		return err
	}
	if r = &s.slots[slot]; !r.held {
		return nil
	}
	candidates := len(s.reachable(r, 0))
	if c.Capacity > 0 && f.Len() > c.Capacity {
		s.router.flowStats.rejected++
		s.unhold(slot)
		s.leave(r)
		r.out.AdmittedUS = stream.Never
		if err := s.out.verdict(s, r, stream.StageFlowControl, "reject", policy.Verdict{}, candidates); err != nil {
			return err
		}
		return s.refuse(slot, stream.StateRejected, stream.ReasonAdmission)
	}
	s.router.flowStats.queued++
	s.router.flowStats.peak = max(s.router.flowStats.peak, int64(f.Len()))
	if c.TTLUS > 0 {
		r.patience = s.now + c.TTLUS
		s.queue.Push(des.NewEvent(r.patience, patience, r.position, slot))
	}
	return s.out.verdict(s, r, stream.StageFlowControl, "queue", policy.Verdict{}, candidates)
}

// drain dispatches who waits for a model while its replicas are not saturated.
func (s *simulation) drain(model int) error {
	f := s.router.flows[model]
	for f.Len() > 0 {
		slot := f.First()
		v := s.view(&s.slots[slot], policy.FlowNeeds)
		if v.Saturation() >= s.router.FlowControl.Saturation {
			s.watchSnapshots(v)
			return nil
		}
		f.Pop()
		r := &s.slots[slot]
		r.held = false
		if err := s.dispatch(slot); err != nil {
			return err
		}
	}
	return nil
}

// drainSoon looks at the queues again when all that ends at this instant has,
// or all that starts.
func (s *simulation) drainSoon() {
	if s.router.flows != nil {
		s.drainNow()
	}
}

func (s *simulation) drainNow() {
	if s.router.drainAt != s.now {
		s.router.drainAt = s.now
		s.queue.Push(des.NewEvent(s.now, drain, 0, nowhere))
	}
}

// watchSnapshots looks at the queues again when a value that saturation is made of
// is read next, of any of the replicas in v.
func (s *simulation) watchSnapshots(v *policy.View) {
	o := s.seen
	next := noHorizon
	for _, t := range o.periodic {
		if policy.FlowNeeds.Of(t.field) {
			next = min(next, s.now-s.now%t.us+t.us)
		}
	}
	for _, t := range o.demands {
		if policy.FlowNeeds.Of(t.field) {
			for i := range v.Replicas {
				next = min(next, v.Replicas[i].Stats.TakenUS[t.field]+t.us)
			}
		}
	}
	if next == noHorizon || s.router.tickAt > s.now && s.router.tickAt <= next {
		return
	}
	s.router.tickAt = next
	s.queue.Push(des.NewEvent(next, drain, 0, nowhere))
}

// drainAll looks at all queues.
func (s *simulation) drainAll() error {
	s.refreshed, s.router.drainAt = true, -1
	defer func() { s.refreshed = false }()
	for model := range s.router.flows {
		if err := s.drain(model); err != nil {
			return err
		}
	}
	return nil
}

// lose ends the wait of a request that was held too long.
func (s *simulation) lose(slot int32) error {
	r := &s.slots[slot]
	r.patience = des.Time(stream.Never)
	if !r.held {
		return nil
	}
	s.router.flowStats.expired++
	if err := s.out.verdict(s, r, stream.StageFlowControl, stream.VerdictExpire, policy.Verdict{}, len(s.reachable(r, 0))); err != nil {
		return err
	}
	s.unhold(slot)
	s.leave(r)
	return s.refuse(slot, stream.StateTimedOut, stream.ReasonAdmissionDelay)
}

// unhold takes a request out of its queue.
func (s *simulation) unhold(slot int32) {
	r := &s.slots[slot]
	r.held = false
	s.router.flows[r.model].Remove(slot, r.tenant)
}
