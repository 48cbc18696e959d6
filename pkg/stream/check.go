package stream

import (
	"slices"

	"blis/pkg/registry"
)

// check tests the rules that involve several fields.
func (r *Request) check(s *scanner) {
	if r.ID == "" {
		s.failf("id is empty")
	}
	if r.DeadlineUS != Never && r.DeadlineUS < r.ArrivalUS {
		s.failf("deadline_us must be at least arrival_us (%d), not %d", r.ArrivalUS, r.DeadlineUS)
	}
	if sum := sumTokens(r.Prompt); sum > r.InputTokens {
		s.failf("the prompt segments total %d tokens, more than input_tokens (%d)", sum, r.InputTokens)
	}
}

func (seg *Segment) check(s *scanner) {
	if seg.ID == "" {
		s.failf("id is empty")
	}
}

func sumTokens(prompt []Segment) (sum int64) {
	for i := range prompt {
		sum += prompt[i].Tokens
	}
	return sum
}

// check tests the rules that involve several fields, which latencies rely on.
func (o *Outcome) check(s *scanner) {
	completed := o.State == StateCompleted
	switch {
	case o.ID == "":
		s.failf("id is empty")
	case !slices.Contains(states, o.State):
		s.err = registry.Unknown("state", o.State, states)
	case completed && o.InputTokens == 0:
		s.failf("input_tokens must be at least 1 in a completed request, not 0")
	case completed && o.FirstTokenUS == Never:
		s.failf("first_token_us is missing, but the request completed")
	case completed && o.CompletedUS == Never:
		s.failf("completed_us is missing, but the request completed")
	case !completed && o.CompletedUS != Never:
		s.failf("completed_us is present, but the state is %s", o.State)
	case completed && o.EndedUS != Never:
		s.failf("ended_us is present, but the request completed")
	case o.EndedUS != Never && o.EndedUS < o.ArrivalUS:
		s.failf("ended_us must be at least arrival_us (%d), not %d", o.ArrivalUS, o.EndedUS)
	case o.FirstTokenUS != Never && o.FirstTokenUS < o.ArrivalUS:
		s.failf("first_token_us must be at least arrival_us (%d), not %d", o.ArrivalUS, o.FirstTokenUS)
	case completed && o.CompletedUS < o.FirstTokenUS:
		s.failf("completed_us must be at least first_token_us (%d), not %d", o.FirstTokenUS, o.CompletedUS)
	}
}

func (d *Decision) check(s *scanner) {
	if !slices.Contains(stages, d.Stage) {
		s.err = registry.Unknown("stage", d.Stage, stages)
	}
}

func (g *Regret) check(s *scanner) {
	if !slices.Contains(regretStages, g.Stage) {
		s.err = registry.Unknown("stage", g.Stage, regretStages)
	} else if !slices.Contains(methods, g.Method) {
		s.err = registry.Unknown("method", g.Method, methods)
	}
}

// check tests the session as a whole; decodeSteps tests its steps.
func (s *Session) check(sc *scanner) {
	if s.ID == "" {
		sc.failf("id is empty")
	}
	if len(s.Steps) == 0 {
		sc.failf("steps is empty")
	}
}
