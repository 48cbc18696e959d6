package stream

import (
	"slices"

	"blis/pkg/registry"
)

// decode reads one line into o, whose ITLUS keeps its memory. What the line
// leaves out is absent in o.
func (o *Outcome) decode(s *scanner) error {
	*o = Outcome{
		Kind: KindOutcome, ITLUS: o.ITLUS[:0], Replica: Nowhere,
		AdmittedUS: Never, RoutedUS: Never, EnqueuedUS: Never, ScheduledUS: Never,
		FirstTokenUS: Never, CompletedUS: Never, EndedUS: Never, ITLMaxUS: Never,
	}
	m := members{object: outcomeObject}
	for s.each(&m) {
		if !o.decodeTime(s, m.field) && !o.decodePlace(s, m.field) {
			o.decodeCount(s, m.field)
		}
	}
	if err := s.finish(); err != nil {
		return err
	}
	return o.check(s)
}

// decodeTime reads f if it is one of the times.
func (o *Outcome) decodeTime(s *scanner, f *Field) bool {
	switch f.Name {
	case "arrival_us":
		o.ArrivalUS = s.micros(f)
	case "admitted_us":
		o.AdmittedUS = s.micros(f)
	case "routed_us":
		o.RoutedUS = s.micros(f)
	case "enqueued_us":
		o.EnqueuedUS = s.micros(f)
	case "scheduled_us":
		o.ScheduledUS = s.micros(f)
	case "first_token_us":
		o.FirstTokenUS = s.micros(f)
	case "completed_us":
		o.CompletedUS = s.micros(f)
	case "ended_us":
		o.EndedUS = s.micros(f)
	case "itl_us":
		o.ITLUS = s.gaps(f, o.ITLUS)
	case "itl_max_us":
		o.ITLMaxUS = s.micros(f)
	default:
		return false
	}
	return true
}

// decodePlace reads f if it says who the request is and where it went.
func (o *Outcome) decodePlace(s *scanner, f *Field) bool {
	switch f.Name {
	case "kind":
		s.kind(f)
	case "id":
		o.ID = s.text(f)
	case "state":
		o.State = s.name(f)
	case "reason":
		o.Reason = s.name(f)
	case "deployment":
		o.Deployment = s.name(f)
	case "replica":
		o.Replica = Index(s.integer(f))
	case "tenant":
		o.Tenant = s.name(f)
	case "slo_class":
		o.SLOClass = s.name(f)
	case "model":
		o.Model = s.name(f)
	case "session":
		o.Session = s.name(f)
	case "step":
		o.Step = s.name(f)
	case "decision":
		o.Decision = s.text(f)
	default:
		return false
	}
	return true
}

// decodeCount reads f, which is one of the others.
func (o *Outcome) decodeCount(s *scanner, f *Field) {
	switch f.Name {
	case "priority":
		o.Priority = s.number(f)
	case "iteration":
		o.Iteration = s.integer(f)
	case "input_tokens":
		o.InputTokens = s.integer(f)
	case "output_tokens":
		o.OutputTokens = s.integer(f)
	case "generated_tokens":
		o.GeneratedTokens = s.integer(f)
	case "cached_tokens":
		o.CachedTokens = s.integer(f)
	case "expected_cached_tokens":
		o.ExpectedCachedTokens = s.integer(f)
	case "preemptions":
		o.Preemptions = s.integer(f)
	case "preempted_us":
		o.PreemptedUS = s.integer(f)
	case "delays":
		o.Delays = s.integer(f)
	case "slo_met":
		o.SLOMet = Met(s.boolean(f))
	}
}

// check holds o to the rules that join its fields: those that the arithmetic
// of latencies relies on.
func (o *Outcome) check(s *scanner) error {
	completed := o.State == StateCompleted
	switch {
	case o.ID == "":
		s.failf("id is empty")
	case !slices.Contains(states, o.State):
		s.err = registry.Unknown("state", o.State, states)
	case completed && o.InputTokens == 0:
		s.failf("input_tokens must be at least 1 of a request that completed, not 0")
	case completed && o.FirstTokenUS == Never:
		s.failf("first_token_us is missing, though the request completed")
	case completed && o.CompletedUS == Never:
		s.failf("completed_us is missing, though the request completed")
	case !completed && o.CompletedUS != Never:
		s.failf("completed_us stands there, though the state is %s", o.State)
	case completed && o.EndedUS != Never:
		s.failf("ended_us stands there, though the request completed")
	case o.EndedUS != Never && o.EndedUS < o.ArrivalUS:
		s.failf("ended_us must be at least arrival_us (%d), not %d", o.ArrivalUS, o.EndedUS)
	case o.FirstTokenUS != Never && o.FirstTokenUS < o.ArrivalUS:
		s.failf("first_token_us must be at least arrival_us (%d), not %d", o.ArrivalUS, o.FirstTokenUS)
	case completed && o.CompletedUS < o.FirstTokenUS:
		s.failf("completed_us must be at least first_token_us (%d), not %d", o.FirstTokenUS, o.CompletedUS)
	}
	return s.err
}

// What the two numbers of a gap may be.
var (
	gapField   = Field{Name: "the gap", Max: maxExact}
	timesField = Field{Name: "the count", Min: 1, Max: maxTokens}
)

// gaps reads the run-length list of gaps into the memory of list.
func (s *scanner) gaps(f *Field, list [][2]int64) [][2]int64 {
	for n := 0; s.element(f, n); n++ {
		var pair [2]int64
		if s.take('[') {
			s.skipSpace()
			pair[0] = s.integer(&gapField)
			if s.err == nil && !s.take(',') {
				s.invalid("expected ,")
			}
			s.skipSpace()
			pair[1] = s.integer(&timesField)
			if s.err == nil && !s.take(']') {
				s.invalid("expected ]")
			}
		} else {
			s.failf("a gap is [µs, how often], not %s", s.token())
		}
		if s.err != nil {
			s.within(f, n)
			return nil
		}
		list = append(list, pair)
	}
	return list
}
