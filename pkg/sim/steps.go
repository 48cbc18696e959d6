package sim

import (
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// markReady records that a replica may have work at this instant.
func (s *simulation) markReady(i int32) {
	r := &s.replicas[i]
	if !r.readyToStep && !r.engine.Busy() {
		r.readyToStep = true
		s.readyToStep = append(s.readyToStep, i)
	}
}

// startSteps starts a step on every idle replica with work.
func (s *simulation) startSteps() error {
	if len(s.readyToStep) > 1 {
		slices.Sort(s.readyToStep)
	}
	for _, i := range s.readyToStep {
		r := &s.replicas[i]
		r.readyToStep = false
		s.beforeChange(i, true)
		started, err := r.engine.Start(s.now)
		if err != nil {
			return s.describeStuck(err)
		}
		if !started {
			continue
		}
		for _, step := range r.engine.Formed() {
			s.recordBatch(i, step)
			if err := s.trace.preemptions(s, r, step.Preempted); err != nil {
				return err
			}
		}
		if s.anomalies != nil {
			s.anomalies.batchFormed(s, i, r.engine)
		}
		s.afterChange(i)
		s.queue.Push(des.NewEvent(r.engine.Step().End, stepEnd, int64(i), i))
		if s.checker != nil {
			if err := s.checker.replica(r); err != nil {
				return err
			}
		}
	}
	s.readyToStep = s.readyToStep[:0]
	s.scheduleDrain()
	return nil
}

// recordBatch updates the requests of a new batch.
func (s *simulation) recordBatch(i int32, step *engine.Step) {
	for _, a := range step.Admitted {
		o := &s.slots[a.Tag].out
		o.ScheduledUS, o.CachedTokens = stream.Micros(s.now), int64(a.Cached)
		if s.telemetry.needs&policy.NeedHitRate != 0 {
			s.telemetry.counters[i].hits.add(s.now, int64(a.Cached), o.InputTokens)
		}
	}
	for _, tag := range step.Preempted {
		r := &s.slots[tag]
		r.out.Preemptions++
		r.out.PreemptedUS -= s.now
		r.preempted = true
	}
	for _, tag := range step.Resumed {
		s.slots[tag].endPreemption(s.now)
	}
}

// endPreemption ends the waiting time of a preempted request.
func (r *request) endPreemption(now des.Time) {
	if r.preempted {
		r.out.PreemptedUS += now
		r.preempted = false
	}
}

// finishStep applies the results of a replica's step.
func (s *simulation) finishStep(i int32) error {
	r := &s.replicas[i]
	s.beforeChange(i, s.eventsDone)
	result, err := r.engine.Finish(s.now)
	if err != nil {
		return s.describeStuck(err)
	}
	clientTime := stream.Micros(result.DeliveredAt)
	for _, tag := range result.First {
		o := &s.slots[tag].out
		o.FirstTokenUS = clientTime
		if s.telemetry.needs&policy.NeedRecentTTFT != 0 {
			s.telemetry.counters[i].ttft.add(s.now, int64(clientTime-o.ArrivalUS), 1)
		}
	}
	s.sink.addGaps(result)
	if err := s.trace.step(s, r); err != nil {
		return err
	}
	for k := range result.Done {
		done := &result.Done[k]
		q := &s.slots[done.Tag]
		q.out.CompletedUS = clientTime
		q.recordResult(done)
		if q.out.OutputTokens > 1 && s.telemetry.needs&policy.NeedRecentTPOT != 0 {
			s.telemetry.counters[i].tpot.add(s.now, int64(clientTime-q.out.FirstTokenUS), q.out.OutputTokens-1)
		}
		r.completed++
		s.countCompleted(q)
		if err := s.finalize(done.Tag, stream.StateCompleted, ""); err != nil {
			return err
		}
		sessionSlot, step, at := q.sessionSlot, q.step, q.out.ArrivalUS
		s.depart(i, done.Tag)
		if sessionSlot != missing {
			if err := s.callCompleted(sessionSlot, step, at, clientTime); err != nil {
				return err
			}
		}
	}
	for _, tag := range result.Aborted {
		s.depart(i, tag)
	}
	if s.telemetry.needs&(policy.NeedEstimate|policy.NeedEstWait) != 0 {
		s.telemetry.recordStep(i, s.now-r.engine.Step().Start)
	}
	s.afterChange(i)
	s.scheduleDrain()
	s.markReady(i)
	if s.checker != nil {
		return s.checker.replica(r)
	}
	return nil
}

// describeStuck names the request with which a replica makes no progress.
func (s *simulation) describeStuck(err error) error {
	if e, ok := err.(*engine.NoProgressError); ok {
		return fmt.Errorf("no progress at %d µs with request %q: %s", s.now, s.slots[e.Tag].out.ID, e.Msg)
	}
	return err
}
