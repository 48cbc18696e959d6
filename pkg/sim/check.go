package sim

import (
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// checker verifies invariants during a run. It costs a look at every sequence of a replica at each
// of its steps, and at all blocks now and then.
type checker struct{}

func (checker) hooks() []hook {
	return []hook{onArrival, onStep, onStepEnd, onFinal, onSessionEnd, onClose}
}

func (c checker) observe(s *simulation, h hook, i int32) error {
	switch h {
	case onArrival:
		return c.call(s, s.request(i))
	case onStep, onStepEnd:
		return c.replica(s, &s.replicas[i])
	case onFinal:
		return c.outcome(s, s.request(i))
	case onClose:
		for k := range s.replicas {
			if err := s.replicas[k].engine.Cache().Check(); err != nil {
				return fmt.Errorf("check: replica %d at the end: %w", k, err)
			}
		}
	case onSessionEnd:
		return c.session(s, &s.sessions.open[i])
	}
	return nil
}

// replica checks the invariants of an engine, and the bound on pending events: two for each request
// in flight, one for each replica, one for the next session, and the stale ones; slightly more with
// flow control.
func (checker) replica(s *simulation, r *replica) error {
	if err := r.engine.Check(); err != nil {
		return fmt.Errorf("check: deployment %s, replica %d at %d µs: %w", s.deployments[r.deployment].id, r.index,
			s.now, err)
	}
	if s.deployments[r.deployment].isPool() {
		if err := s.checkHandoffs(r); err != nil {
			return fmt.Errorf("check: deployment %s, replica %d at %d µs: %w", s.deployments[r.deployment].id,
				r.index, s.now, err)
		}
	}
	if s.encoding != nil {
		if err := s.checkEmbeddings(r); err != nil {
			return fmt.Errorf("check: deployment %s, replica %d at %d µs: %w", s.deployments[r.deployment].id,
				r.index, s.now, err)
		}
	}
	inFlight := int(s.requests.count) - len(s.requests.free)
	perRequest, others := 2, len(s.replicas)+1+s.transfers.pending()+s.encoding.pending()
	if len(s.router.flow.queues) > 0 { // a timeout, and drains of the queues
		perRequest, others = 3, others+4
	}
	if s.transfers != nil && len(s.transfers.links) > 0 { // the end of a lease, and a drain of what backpressure holds
		perRequest, others = perRequest+1, others+1
	}
	if s.fleet != nil { // looks, actions, and for each replica its next phase or the end of its drain
		others += 2*len(s.deployments) + 3*len(s.replicas)
	}
	if s.failures != nil { // probes, and for each replica a random failure and phases that it had before
		others += 2*len(s.failures.config.Events) + 4*len(s.replicas) + 1
	}
	if n := s.events.queue.Len() + s.events.steps.Len(); n > perRequest*inFlight+others+s.events.stale {
		return fmt.Errorf("check: %d events pending for %d requests in flight", n, inFlight)
	}
	return nil
}

// namedTime is a time of an outcome.
type namedTime struct {
	name string
	at   stream.Micros
}

// orderedTimes are lists of the times of a request. Those that happened are in the order of their list. With pieces of
// the prompt the decode replica has the request before the prompt is computed, and with a pipeline it begins before all
// have arrived.
func (s *simulation) orderedTimes(r *request) [][]namedTime {
	o := &r.out
	list := []namedTime{{"arrival_us", o.ArrivalUS}, {"admitted_us", o.AdmittedUS}, {"routed_us", o.RoutedUS},
		{"encoded_us", o.EncodedUS}, {"prefill_enqueued_us", o.PrefillEnqueuedUS},
		{"prefill_scheduled_us", o.PrefillScheduledUS}}
	prefilled, transferred := namedTime{"prefilled_us", o.PrefilledUS}, namedTime{"transferred_us", o.TransferredUS}
	enqueued, started := namedTime{"enqueued_us", o.EnqueuedUS}, namedTime{"transfer_started_us", o.TransferStartedUS}
	scheduled := namedTime{"scheduled_us", o.ScheduledUS}
	first, completed := namedTime{"first_token_us", o.FirstTokenUS}, namedTime{"completed_us", o.CompletedUS}
	var p *pool
	if r.replica != missing {
		p = s.decodePool(r).pool
	}
	if p == nil || p.granularity == byRequest && !p.pipelined {
		return [][]namedTime{append(list, prefilled, enqueued, started, transferred, scheduled, first, completed)}
	}
	all := [][]namedTime{append(slices.Clone(list), prefilled, transferred, first, completed),
		append(slices.Clone(list), enqueued, started, scheduled, first), {prefilled, scheduled}, {started, transferred}}
	if p.granularity == byRequest {
		all = append(all, []namedTime{prefilled, enqueued})
	}
	if !p.pipelined {
		all = append(all, []namedTime{transferred, scheduled})
	}
	return all
}

// outcome checks that the times of a request are in order and that its counts fit its state.
func (checker) outcome(s *simulation, r *request) error {
	o := &r.out
	for _, times := range s.orderedTimes(r) {
		last := times[0]
		for _, t := range times[1:] {
			if t.at == stream.Never {
				continue
			}
			if t.at < last.at {
				return fmt.Errorf("check: request %q: %s %d is before %s %d", o.ID, t.name, t.at, last.name, last.at)
			}
			last = t
		}
	}
	completed := o.State == stream.StateCompleted
	switch first := o.ScheduledUS; {
	case !o.EmbeddingsUS.IsZero() && (o.EmbeddingsUS < o.EncodedUS || !first.IsZero() && first < o.EmbeddingsUS):
		return fmt.Errorf("check: request %q: embeddings_us %d is before encoded_us %d or behind scheduled_us %d", o.ID,
			o.EmbeddingsUS, o.EncodedUS, first)
	case completed != (o.CompletedUS != stream.Never):
		return fmt.Errorf("check: request %q is %s with completed_us %d", o.ID, o.State, o.CompletedUS)
	case completed && o.GeneratedTokens != o.OutputTokens:
		return fmt.Errorf("check: request %q is completed with %d of %d tokens", o.ID, o.GeneratedTokens,
			o.OutputTokens)
	case (o.GeneratedTokens > 0) != (o.FirstTokenUS != stream.Never):
		return fmt.Errorf("check: request %q has %d tokens and first_token_us %d", o.ID, o.GeneratedTokens,
			o.FirstTokenUS)
	case o.CachedTokens >= o.InputTokens:
		return fmt.Errorf("check: request %q has %d of %d prompt tokens cached; the last one is always computed", o.ID,
			o.CachedTokens, o.InputTokens)
	}
	return nil
}

// call checks that a session's model call was issued once, and after the steps before it had
// completed.
func (checker) call(s *simulation, r *request) error {
	if r.sessionSlot == missing || r.attempt() > 0 {
		return nil
	}
	v := &s.sessions.open[r.sessionSlot]
	step := &v.Steps[r.step]
	for _, parent := range step.After {
		switch p := &v.steps[parent]; {
		case !p.completed:
			return fmt.Errorf("check: request %q arrives before step %q has completed", r.out.ID, v.Steps[parent].ID)
		case v.steps[r.step].at < p.at:
			return fmt.Errorf("check: request %q arrives before the completion of step %q", r.out.ID,
				v.Steps[parent].ID)
		}
	}
	if at := v.steps[r.step].at + step.DelayUS; s.now != at || v.steps[r.step].arrived {
		return fmt.Errorf("check: request %q arrives at %d µs; must arrive once, at %d", r.out.ID, s.now, at)
	}
	v.steps[r.step].arrived = true
	return nil
}

// session checks that a session ends with all its work done: every step whose parents completed was
// issued, unless it lies beyond the end of the session or the horizon, and no other step was.
func (checker) session(s *simulation, v *session) error {
	for k := range v.Steps {
		p := &v.steps[k]
		due := true
		for _, parent := range v.Steps[k].After {
			due = due && v.steps[parent].completed
		}
		beyond := p.at+v.Steps[k].DelayUS+v.Steps[k].LatencyUS > s.horizon || !v.UntilUS.IsZero() &&
			p.at+v.Steps[k].DelayUS > des.Time(v.UntilUS)
		switch {
		case p.issued && !due:
			return fmt.Errorf("check: session %q: step %q was issued before its parents completed", v.ID, v.Steps[k].ID)
		case due && !p.issued && !beyond:
			return fmt.Errorf("check: session %q is %s, but step %q was never issued", v.ID, v.out.State, v.Steps[k].ID)
		}
	}
	return nil
}
