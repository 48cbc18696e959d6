package sim

import (
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// markReady records that a replica may have work at this instant, since something came to it or left it.
func (s *simulation) markReady(i int32) {
	if s.wake(i) {
		s.events.changed = true
	}
}

// wake records that a replica may have work at this instant, and reports whether no step is in flight there.
func (s *simulation) wake(i int32) bool {
	r := &s.replicas[i]
	if r.engine.Busy() {
		return false
	}
	s.setReady(i)
	return true
}

// setReady makes a replica start a step, or form the next batch, at this instant.
func (s *simulation) setReady(i int32) {
	if r := &s.replicas[i]; !r.readyToStep {
		r.readyToStep = true
		s.events.ready = append(s.events.ready, i)
	}
}

// startSteps starts a step on every idle replica with work.
func (s *simulation) startSteps() error {
	s.endInstant()
	if len(s.events.ready) > 1 {
		slices.Sort(s.events.ready)
	}
	for _, i := range s.events.ready {
		r := &s.replicas[i]
		r.readyToStep = false
		if s.fleet.isGone(i) {
			continue
		}
		if r.server != missing && s.servers[r.server].lockstep {
			if err := s.startJoint(&s.servers[r.server]); err != nil {
				return err
			}
			continue
		}
		late := r.engine.FormsLate()
		started, err := s.startStep(i)
		switch {
		case err != nil:
		case started:
			err = s.stepStarted(i, late)
		default:
			err = s.waitForGrammars(i)
		}
		if err != nil {
			return err
		}
	}
	s.events.ready = s.events.ready[:0]
	if s.events.changed { // else replicas only wait for transfers
		s.events.changed = false
		s.router.flow.schedule(s)
	}
	return nil
}

// startStep starts a step on an idle replica, if it has work.
func (s *simulation) startStep(i int32) (started bool, err error) {
	s.telemetry.beforeChange(s, i, true)
	if started, err = s.replicas[i].engine.Start(s.now); err != nil {
		return started, s.describeStuck(err)
	}
	if s.transfers != nil {
		err = s.transfers.start(s, i, started)
	}
	if s.encoding != nil {
		s.askEmbeddings(i)
	}
	return started, err
}

// stepStarted records the step that a replica has started. late: it only formed the batch behind it.
func (s *simulation) stepStarted(i int32, late bool) error {
	e := s.replicas[i].engine
	if !late {
		s.failures.countSlow(s, i)
	}
	s.events.changed = true
	s.events.steps.Push(des.NewEvent(e.WakeAt(), stepEnd, int64(i), i))
	return s.batchesFormed(i)
}

// batchesFormed records the batches that a replica has formed.
func (s *simulation) batchesFormed(i int32) error {
	e := s.replicas[i].engine
	for _, tag := range e.LeftEarly() { // before that
		s.depart(tag)
	}
	for _, step := range e.Formed() {
		s.recordBatch(i, step)
	}
	s.telemetry.afterChange(s, i)
	if err := s.observers.notify(s, onBatch, i); err != nil {
		return err
	}
	return s.observers.notify(s, onStep, i)
}

// recordBatch updates the requests of a new batch.
func (s *simulation) recordBatch(i int32, step *engine.Step) {
	for _, a := range step.Admitted {
		r := s.request(a.Tag)
		o := &r.out
		if a.Loaded > 0 && o.PrefillScheduledUS.IsZero() && (r.handoff.stage != prefilling || r.isFirstWay()) {
			// Those of the prefill replica, as the cached ones, or of the only replica.
			o.LoadedTokens = &stream.LoadedTokens{CPU: int64(a.Loaded - a.FromStorage), Storage: int64(a.FromStorage)}
		}
		switch {
		case r.handoff.stage == prefilling:
			if r.handoff.scheduled = true; r.isFirstWay() && o.PrefillScheduledUS.IsZero() {
				o.PrefillScheduledUS, o.CachedTokens = stream.Micros(s.now), int64(a.Cached)
			}
		case o.PrefillScheduledUS.IsZero():
			o.ScheduledUS, o.CachedTokens = stream.Micros(s.now), int64(a.Cached)
		default:
			o.ScheduledUS, o.DecodeCachedTokens = stream.Micros(s.now), int64(a.Cached)
		}
		if s.router.needs.all&policy.NeedHitRate != 0 {
			s.telemetry.counters[i].hits.add(s.now, int64(a.Cached), o.InputTokens)
		}
	}
	for _, tag := range step.Preempted {
		r := s.request(tag)
		r.out.Preemptions++
		r.out.PreemptedUS -= s.now
		r.preempted = true
	}
	for _, tag := range step.Resumed {
		s.request(tag).endPreemption(s.now)
	}
}

// endPreemption ends the waiting time of a preempted request.
func (r *request) endPreemption(now des.Time) {
	if r.preempted {
		r.out.PreemptedUS += now
		r.preempted = false
	}
}

// coast runs the steps of a replica that only decode, from one that ends now, as long as they end before
// anything can see the replica or change what it does. It reports whether it ran any. The state of the
// replica is then ahead of the clock. Nothing reads it before the clock gets there: without sessions
// the ends of other replicas' steps neither route a request nor make one arrive.
func (s *simulation) coast(i int32) (bool, error) {
	r, q := &s.replicas[i], &s.events
	if r.server != missing && s.servers[r.server].lockstep {
		return false, nil
	}
	until := min(q.queue.Next(), maxClock)
	if s.horizon < until {
		until = s.horizon + 1
	}
	if len(s.sessions.open) > len(s.sessions.spare) {
		until = min(until, q.steps.Next())
	}
	n, result := r.engine.Coast(until, int(min(interruptEvents, q.limit-q.count+1)))
	if n == 0 {
		return false, nil
	}
	r.result = result
	q.count += int64(n - 1) // the first one is counted
	s.telemetry.afterChange(s, i)
	q.steps.Push(des.NewEvent(r.engine.WakeAt(), stepEnd, int64(i), i))
	return true, s.observers.notify(s, onTokens, i)
}

// coasts reports whether replicas may coast: nothing depends on when exactly they did what.
func (s *simulation) coasts() bool {
	const timed = policy.NeedEstimate | policy.NeedEstWait
	return len(s.observers[onStep])+len(s.observers[onStepEnd])+len(s.telemetry.periodic)+
		len(s.router.flow.queues) == 0 && s.router.needs.all&timed == 0 && !s.router.config.ShadowEvictions
}

// finishStep applies the results of a replica's step.
func (s *simulation) finishStep(i int32) error {
	r := &s.replicas[i]
	if r.server != missing && !s.endsStep(i) || r.pipelined && s.awaitsBlocks(i) {
		return nil
	}
	s.telemetry.beforeChange(s, i, s.instantDone())
	if r.engine.FormsAtEnd() {
		if err := s.formLate(i); err != nil {
			return err
		}
	}
	result, err := r.engine.Finish(s.now)
	if err != nil {
		return s.describeStuck(err)
	}
	r.result = result
	clientTime := stream.Micros(result.DeliveredAt)
	for _, tag := range result.First {
		r := s.request(tag)
		if r.handoff.stage == prefilling || r.handoff.computing {
			continue // the client does not get it
		}
		o := &r.out
		o.FirstTokenUS = clientTime
		if r.atServer {
			s.countFirst(r)
		}
		s.router.countPrefilled(s, r)
		if s.router.needs.all&policy.NeedRecentTTFT != 0 {
			s.telemetry.counters[i].ttft.add(s.now, int64(clientTime-o.ArrivalUS), 1)
		}
	}
	if err := s.observers.notify(s, onTokens, i); err != nil {
		return err
	}
	s.promptsComputed(result.Prompts)
	for k := range result.Done {
		if h := &s.request(result.Done[k].Tag).handoff; h.stage == prefilling || h.computing {
			s.prefilled(result.Done[k].Tag)
			continue
		}
		if err := s.complete(i, &result.Done[k], clientTime); err != nil {
			return err
		}
	}
	for _, tag := range result.Aborted {
		s.departFrom(i, tag)
	}
	if s.router.needs.all&(policy.NeedEstimate|policy.NeedEstWait) != 0 {
		s.telemetry.recordStep(i, s.now-r.engine.Step().Start)
	}
	s.telemetry.afterChange(s, i)
	if r.engine.Filling() { // masks of the step that begins
		s.events.steps.Push(des.NewEvent(r.engine.WakeAt(), stepEnd, int64(i), i))
	}
	s.router.flow.schedule(s)
	s.markReady(i)
	if s.fleet != nil {
		if err := s.fleet.settle(s, i); err != nil {
			return err
		}
	}
	return s.observers.notify(s, onStepEnd, i)
}

// complete completes a request of replica i, whose client has its last token at clientTime.
func (s *simulation) complete(i int32, done *engine.Result, clientTime stream.Micros) error {
	r := s.request(done.Tag)
	r.out.CompletedUS = clientTime
	r.recordResult(done)
	if r.out.OutputTokens > 1 && s.router.needs.all&policy.NeedRecentTPOT != 0 {
		s.telemetry.counters[i].tpot.add(s.now, int64(clientTime-r.out.FirstTokenUS), r.out.OutputTokens-1)
	}
	s.replicas[i].completed++
	s.router.countCompleted(r, s.now)
	if err := s.finalize(done.Tag, stream.StateCompleted, ""); err != nil {
		return err
	}
	sessionSlot, step, at := r.sessionSlot, r.step, r.out.Began()
	s.depart(done.Tag)
	if sessionSlot == missing {
		return nil
	}
	return s.sessions.callCompleted(s, sessionSlot, step, at, clientTime)
}

// describeStuck names the request with which a replica makes no progress.
func (s *simulation) describeStuck(err error) error {
	if e, ok := err.(*engine.NoProgressError); ok {
		return fmt.Errorf("no progress at %d µs with request %q: %s", s.now, s.request(e.Tag).out.ID, e.Msg)
	}
	return err
}
