package sim

import (
	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/record"
)

// Flow control: requests wait in front of routing while the replicas of their
// model are saturated.

// flowNeeds is what saturation is made of, and whose turn it is.
const flowNeeds = policy.NeedQueueDepth | policy.NeedKVUtil | policy.NeedTenant

// hold lets a request wait until it can be dispatched, which may be at once.
func (s *simulation) hold(slot int32) error {
	r := &s.slots[slot]
	f, c := s.router.flows[r.model], s.router.FlowControl
	if c.Capacity > 0 && f.Len() >= c.Capacity {
		s.router.flow.rejected++
		if err := s.out.verdict(s, r, record.StageFlowControl, "reject", 0); err != nil {
			return err
		}
		s.leave(r)
		return s.refuse(slot, record.StateRejected, record.ReasonAdmission)
	}
	f.Push(slot, s.about(r))
	r.held = true
	if err := s.drain(r.model); err != nil {
		return err
	}
	if r = &s.slots[slot]; !r.held {
		return nil
	}
	s.router.flow.queued++
	s.router.flow.peak = max(s.router.flow.peak, int64(f.Len()))
	if c.TTLUS > 0 {
		r.patience = s.now + c.TTLUS
		s.queue.Push(des.NewEvent(r.patience, patience, r.position, slot))
	}
	return s.out.verdict(s, r, record.StageFlowControl, "queue", 0)
}

// drain dispatches who waits for a model while its replicas are not saturated.
func (s *simulation) drain(model int) error {
	f := s.router.flows[model]
	for f.Len() > 0 {
		slot := f.First()
		v := s.view(&s.slots[slot], flowNeeds)
		if v.Saturation() >= s.router.FlowControl.Saturation {
			s.watchSnapshots()
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

// watchSnapshots looks at the queues again when a snapshot that saturation is
// made of is read next.
func (s *simulation) watchSnapshots() {
	o := s.seen
	next := noHorizon
	for _, t := range o.periodic {
		if flowNeeds.Of(t.field) {
			next = min(next, s.now-s.now%t.us+t.us)
		}
	}
	for _, t := range o.demands {
		if flowNeeds.Of(t.field) {
			next = min(next, s.now+t.us)
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
	r.patience = des.Time(record.Never)
	if !r.held {
		return nil
	}
	s.router.flow.expired++
	if err := s.out.verdict(s, r, record.StageFlowControl, "expire", 0); err != nil {
		return err
	}
	s.unhold(slot)
	s.leave(r)
	return s.refuse(slot, record.StateTimedOut, record.ReasonAdmissionDelay)
}

// unhold takes a request out of its queue.
func (s *simulation) unhold(slot int32) {
	r := &s.slots[slot]
	r.held = false
	s.router.flows[r.model].Remove(slot, r.tenant)
}
