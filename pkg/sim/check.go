package sim

import (
	"fmt"

	"blis/pkg/record"
)

// checker holds a run to its contracts while it happens, at the cost of a look
// at every running sequence in every step.
type checker struct {
	steps int64
}

// started checks a batch against the bounds of its replica.
func (c *checker) started(r *replica) error {
	c.steps++
	if err := r.engine.Check(); err != nil {
		return fmt.Errorf("check: replica %d at %d µs: %w", r.index, r.engine.Step().Start, err)
	}
	return nil
}

// finished checks a replica between two steps.
func (c *checker) finished(r *replica) error {
	if err := r.engine.Check(); err != nil {
		return fmt.Errorf("check: replica %d at %d µs: %w", r.index, r.engine.Step().End, err)
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
		at   record.Micros
	}{
		{"admitted_us", o.AdmittedUS}, {"routed_us", o.RoutedUS}, {"enqueued_us", o.EnqueuedUS},
		{"scheduled_us", o.ScheduledUS}, {"first_token_us", o.FirstTokenUS}, {"completed_us", o.CompletedUS},
	} {
		if t.at == record.Never {
			continue
		}
		if t.at < last {
			return fmt.Errorf("check: request %q: %s %d is before %s %d", o.ID, t.name, t.at, name, last)
		}
		last, name = t.at, t.name
	}
	completed := o.State == record.StateCompleted
	switch {
	case completed != (o.CompletedUS != record.Never):
		return fmt.Errorf("check: request %q is %s with completed_us %d", o.ID, o.State, o.CompletedUS)
	case completed && o.GeneratedTokens != o.OutputTokens:
		return fmt.Errorf("check: request %q is completed with %d of %d tokens", o.ID, o.GeneratedTokens, o.OutputTokens)
	case (o.GeneratedTokens > 0) != (o.FirstTokenUS != record.Never):
		return fmt.Errorf("check: request %q has %d tokens and first_token_us %d", o.ID, o.GeneratedTokens, o.FirstTokenUS)
	case o.CachedTokens >= o.InputTokens:
		return fmt.Errorf("check: request %q found %d of %d prompt tokens cached; the last one is always computed", o.ID, o.CachedTokens, o.InputTokens)
	}
	return nil
}
