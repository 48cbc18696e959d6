package sim

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// sessionTable holds the sessions that have been read and have not ended. Their requests are created
// one by one, when the steps that they depend on have completed.
type sessionTable struct {
	open  []session
	spare []int32
	// Scratch: the request of makeCall, and the groups of prepare.
	callScratch stream.Request
	groups      map[parallelGroup]int64
}

// session is one session in progress.
type session struct {
	stream.Session
	// position is the stream position of its first step; the others follow.
	position int64
	steps    []stepState
	// pendingCalls is the number of requests that are not final. cutByHorizon: a step lies beyond
	// the horizon.
	pendingCalls int
	cutByHorizon bool
	out          stream.SessionOutcome
	last         des.Time // last completion of a step
	missedTarget bool     // a call missed an SLO target
	inUse        bool     // else the slot is free
}

// stepState is the progress of a step.
type stepState struct {
	// parents is the number of parents that have not completed. at is the latest completion of the
	// others, as the client sees it.
	parents int
	// children are the steps that depend on it.
	children []int32
	turn     int64 // number of model calls before it
	at       des.Time
	// criticalUS is the longest path to the step in call time, including the step once it has
	// completed.
	criticalUS int64
	// issued: the step has begun. arrived: its request has arrived (for checks only).
	issued, arrived, completed bool
	parallel                   bool // one of several parallel calls
}

// parallelGroup identifies the parallel calls of a session: those with the same name, iteration and
// parents.
type parallelGroup struct {
	name      string
	iteration int64
	after     uint64
}

// add adds a session, which begins at its arrival.
func (t *sessionTable) add(s *simulation, a *stream.Arrival, position int64) {
	i := int32(len(t.open))
	if last := len(t.spare) - 1; last >= 0 {
		i = t.spare[last]
		t.spare = t.spare[:last]
	} else {
		t.open = append(t.open, session{})
	}
	v := &t.open[i]
	v.Session, a.Session = a.Session, v.Session // swap, so that both keep their buffers
	v.position, v.inUse = position, true
	v.prepare(t)
	s.requests.open++
	s.events.queue.Push(des.NewEvent(des.Time(v.ArrivalUS), sessionStart, position, i))
}

// prepare sets up the state derived from the record.
func (v *session) prepare(table *sessionTable) {
	v.steps = slices.Grow(v.steps[:0], len(v.Steps))[:len(v.Steps)]
	v.pendingCalls, v.cutByHorizon, v.missedTarget, v.last = 0, false, false, des.Time(v.ArrivalUS)
	v.out = stream.SessionOutcome{Kind: stream.KindSessionOutcome, ID: v.ID, Tenant: v.Tenant, SLOClass: v.SLOClass,
		Workflow: v.Workflow, ArrivalUS: v.ArrivalUS, CompletedUS: stream.Never}
	if table.groups == nil {
		table.groups = map[parallelGroup]int64{}
	}
	clear(table.groups)
	for k := range v.Steps {
		step := &v.Steps[k]
		v.steps[k] = stepState{parents: len(step.After), children: v.steps[k].children[:0], turn: v.out.Calls,
			at: des.Time(v.ArrivalUS)}
		if step.Tool == "" {
			v.out.Calls++
			table.groups[v.group(k)]++
		}
		for _, parent := range step.After { // an earlier step
			v.steps[parent].children = append(v.steps[parent].children, int32(k))
		}
	}
	for k := range v.Steps {
		if v.Steps[k].Tool == "" && table.groups[v.group(k)] > 1 {
			v.steps[k].parallel = true
			v.out.Parallel++
		}
	}
}

func (v *session) group(k int) parallelGroup {
	step := &v.Steps[k]
	after := uint64(14695981039346656037) // FNV-1a
	for _, parent := range step.After {
		after = (after ^ uint64(parent)) * 1099511628211
	}
	return parallelGroup{step.Name(), step.Iteration, after}
}

// start issues the steps without parents.
func (t *sessionTable) start(s *simulation, i int32) error {
	if err := s.readNext(); err != nil { // may move the sessions
		return err
	}
	v := &t.open[i]
	for k := range v.Steps {
		if len(v.Steps[k].After) == 0 {
			if err := t.issueStep(s, i, k); err != nil {
				return err
			}
		}
	}
	return t.endIfIdle(s, i)
}

// issueStep issues a step whose parents have completed.
func (t *sessionTable) issueStep(s *simulation, i int32, k int) error {
	v := &t.open[i]
	step, p := &v.Steps[k], &v.steps[k]
	at := p.at + step.DelayUS
	switch end := at + step.LatencyUS; {
	case end > maxClock:
		return fmt.Errorf("session %q: step %q would end after %d µs (142 years); its delays are too large", v.ID,
			step.ID, int64(maxClock))
	case !v.UntilUS.IsZero() && at > des.Time(v.UntilUS):
		return nil
	case end > s.horizon:
		v.cutByHorizon = true
		return nil
	case step.Tool != "":
		p.issued = true
		v.out.Tools++
		v.out.ToolUS += step.LatencyUS
		return t.completeStep(s, i, k, end, step.LatencyUS)
	}
	p.issued = true
	v.pendingCalls++
	v.out.Offered++
	t.makeCall(s, i, k, at)
	return nil
}

