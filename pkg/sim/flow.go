package sim

import (
	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// Flow control: requests queue before routing while the replicas of their model are saturated.

// enqueueFlow queues a request until it can be sent, which may be at once. A request that would have
// to wait in a full queue is rejected and counts as never admitted.
func (s *simulation) enqueueFlow(slot int32) error {
	r := &s.slots[slot]
	model := r.model
	f, c := s.router.flows[model], s.router.FlowControl
	f.Push(slot, s.policyRequest(r))
	r.inFlowQueue = true
	if err := s.drainFlow(model); err != nil {
		return err
	}
	if r = &s.slots[slot]; !r.inFlowQueue {
		return nil
	}
	candidates := len(s.reachable(r, 0))
	if c.Capacity > 0 && f.Len() > c.Capacity {
		s.router.flowStats.rejected++
		s.removeFromFlow(slot)
		s.countDeparted(r)
		r.out.AdmittedUS = stream.Never
		if err := s.trace.verdict(s, r, stream.StageFlowControl, "reject", policy.Verdict{}, candidates); err != nil {
			return err
		}
		return s.drop(slot, stream.StateRejected, stream.ReasonAdmission)
	}
	s.router.flowStats.queued++
	s.router.flowStats.peak = max(s.router.flowStats.peak, int64(f.Len()))
	if c.TTLUS > 0 {
		r.flowTimeout = s.now + c.TTLUS
		s.queue.Push(des.NewEvent(r.flowTimeout, flowTimeout, r.position, slot))
	}
	return s.trace.verdict(s, r, stream.StageFlowControl, "queue", policy.Verdict{}, candidates)
}

// drainFlow sends the requests that wait for a model while its replicas are not saturated.
func (s *simulation) drainFlow(model int) error {
	f := s.router.flows[model]
	for f.Len() > 0 {
		slot := f.First()
		v := s.view(&s.slots[slot], policy.FlowNeeds)
		if v.Saturation() >= s.router.FlowControl.Saturation {
			s.scheduleDrainAtRefresh(v)
			return nil
		}
		f.Pop()
		r := &s.slots[slot]
		r.inFlowQueue = false
		if err := s.send(slot); err != nil {
			return err
		}
	}
	return nil
}

// scheduleDrain drains the queues after the other events of this instant.
func (s *simulation) scheduleDrain() {
	if s.router.flows != nil {
		s.pushDrain()
	}
}

func (s *simulation) pushDrain() {
	if s.router.drainAt != s.now {
		s.router.drainAt = s.now
		s.queue.Push(des.NewEvent(s.now, flowDrain, 0, missing))
	}
}

// scheduleDrainAtRefresh drains the queues again when a signal of saturation is next refreshed for
// any replica in v.
func (s *simulation) scheduleDrainAtRefresh(v *policy.View) {
	o := s.telemetry
	next := noHorizon
	for _, t := range o.periodic {
		if policy.FlowNeeds.Has(t.field) {
			next = min(next, s.now-s.now%t.us+t.us)
		}
	}
	for _, t := range o.onDemand {
		if policy.FlowNeeds.Has(t.field) {
			for i := range v.Replicas {
				next = min(next, v.Replicas[i].Stats.TakenUS[t.field]+t.us)
			}
		}
	}
	if next == noHorizon || s.router.refreshAt > s.now && s.router.refreshAt <= next {
		return
	}
	s.router.refreshAt = next
	s.queue.Push(des.NewEvent(next, flowDrain, 0, missing))
}

// drainAllFlows drains all queues.
func (s *simulation) drainAllFlows() error {
	s.eventsDone, s.router.drainAt = true, -1
	defer func() { s.eventsDone = false }()
	for model := range s.router.flows {
		if err := s.drainFlow(model); err != nil {
			return err
		}
	}
	return nil
}

// expireFlow times out a request that has waited too long.
func (s *simulation) expireFlow(slot int32) error {
	r := &s.slots[slot]
	r.flowTimeout = des.Time(stream.Never)
	if !r.inFlowQueue {
		return nil
	}
	s.router.flowStats.expired++
	if err := s.trace.verdict(s, r, stream.StageFlowControl, stream.VerdictExpire, policy.Verdict{},
		len(s.reachable(r, 0))); err != nil {
		return err
	}
	s.removeFromFlow(slot)
	s.countDeparted(r)
	return s.drop(slot, stream.StateTimedOut, stream.ReasonAdmissionDelay)
}

// removeFromFlow removes a request from its queue.
func (s *simulation) removeFromFlow(slot int32) {
	r := &s.slots[slot]
	r.inFlowQueue = false
	s.router.flows[r.model].Remove(slot, r.tenant)
}
