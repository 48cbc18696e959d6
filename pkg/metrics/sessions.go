package metrics

import (
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Sessions reports sessions. Offered is the sum of Completed, Broken and Unfinished.
type Sessions struct {
	Offered    int64 `json:"offered"`
	Completed  int64 `json:"completed"`
	Broken     int64 `json:"broken"`
	Unfinished int64 `json:"unfinished"`
	// E2E is from arrival to the end of the last step. Critical is the critical path: the
	// longest chain of calls, without the client's think time. Both cover completed
	// sessions. Tool is the total time in tool calls, over sessions that made one. All
	// are in ms.
	E2E      *Distribution `json:"e2e,omitempty"`
	Critical *Distribution `json:"critical_path,omitempty"`
	Tool     *Distribution `json:"tool_wait,omitempty"`
	// Steps counts the model and tool calls that were issued, Iterations the loop
	// iterations that were started, over sessions with a loop.
	Steps      *Distribution `json:"steps,omitempty"`
	Iterations *Distribution `json:"iterations,omitempty"`
	// FanOutUtilization is the completed share of the parallel calls of all sessions.
	FanOutUtilization *float64 `json:"fan_out_utilization,omitempty"`
	// Attainment is the share of sessions that completed and met all targets of their
	// class, among those whose class has targets.
	Attainment *float64 `json:"attainment,omitempty"`
}

// sessions gathers Sessions: the counts, and the samples of each distribution, times in
// µs.
type sessions struct {
	Sessions
	e2e, critical, tool                  column
	steps, iterations                    stat.Histogram
	parallel, answered, withTargets, met int64
}

// AddSession counts the outcome of one session.
func (a *Accumulator) AddSession(o *stream.SessionOutcome) {
	s := &a.sessions
	s.Offered++
	switch o.State {
	case stream.StateCompleted:
		s.Completed++
		a.spilled.add(&s.e2e, uint64(o.CompletedUS-o.ArrivalUS))
		a.spilled.add(&s.critical, uint64(o.CriticalUS))
	case stream.StateBroken:
		s.Broken++
	case stream.StateUnfinished:
		s.Unfinished++
	default:
		panic("metrics: session " + o.ID + " in state " + o.State)
	}
	s.steps.Add(o.Offered+o.Tools, 1)
	if o.Tools > 0 {
		a.spilled.add(&s.tool, uint64(o.ToolUS))
	}
	if o.Iterations > 0 {
		s.iterations.Add(o.Iterations, 1)
	}
	s.parallel += o.Parallel
	s.answered += o.ParallelCompleted
	if o.SLOMet != nil {
		s.withTargets++
		if *o.SLOMet {
			s.met++
		}
	}
}

// AddNotIssued counts the calls that a broken session did not issue.
func (a *Accumulator) AddNotIssued(o *stream.SessionOutcome) {
	n := o.NotIssued()
	if n == 0 {
		return
	}
	t := &a.totals[a.group(key{class: o.SLOClass, tenant: o.Tenant})]
	t.requests.NotIssued += n
	if t.targets != (stream.Targets{}) {
		t.notIssuedWithTargets += n
	}
}

// tree returns the report, nil without a session.
func (s *sessions) tree(spilled *spilled) *Sessions {
	if s.Offered == 0 {
		return nil
	}
	t := s.Sessions
	t.E2E, t.Critical, t.Tool = spilled.micros(&s.e2e), spilled.micros(&s.critical), spilled.micros(&s.tool)
	t.Steps, t.Iterations = histogramDistribution(&s.steps, 1), histogramDistribution(&s.iterations, 1)
	if t.E2E != nil {
		t.E2E.Coverage, t.Critical.Coverage = ratio(t.Completed, t.Offered), ratio(t.Completed, t.Offered)
	}
	t.FanOutUtilization = ratio(s.answered, s.parallel)
	t.Attainment = ratio(s.met, s.withTargets)
	return &t
}
