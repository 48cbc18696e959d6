package stream

import "slices"

// decode reads one line into s, whose Steps keep their memory, that of their
// lists included.
func (s *Session) decode(sc *scanner) error {
	*s = Session{Kind: KindSession, UntilUS: Never, Steps: s.Steps[:0]}
	m := members{object: sessionObject}
	for sc.each(&m) {
		switch f := m.field; f.Name {
		case "kind":
			sc.kind(f)
		case "id":
			s.ID = sc.text(f)
		case "arrival_us":
			s.ArrivalUS = sc.micros(f)
		case "tenant":
			s.Tenant = sc.name(f)
		case "slo_class":
			s.SLOClass = sc.name(f)
		case "model":
			s.Model = sc.name(f)
		case "workflow":
			s.Workflow = sc.name(f)
		case "until_us":
			s.UntilUS = sc.micros(f)
		case "persistent":
			s.Persistent = sc.boolean(f)
		case "steps":
			s.decodeSteps(sc, f)
		}
	}
	if err := sc.finish(); err != nil {
		return err
	}
	if s.ID == "" {
		sc.failf("id is empty")
	}
	if len(s.Steps) == 0 {
		sc.failf("steps is empty")
	}
	return sc.err
}

// decodeSteps reads the list of steps, which is the value of f.
func (s *Session) decodeSteps(sc *scanner, f *Field) {
	ids := map[string]bool{}
	var named []int64 // tokens of each step's prompt that have a name
	for n := 0; sc.element(f, n); n++ {
		s.Steps = slices.Grow(s.Steps, 1)[:n+1]
		step := &s.Steps[n]
		step.decode(sc)
		if sc.err == nil && ids[step.ID] {
			sc.failf("id %q is taken by an earlier step", step.ID)
		}
		if sc.err == nil {
			named = append(named, step.check(sc, s.Steps[:n], named))
		}
		if sc.err != nil {
			sc.within(f, n)
			return
		}
		ids[step.ID] = true
	}
}

// decode reads one step, whose lists keep their memory.
func (t *SessionStep) decode(s *scanner) {
	*t = SessionStep{After: t.After[:0], Prompt: t.Prompt[:0], Extends: Nowhere}
	m := members{object: sessionStepObject}
	for s.each(&m) {
		switch f := m.field; f.Name {
		case "id":
			t.ID = s.text(f)
		case "step":
			t.Step = s.name(f)
		case "iteration":
			t.Iteration = s.integer(f)
		case "after":
			t.After = s.indices(f, t.After)
		case "delay_us":
			t.DelayUS = s.integer(f)
		case "tool":
			t.Tool = s.name(f)
		case "latency_us":
			t.LatencyUS = s.integer(f)
		case "model":
			t.Model = s.name(f)
		case "timeout_us":
			t.TimeoutUS = s.integer(f)
		default:
			t.decodeTokens(s, f)
		}
	}
}

// decodeTokens reads f, which is about the prompt or the answer.
func (t *SessionStep) decodeTokens(s *scanner, f *Field) {
	switch f.Name {
	case "input_tokens":
		t.InputTokens = s.integer(f)
	case "output_tokens":
		t.OutputTokens = s.integer(f)
	case "extends":
		t.Extends = Index(s.integer(f))
	case "keep_tokens":
		t.KeepTokens = s.integer(f)
	case "prompt":
		t.Prompt = s.segments(f, t.Prompt)
	case "predicted_output_tokens":
		t.PredictedOutputTokens = s.integer(f)
	}
}

// check holds t, which stands after the steps before, to the rules that join its
// fields, and returns how many tokens of its prompt have a name; named are those
// of the steps before.
func (t *SessionStep) check(s *scanner, before []SessionStep, named []int64) int64 {
	for _, at := range t.After {
		if int(at) >= len(before) {
			s.failf("after must name earlier steps (below %d), not %d", len(before), at)
		}
	}
	switch {
	case t.ID == "":
		s.failf("id is empty")
	case t.Tool != "" && (t.InputTokens != 0 || len(t.Prompt) > 0 || !t.Extends.IsZero()):
		s.failf("a call of a tool has no prompt")
	case t.Tool != "" && (t.Model != "" || t.TimeoutUS != 0 || t.PredictedOutputTokens != 0):
		s.failf("a call of a tool has no model, timeout_us or predicted_output_tokens")
	case t.Tool != "":
		return 0
	case t.LatencyUS != 0:
		s.failf("latency_us stands there without tool")
	case t.InputTokens == 0:
		s.failf("input_tokens is missing")
	case t.OutputTokens == 0:
		s.failf("output_tokens is missing")
	}
	if s.err != nil {
		return 0
	}
	return t.checkPrompt(s, before, named)
}

func (t *SessionStep) checkPrompt(s *scanner, before []SessionStep, named []int64) int64 {
	var sum int64
	switch {
	case t.Extends.IsZero() && t.KeepTokens != 0:
		s.failf("keep_tokens stands there without extends")
	case t.Extends.IsZero():
	case int(t.Extends) >= len(before):
		s.failf("extends must name an earlier step (below %d), not %d", len(before), t.Extends)
	case before[t.Extends].Tool != "":
		s.failf("extends must name a call of a model; step %d calls a tool", t.Extends)
	case t.KeepTokens > named[t.Extends]:
		s.failf("keep_tokens must be at most the %d tokens that have a name in the prompt of step %d, not %d", named[t.Extends], t.Extends, t.KeepTokens)
	case t.KeepTokens > 0:
		sum = t.KeepTokens
	default:
		sum = named[t.Extends]
	}
	for _, seg := range t.Prompt {
		sum += seg.Tokens
	}
	if sum > t.InputTokens {
		s.failf("the segments of its prompt hold %d tokens, more than input_tokens (%d)", sum, t.InputTokens)
	}
	return sum
}

var placeField = Field{Name: "a place", Max: maxIndex}

// indices reads a list of places into the memory of list.
func (s *scanner) indices(f *Field, list []Index) []Index {
	for n := 0; s.element(f, n); n++ {
		list = append(list, Index(s.integer(&placeField)))
		if s.err != nil {
			s.within(f, n)
			return nil
		}
	}
	return list
}
