package stream

import "fmt"

// check tests the rules that involve several fields.
func (r *Request) check(s *scanner) {
	if r.DeadlineUS != Never && r.DeadlineUS < r.ArrivalUS {
		s.failf("deadline_us must be at least arrival_us (%d), not %d", r.ArrivalUS, r.DeadlineUS)
	}
	if !isShare(r.DraftAcceptance) {
		s.failf(badAcceptance, *r.DraftAcceptance)
	}
	if sum := sumTokens(r.Prompt); sum > r.InputTokens {
		s.failf("the prompt segments total %d tokens, more than input_tokens (%d)", sum, r.InputTokens)
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

// check tests the session and each step against the earlier ones.
func (s *Session) check(sc *scanner) {
	if len(s.Steps) == 0 {
		sc.failf("steps is empty")
	}
	ids := map[string]bool{}
	var identified []int64 // tokens in the segments of each step's prompt
	for n := 0; n < len(s.Steps) && sc.err == nil; n++ {
		step := &s.Steps[n]
		if ids[step.ID] {
			sc.failf("id %q is already used by an earlier step", step.ID)
		}
		ids[step.ID] = true
		identified = append(identified, step.validate(sc, s.Steps[:n], identified))
		if sc.err != nil {
			sc.err = fmt.Errorf("steps[%d]: %w", n, sc.err)
		}
	}
}

// validate tests the rules that involve several fields of t and the earlier steps. It
// returns the number of tokens in the segments of its prompt; identified has those of
// the earlier steps.
func (t *SessionStep) validate(s *scanner, earlier []SessionStep, identified []int64) int64 {
	for _, i := range t.After {
		if int(i) >= len(earlier) {
			s.failf("after must name earlier steps (below %d), not %d", len(earlier), i)
		}
	}
	switch {
	case t.Tool != "" && (t.InputTokens != 0 || len(t.Prompt) > 0 || !t.Extends.IsZero()):
		s.failf("a tool call has no input_tokens, prompt or extends")
	case t.Tool != "" && (t.Model != "" || t.Stop != "" || t.DraftAcceptance != nil || t.Grammar != "" ||
		t.TimeoutUS != 0 || t.PredictedOutputTokens != 0 || t.Retry != nil):
		s.failf("a tool call has no model, stop, draft_acceptance, grammar, timeout_us, predicted_output_tokens or " +
			"retry")
	case t.Tool != "":
		return 0
	case !isShare(t.DraftAcceptance):
		s.failf(badAcceptance, *t.DraftAcceptance)
	case t.LatencyUS != 0:
		s.failf("latency_us is present without tool")
	case t.InputTokens == 0:
		s.failf("input_tokens is missing")
	case t.OutputTokens == 0:
		s.failf("output_tokens is missing")
	}
	if s.err != nil {
		return 0
	}
	return t.validatePrompt(s, earlier, identified)
}

func (t *SessionStep) validatePrompt(s *scanner, earlier []SessionStep, identified []int64) int64 {
	var sum int64
	switch {
	case t.Extends.IsZero() && t.KeepTokens != 0:
		s.failf("keep_tokens is present without extends")
	case t.Extends.IsZero():
	case int(t.Extends) >= len(earlier):
		s.failf("extends must name an earlier step (below %d), not %d", len(earlier), t.Extends)
	case earlier[t.Extends].Tool != "":
		s.failf("extends must name a model call; step %d is a tool call", t.Extends)
	case t.KeepTokens > identified[t.Extends]:
		s.failf("keep_tokens must be at most %d, the tokens in the prompt segments of step %d, not %d",
			identified[t.Extends], t.Extends, t.KeepTokens)
	case t.KeepTokens > 0:
		sum = t.KeepTokens
	default:
		sum = identified[t.Extends]
	}
	if sum += sumTokens(t.Prompt); sum > t.InputTokens {
		s.failf("the prompt segments total %d tokens, more than input_tokens (%d)", sum, t.InputTokens)
	}
	return sum
}

// badAcceptance is the error of a draft_acceptance.
const badAcceptance = "draft_acceptance must be between 0 and 1, not %g"

// isShare reports whether v is absent or between 0 and 1.
func isShare(v *float64) bool { return v == nil || *v >= 0 && *v <= 1 }
