package sim

import (
	"fmt"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// checker holds a run to its contracts while it happens, at the cost of a look
// at every sequence of a replica at each of its steps.
type checker struct{ s *simulation }

// replica checks what a replica has added up, and that the pending events are
// no more than two for each request in flight, one for each replica, one for the
// session to come and the deadlines of requests that are gone; with flow control a
// little more.
func (c *checker) replica(r *replica) error {
	if err := r.engine.Check(); err != nil {
		return fmt.Errorf("check: deployment %s, replica %d at %d µs: %w", c.s.deployments[r.deployment].id, r.index, c.s.now, err)
	}
	inFlight := len(c.s.slots) - len(c.s.spare)
	each, more := 2, len(c.s.replicas)+1
	if c.s.router.flows != nil { // a TTL, and looks at the queues
		each, more = 3, more+4
	}
	if n := c.s.queue.Len(); n > each*inFlight+more+c.s.stale {
		return fmt.Errorf("check: %d events pending for %d requests in flight", n, inFlight)
	}
	return nil
}

// outcome checks that one thing came after the other and that the counts fit
// the state.
func (c *checker) outcome(r *request) error {
	o := &r.out
	last, name := o.ArrivalUS, "arrival_us"
	for _, t := range []struct {
		name string
		at   stream.Micros
	}{
		{"admitted_us", o.AdmittedUS}, {"routed_us", o.RoutedUS}, {"enqueued_us", o.EnqueuedUS},
		{"scheduled_us", o.ScheduledUS}, {"first_token_us", o.FirstTokenUS}, {"completed_us", o.CompletedUS},
	} {
		if t.at == stream.Never {
			continue
		}
		if t.at < last {
			return fmt.Errorf("check: request %q: %s %d is before %s %d", o.ID, t.name, t.at, name, last)
		}
		last, name = t.at, t.name
	}
	completed := o.State == stream.StateCompleted
	switch {
	case completed != (o.CompletedUS != stream.Never):
		return fmt.Errorf("check: request %q is %s with completed_us %d", o.ID, o.State, o.CompletedUS)
	case completed && o.GeneratedTokens != o.OutputTokens:
		return fmt.Errorf("check: request %q is completed with %d of %d tokens", o.ID, o.GeneratedTokens, o.OutputTokens)
	case (o.GeneratedTokens > 0) != (o.FirstTokenUS != stream.Never):
		return fmt.Errorf("check: request %q has %d tokens and first_token_us %d", o.ID, o.GeneratedTokens, o.FirstTokenUS)
	case o.CachedTokens >= o.InputTokens:
		return fmt.Errorf("check: request %q found %d of %d prompt tokens cached; the last one is always computed", o.ID, o.CachedTokens, o.InputTokens)
	}
	return nil
}

// call checks that a request of a session was made when the steps before it had
// completed, and for the first time.
func (c *checker) call(r *request) error {
	if r.of == nowhere {
		return nil
	}
	v := &c.s.sessions.open[r.of]
	step := &v.Steps[r.step]
	for _, parent := range step.After {
		switch p := &v.steps[parent]; {
		case !p.completed:
			return fmt.Errorf("check: request %q arrives before step %q has completed", r.out.ID, v.Steps[parent].ID)
		case v.steps[r.step].at < p.at:
			return fmt.Errorf("check: request %q arrives before step %q began", r.out.ID, v.Steps[parent].ID)
		}
	}
	if at := v.steps[r.step].at + step.DelayUS; c.s.now != at || v.steps[r.step].arrived {
		return fmt.Errorf("check: request %q arrives at %d µs; once, at %d, was due", r.out.ID, c.s.now, at)
	}
	v.steps[r.step].arrived = true
	return nil
}

// session checks that a session at its end has done all that it could do: every
// step whose parents completed has happened, unless it lies beyond its end or the
// run's, and no other.
func (c *checker) session(v *session) error {
	for k := range v.Steps {
		p := &v.steps[k]
		due := true
		for _, parent := range v.Steps[k].After {
			due = due && v.steps[parent].completed
		}
		beyond := p.at+v.Steps[k].DelayUS+v.Steps[k].LatencyUS > c.s.horizon || !v.UntilUS.IsZero() && p.at+v.Steps[k].DelayUS > des.Time(v.UntilUS)
		switch {
		case p.made && !due:
			return fmt.Errorf("check: session %q: step %q happened before those that it waits for", v.ID, v.Steps[k].ID)
		case due && !p.made && !beyond:
			return fmt.Errorf("check: session %q ends %s and step %q never happened", v.ID, v.out.State, v.Steps[k].ID)
		}
	}
	return nil
}
