package metrics

import (
	"slices"

	"blis/pkg/stream"
)

// Sessions is about sessions. Offered is the sum of the three ends below it.
type Sessions struct {
	Offered    int64 `json:"offered"`
	Completed  int64 `json:"completed"`
	Broken     int64 `json:"broken"`
	Unfinished int64 `json:"unfinished"`
	// E2E is from arrival to the end of the last step, Critical the longest way
	// through the steps in time spent in calls, without the client's thinking; both
	// of completed sessions. Tool is the time in calls of tools, added up, of all
	// that made one. All in ms.
	E2E      *Distribution `json:"e2e,omitempty"`
	Critical *Distribution `json:"critical_path,omitempty"`
	Tool     *Distribution `json:"tool_wait,omitempty"`
	// Steps counts the calls that were made of models and of tools, Iterations
	// those of loops that were begun, of the sessions that have a loop.
	Steps      *Distribution `json:"steps,omitempty"`
	Iterations *Distribution `json:"iterations,omitempty"`
	// FanOutUtilization is the share of calls side by side that were answered, of
	// those that the sessions have.
	FanOutUtilization *float64 `json:"fan_out_utilization,omitempty"`
	// Attainment is the share of sessions that completed with all targets of their
	// class met, of those whose class has any.
	Attainment *float64 `json:"attainment,omitempty"`
}

// sessions gathers Sessions: the counts, and for each distribution its samples,
// times in µs.
type sessions struct {
	Sessions
	e2e, critical, tool, steps, iterations []uint64
	parallel, answered, judged, met        int64
}

// Session counts one session by its outcome.
func (a *Accumulator) Session(o *stream.SessionOutcome) {
	s := &a.sessions
	s.Offered++
	switch o.State {
	case stream.StateCompleted:
		s.Completed++
		s.e2e = append(s.e2e, uint64(o.CompletedUS-o.ArrivalUS))
		s.critical = append(s.critical, uint64(o.CriticalUS))
	case stream.StateBroken:
		s.Broken++
	case stream.StateUnfinished:
		s.Unfinished++
	default:
		panic("metrics: session " + o.ID + " in state " + o.State)
	}
	s.steps = append(s.steps, uint64(o.Offered+o.Tools))
	if o.Tools > 0 {
		s.tool = append(s.tool, uint64(o.ToolUS))
	}
	if o.Iterations > 0 {
		s.iterations = append(s.iterations, uint64(o.Iterations))
	}
	s.parallel += o.Parallel
	s.answered += o.ParallelCompleted
	if o.SLOMet != nil {
		s.judged++
		if *o.SLOMet {
			s.met++
		}
	}
}

// Lost counts the calls that a session would have made, had it not been broken.
func (a *Accumulator) Lost(o *stream.SessionOutcome) {
	n := o.Lost()
	if n == 0 {
		return
	}
	t := &a.totals[a.group(key{class: o.SLOClass, tenant: o.Tenant})]
	t.requests.Lost += n
	if t.targets != (stream.Targets{}) {
		t.missing += n
	}
}

// tree is what was gathered, nil without a session.
func (s *sessions) tree() *Sessions {
	if s.Offered == 0 {
		return nil
	}
	t := s.Sessions
	for _, d := range []struct {
		to      **Distribution
		samples []uint64
		unit    int64
	}{{&t.E2E, s.e2e, 1000}, {&t.Critical, s.critical, 1000}, {&t.Tool, s.tool, 1000}, {&t.Steps, s.steps, 1}, {&t.Iterations, s.iterations, 1}} {
		slices.Sort(d.samples)
		*d.to = ofWhole(d.samples, d.unit)
	}
	if t.E2E != nil {
		t.E2E.Coverage, t.Critical.Coverage = ratio(t.Completed, t.Offered), ratio(t.Completed, t.Offered)
	}
	t.FanOutUtilization = ratio(s.answered, s.parallel)
	t.Attainment = ratio(s.met, s.judged)
	return &t
}
