package sim

import (
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// wake notes that a replica may have something to do at this instant.
func (s *simulation) wake(i int32) {
	r := &s.replicas[i]
	if !r.starting && !r.engine.Busy() {
		r.starting = true
		s.starting = append(s.starting, i)
	}
}

// startSteps starts a step on every idle replica that has work.
func (s *simulation) startSteps() error {
	if len(s.starting) > 1 {
		slices.Sort(s.starting)
	}
	for _, i := range s.starting {
		r := &s.replicas[i]
		r.starting = false
		s.before(i, true)
		started, err := r.engine.Start(s.now)
		if err != nil {
			return s.stuck(err)
		}
		if !started {
			continue
		}
		for _, step := range r.engine.Formed() {
			s.formed(i, step)
			if err := s.out.preempted(s, r, step.Preempted); err != nil {
				return err
			}
		}
		if s.lookout != nil {
			s.lookout.formed(s, i, r.engine)
		}
		s.after(i)
		s.queue.Push(des.NewEvent(r.engine.Step().End, stepEnd, int64(i), i))
		if s.check != nil {
			if err := s.check.replica(r); err != nil {
				return err
			}
		}
	}
	s.starting = s.starting[:0]
	s.drainSoon()
	return nil
}

// formed notes what happens to requests when a batch is formed.
func (s *simulation) formed(i int32, step *engine.Step) {
	for _, a := range step.Admitted {
		o := &s.slots[a.Tag].out
		o.ScheduledUS, o.CachedTokens = stream.Micros(s.now), int64(a.Cached)
		if s.seen.needs&policy.NeedHitRate != 0 {
			s.seen.own[i].hits.add(s.now, int64(a.Cached), o.InputTokens)
		}
	}
	for _, tag := range step.Preempted {
		r := &s.slots[tag]
		r.out.Preemptions++
		r.out.PreemptedUS -= s.now
		r.thrown = true
	}
	for _, tag := range step.Resumed {
		s.slots[tag].resumed(s.now)
	}
}

// resumed notes that the request waits no longer for the place that it lost.
func (r *request) resumed(now des.Time) {
	if r.thrown {
		r.out.PreemptedUS += now
		r.thrown = false
	}
}

// finishStep makes the effects of a replica's step visible.
func (s *simulation) finishStep(i int32) error {
	r := &s.replicas[i]
	s.before(i, s.refreshed)
	ends, err := r.engine.Finish(s.now)
	if err != nil {
		return s.stuck(err)
	}
	seen := stream.Micros(ends.Seen)
	for _, tag := range ends.First {
		o := &s.slots[tag].out
		o.FirstTokenUS = seen
		if s.seen.needs&policy.NeedRecentTTFT != 0 {
			s.seen.own[i].ttft.add(s.now, int64(seen-o.ArrivalUS), 1)
		}
	}
	s.ledger.gaps(ends)
	if err := s.out.step(s, r); err != nil {
		return err
	}
	for k := range ends.Done {
		done := &ends.Done[k]
		q := &s.slots[done.Tag]
		q.out.CompletedUS = seen
		q.took(done)
		if q.out.OutputTokens > 1 && s.seen.needs&policy.NeedRecentTPOT != 0 {
			s.seen.own[i].tpot.add(s.now, int64(seen-q.out.FirstTokenUS), q.out.OutputTokens-1)
		}
		r.completed++
		s.done(q)
		if err := s.finish(done.Tag, stream.StateCompleted, ""); err != nil {
			return err
		}
		of, step, at := q.of, q.step, q.out.ArrivalUS
		s.depart(i, done.Tag)
		if of != nowhere {
			if err := s.proceed(of, step, at, seen); err != nil {
				return err
			}
		}
	}
	for _, tag := range ends.Left {
		s.depart(i, tag)
	}
	if s.seen.needs&(policy.NeedEstimate|policy.NeedEstWait) != 0 {
		s.seen.stepped(i, s.now-r.engine.Step().Start)
	}
	s.after(i)
	s.drainSoon()
	s.wake(i)
	if s.check != nil {
		return s.check.replica(r)
	}
	return nil
}

// stuck names the request that a replica makes no progress with.
func (s *simulation) stuck(err error) error {
	if e, ok := err.(*engine.StuckError); ok {
		return fmt.Errorf("no progress at %d µs with request %q: %s", s.now, s.slots[e.Tag].out.ID, e.Msg)
	}
	return err
}