// makeCall creates the request of a step, which arrives at the given time.
func (t *sessionTable) makeCall(s *simulation, i int32, k int, at des.Time) {
	v := &t.open[i]
	step, q := &v.Steps[k], &t.callScratch
	*q = stream.Request{ID: step.RequestID(v.ID), ArrivalUS: stream.Micros(at), InputTokens: step.InputTokens,
		OutputTokens: step.OutputTokens,
		Prompt:       v.AppendPrompt(q.Prompt[:0], k), Tenant: v.Tenant, SLOClass: v.SLOClass,
		Priority: v.Priority, Model: cmp.Or(step.Model, v.Model), Adapter: v.Adapter, Grammar: step.Grammar,
		Session: v.ID, Turn: v.steps[k].turn, DeadlineUS: stream.Never,
		PredictedOutputTokens: step.PredictedOutputTokens, Stop: step.Stop,
		DraftAcceptance: step.DraftAcceptance, Retry: step.Retry}
	if step.TimeoutUS > 0 {
		q.DeadlineUS = stream.Micros(at + step.TimeoutUS)
	}
	r := s.request(s.addRequest(q, v.position+int64(k)))
	r.sessionSlot, r.step = i, int32(k)
	r.out.Step, r.out.Iteration = step.Name(), step.Iteration
}

// completeStep records that a step completed for its client at the given time after took µs, and
// issues the steps that waited for it.
func (t *sessionTable) completeStep(s *simulation, i int32, k int, at des.Time, callUS int64) error {
	v := &t.open[i]
	p := &v.steps[k]
	p.completed = true
	p.criticalUS += callUS
	v.last = max(v.last, at)
	v.out.CriticalUS = max(v.out.CriticalUS, p.criticalUS)
	v.out.Iterations = max(v.out.Iterations, v.Steps[k].Iteration)
	for _, child := range p.children {
		c := &v.steps[child]
		c.at, c.criticalUS = max(c.at, at), max(c.criticalUS, p.criticalUS)
		if c.parents--; c.parents == 0 {
			if err := t.issueStep(s, i, int(child)); err != nil {
				return err
			}
		}
	}
	return nil
}

// countCall counts a final request of a session.
func (t *sessionTable) countCall(s *simulation, r *request) {
	v := &t.open[r.sessionSlot]
	v.pendingCalls--
	v.missedTarget = v.missedTarget || r.out.SLOMet != nil && !*r.out.SLOMet
	switch r.out.State {
	case stream.StateCompleted:
		v.out.Completed++
		if v.steps[r.step].parallel {
			v.out.ParallelCompleted++
		}
	case stream.StateUnfinished:
		v.cutByHorizon = true
	default:
		if v.out.Step == "" && !v.Persistent {
			v.out.Step, v.out.Reason = v.Steps[r.step].ID, r.out.Reason
		}
	}
}

// callFailed continues or ends a session after the request of step k ended now without completing.
func (t *sessionTable) callFailed(s *simulation, i, k int32, r *stream.Outcome) error {
	if r.State != stream.StateUnfinished && t.open[i].Persistent {
		return t.callCompleted(s, i, k, r.Began(), stream.Micros(s.now))
	}
	return t.endIfIdle(s, i)
}

// callCompleted continues a session after the request of step k, which its client saw from from to
// to.
func (t *sessionTable) callCompleted(s *simulation, i, k int32, arrived, completed stream.Micros) error {
	if err := t.completeStep(s, i, int(k), des.Time(completed), int64(completed-arrived)); err != nil {
		return err
	}
	return t.endIfIdle(s, i)
}

// endIfIdle ends a session with nothing left to do. A session cut by the horizon ends with the run.
func (t *sessionTable) endIfIdle(s *simulation, i int32) error {
	v := &t.open[i]
	if v.pendingCalls > 0 {
		return nil
	}
	s.requests.open--
	if v.cutByHorizon {
		return nil
	}
	return t.end(s, i)
}

// end writes the outcome of a session and frees its slot.
func (t *sessionTable) end(s *simulation, i int32) error {
	v := &t.open[i]
	o := &v.out
	switch {
	case o.Step != "":
		o.State = stream.StateBroken
	case v.cutByHorizon:
		o.State = stream.StateUnfinished
	default:
		o.State, o.CompletedUS = stream.StateCompleted, stream.Micros(v.last)
	}
	if class := s.router.names.classes[v.SLOClass]; class != nil && class.Targets != (stream.Targets{}) {
		o.SLOMet = stream.BoolPtr(o.State == stream.StateCompleted && !v.missedTarget)
	}
	err := s.observers.notify(s, onSessionEnd, i)
	v.inUse = false
	t.spare = append(t.spare, i)
	return err
}

// close ends the sessions that the horizon cuts, by position.
func (t *sessionTable) close(s *simulation) error {
	var open []int32
	for i := range t.open {
		if t.open[i].inUse {
			open = append(open, int32(i))
		}
	}
	slices.SortFunc(open, func(a, b int32) int {
		return cmp.Compare(t.open[a].position, t.open[b].position)
	})
	for _, i := range open {
		t.open[i].cutByHorizon = true
		if err := t.end(s, i); err != nil {
			return err
		}
	}
	return nil
}
