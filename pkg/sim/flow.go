package sim

import (
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// flowControl queues requests before routing while the replicas of their model are saturated. Without
// flow control it has no queues and sends them at once.
type flowControl struct {
	config cluster.FlowControl
	gate   *policy.Gate   // nil without flow control
	queues []*policy.Flow // by model
	// drainAt and refreshAt are the times of the next drains: after the other events of an instant,
	// and after a snapshot refresh. They are negative if none is pending.
	drainAt, refreshAt des.Time
	// draining: requests are being sent. They reach their queues after the last of them, in the order of the stream.
	draining bool
	// sent has what was sent to each replica lately; empty without flow control.
	sent  []recentlySent
	stats flowStats
}

// recentlySent counts the requests that were sent to a replica and are still there, but that the queue
// depth read last does not include: those in transit to its queue, and those that entered it since.
// They count as queued, or flow control would send everything that waits before the replica has
// received the first of it.
type recentlySent struct {
	inTransit, unread int32
	reads             int64 // of the queue depth
}

type flowStats struct{ queued, peak, rejected, expired int64 }

// enqueue queues a request until it can be sent, which may be at once. A request that would have to
// wait in a full queue is rejected and counts as never admitted.
func (f *flowControl) enqueue(s *simulation, slot int32) error {
	r := s.request(slot)
	switch {
	case r.handoff.stage == returning:
		return s.chooseAgain(slot)
	case len(f.queues) == 0:
		return s.sendWhenOpen(slot)
	}
	model := r.model
	queue := f.queues[model]
	queue.Push(slot, s.router.views.policyRequest(r), s.now)
	r.inFlowQueue = true
	if err := f.drain(s, model); err != nil {
		return err
	}
	if r = s.request(slot); !r.inFlowQueue {
		return nil
	}
	candidates := len(s.router.views.reachable(s, r, 0))
	if f.config.Capacity > 0 && queue.Len() > f.config.Capacity {
		f.stats.rejected++
		f.remove(s, r, slot)
		s.router.countInflight(r, -1)
		r.out.AdmittedUS = stream.Never
		if err := f.decide(s, slot, "reject", candidates); err != nil {
			return err
		}
		return s.drop(slot, stream.StateRejected, stream.ReasonAdmission)
	}
	f.stats.queued++
	f.stats.peak = max(f.stats.peak, int64(queue.Len()))
	if f.config.TTLUS > 0 {
		r.flowTimeout = s.now + f.config.TTLUS
		s.events.queue.Push(des.NewEvent(r.flowTimeout, flowTimeout, r.position, slot))
	}
	return f.decide(s, slot, "queue", candidates)
}

// decide notifies observers of a decision of flow control.
func (f *flowControl) decide(s *simulation, slot int32, verdict string, candidates int) error {
	d := s.decisions.next(stream.StageFlowControl)
	d.verdict, d.candidates, d.given = verdict, candidates, policy.Verdict{}
	return s.observers.notify(s, onDecision, slot)
}

// drain sends the requests that wait for a model while its replicas are not saturated.
func (f *flowControl) drain(s *simulation, model int) error {
	queue := f.queues[model]
	f.draining = true
	defer func() { f.draining = false }()
	for queue.Len() > 0 {
		first := s.request(queue.Peek())
		if !s.reaches(first) {
			if s.failures.hopes(s, first) {
				return nil
			}
			slot := queue.Peek()
			f.remove(s, first, slot)
			if err := s.failUnreached(slot); err != nil {
				return err
			}
			continue
		}
		if s.holdsBack(first) {
			return nil
		}
		v := s.router.views.gated(s, first, f.gate.Needs())
		saturation := f.gate.Saturation(v, func(r *policy.Replica) int32 { return f.sent[r.Index].unread })
		slot, ok := queue.Pop(f.gate, saturation)
		if !ok {
			f.scheduleAtRefresh(s, v)
			return nil
		}
		s.request(slot).inFlowQueue = false
		if err := s.send(slot); err != nil {
			return err
		}
	}
	return nil
}

// recordSend counts a request that is sent to a replica.
func (f *flowControl) recordSend(replica int32) {
	if len(f.sent) > 0 {
		f.sent[replica].inTransit++
		f.sent[replica].unread++
	}
}

// recordEnqueue counts a request that enters the queue of a replica, where the next read finds it.
func (f *flowControl) recordEnqueue(r *request, replica int32) {
	if len(f.sent) > 0 {
		f.sent[replica].inTransit--
		r.queueRead = f.sent[replica].reads
	}
}

// recordRead notes that a replica's queue depth was read.
func (f *flowControl) recordRead(replica int32) {
	if len(f.sent) > 0 {
		f.sent[replica].reads++
		f.sent[replica].unread = f.sent[replica].inTransit
	}
}

// recordDeparture counts a request that leaves its replica, or leaves on its way there: its prefill replica, as long
// as it has one.
func (f *flowControl) recordDeparture(r *request) {
	if len(f.sent) == 0 {
		return
	}
	at, seq := r.replica, r.engineSeq
	if r.handoff.stage == prefilling {
		at, seq = r.handoff.replica, r.handoff.seq
	}
	sent := &f.sent[at]
	switch {
	case seq == missing:
		sent.inTransit--
		sent.unread--
	case r.queueRead == sent.reads:
		sent.unread--
	}
}

// schedule drains the queues after the other events of this instant.
func (f *flowControl) schedule(s *simulation) {
	if len(f.queues) > 0 || s.backpressure != nil {
		f.scheduleAt(s, s.now)
	}
}

func (f *flowControl) scheduleAt(s *simulation, now des.Time) {
	if f.drainAt != now {
		f.drainAt = now
		s.events.queue.Push(des.NewEvent(now, flowDrain, 0, missing))
	}
}

// scheduleAtRefresh drains the queues again when a signal of saturation is next refreshed for any
// replica in v.
func (f *flowControl) scheduleAtRefresh(s *simulation, v *policy.View) {
	next := noHorizon
	for _, t := range s.telemetry.periodic {
		if at := s.now - s.now%t.us; f.awaits(s, v.Replicas, t.field) {
			if at < s.now || s.instantDone() {
				at += t.us
			}
			next = min(next, at)
		}
	}
	for _, t := range s.telemetry.onDemand {
		for i := range v.Replicas {
			if f.awaits(s, v.Replicas[i:i+1], t.field) {
				next = min(next, v.Replicas[i].Stats.TakenUS[t.field]+t.us)
			}
		}
	}
	if next == noHorizon || f.refreshAt >= s.now && f.refreshAt <= next {
		return
	}
	f.refreshAt = next
	s.events.queue.Push(des.NewEvent(next, flowDrain, 0, missing))
}

// awaits reports whether the saturation depends on a field that replicas will report again. What they have reported at
// this instant stays if nothing else happens: then requests that wait now wait for ever.
func (f *flowControl) awaits(s *simulation, replicas []policy.Replica, field policy.Field) bool {
	return f.gate.Needs().Has(field) && (s.events.queue.Len()+s.events.steps.Len() > 0 ||
		slices.ContainsFunc(replicas, func(r policy.Replica) bool { return r.Stats.TakenUS[field] < s.now }))
}

// drainAll drains all queues.
func (f *flowControl) drainAll(s *simulation) error {
	s.endInstant()
	f.drainAt = -1
	if f.refreshAt == s.now {
		f.refreshAt = -1
	}
	for model := range f.queues {
		if err := f.drain(s, model); err != nil {
			return err
		}
	}
	return s.backpressure.drain(s)
}

// expire times out a request that has waited too long.
func (f *flowControl) expire(s *simulation, slot int32) error {
	r := s.request(slot)
	r.flowTimeout = never
	if !r.inFlowQueue {
		return nil
	}
	f.stats.expired++
	if err := f.decide(s, slot, stream.VerdictExpire, len(s.router.views.reachable(s, r, 0))); err != nil {
		return err
	}
	f.remove(s, r, slot)
	s.router.countInflight(r, -1)
	return s.drop(slot, stream.StateTimedOut, stream.ReasonAdmissionDelay)
}

// remove removes a request from its queue.
func (f *flowControl) remove(s *simulation, r *request, slot int32) {
	if r.inFlowQueue = false; len(f.queues) == 0 {
		s.backpressure.remove(r, slot)
		return
	}
	f.queues[r.model].Remove(slot, s.router.views.policyRequest(r))
}

func (f *flowControl) clone() flowControl {
	c := *f
	if f.gate != nil {
		c.gate = f.gate.Clone()
	}
	c.queues, c.sent = slices.Clone(f.queues), slices.Clone(f.sent)
	for i := range c.queues {
		c.queues[i] = c.queues[i].Clone()
	}
	return c
}
