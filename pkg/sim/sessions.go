package sim

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// sessionTable holds the sessions that have been read and have not ended. Requests
// of theirs come into being one by one, when the steps that they wait for have
// completed.
type sessionTable struct {
	open  []session
	spare []int32
	// call is the request at hand, groups what calls of one session stand side by
	// side: scratch.
	call   stream.Request
	groups map[sideBySide]int64
}

// session is one session on its way.
type session struct {
	stream.Session
	// position is that of its first step in the stream; the others follow.
	position int64
	steps    []progress
	// children are the steps after each step, those of step k from steps[k].first
	// to steps[k+1].first.
	children []int32
	// pending requests have been made and are not final; waits: a step lies beyond
	// the run's horizon.
	pending int
	waits   bool
	out     stream.SessionOutcome
	last    des.Time // completion of a step
	missed  bool     // a target
	used    bool     // else the slot is free
}

// progress is how far a step has come.
type progress struct {
	// parents have not completed yet; at is when the last one that has did, for
	// the client.
	parents int32
	first   int32 // place of its children
	turn    int64 // calls of models before it
	at      des.Time
	// busy is the longest way there in time spent in calls, its own included once
	// it has completed.
	busy int64
	// A step is made, a call arrives (noted for checks only), both complete.
	made, arrived, completed bool
	parallel                 bool // one of several calls of the same step
}

// sideBySide tells which calls of a session stand side by side: those of one
// name and iteration behind the same steps.
type sideBySide struct {
	name      string
	iteration int64
	after     uint64
}

// register takes the session that was read; it begins when it arrives.
func (s *simulation) register(a *stream.Arrival, position int64) {
	i := int32(len(s.sessions.open))
	if last := len(s.sessions.spare) - 1; last >= 0 {
		i = s.sessions.spare[last]
		s.sessions.spare = s.sessions.spare[:last]
	} else {
		s.sessions.open = append(s.sessions.open, session{})
	}
	v := &s.sessions.open[i]
	v.Session, a.Session = a.Session, v.Session // each keeps the other's memory
	v.position, v.used = position, true
	v.prepare(&s.sessions)
	s.open++
	s.queue.Push(des.NewEvent(des.Time(v.ArrivalUS), begin, position, i))
}

// prepare sets up everything that follows from the record.
func (v *session) prepare(r *sessionTable) {
	n := len(v.Steps)
	v.steps = slices.Grow(v.steps[:0], n+1)[:n+1]
	clear(v.steps)
	v.pending, v.waits, v.missed, v.last = 0, false, false, des.Time(v.ArrivalUS)
	v.out = stream.SessionOutcome{Kind: stream.KindSessionOutcome, ID: v.ID, Tenant: v.Tenant, SLOClass: v.SLOClass,
		Workflow: v.Workflow, ArrivalUS: v.ArrivalUS, CompletedUS: stream.Never}
	for k := range v.Steps {
		step := &v.Steps[k]
		v.steps[k].turn, v.steps[k].at = v.out.Calls, des.Time(v.ArrivalUS)
		if step.Tool == "" {
			v.out.Calls++
		}
		v.steps[k].parents = int32(len(step.After))
		for _, parent := range step.After {
			v.steps[parent+1].first++ // a count, until the sum
		}
	}
	for k := range n {
		v.steps[k+1].first += v.steps[k].first
	}
	v.children = slices.Grow(v.children[:0], int(v.steps[n].first))[:v.steps[n].first]
	for k := n - 1; k >= 0; k-- { // from behind, so that children come in order
		for _, parent := range v.Steps[k].After {
			end := &v.steps[parent+1].first
			*end--
			v.children[*end] = int32(k)
		}
	}
	// Now the place of the children of k stands in k+1.
	for k := range n {
		v.steps[k].first = v.steps[k+1].first
	}
	v.steps[n].first = int32(len(v.children))
	v.findParallel(r)
}

// findParallel marks the calls that stand side by side.
func (v *session) findParallel(r *sessionTable) {
	if r.groups == nil {
		r.groups = map[sideBySide]int64{}
	}
	clear(r.groups)
	for k := range v.Steps {
		if v.Steps[k].Tool == "" {
			r.groups[v.group(k)]++
		}
	}
	for k := range v.Steps {
		if v.Steps[k].Tool == "" && r.groups[v.group(k)] > 1 {
			v.steps[k].parallel = true
			v.out.Parallel++
		}
	}
}

func (v *session) group(k int) sideBySide {
	step := &v.Steps[k]
	after := uint64(14695981039346656037) // FNV-1a
	for _, parent := range step.After {
		after = (after ^ uint64(parent)) * 1099511628211
	}
	return sideBySide{step.Name(), step.Iteration, after}
}

// begin lets the first steps of a session happen.
func (s *simulation) begin(i int32) error {
	if err := s.pull(); err != nil { // may move the sessions
		return err
	}
	v := &s.sessions.open[i]
	for k := range v.Steps {
		if len(v.Steps[k].After) == 0 {
			if err := s.ready(i, k); err != nil {
				return err
			}
		}
	}
	return s.settle(i)
}

// ready lets a step happen whose parents have all completed.
func (s *simulation) ready(i int32, k int) error {
	v := &s.sessions.open[i]
	step, p := &v.Steps[k], &v.steps[k]
	at := p.at + step.DelayUS
	switch end := at + step.LatencyUS; {
	case end > maxClock:
		return fmt.Errorf("session %q: step %q would end after %d µs (142 years); its delays are too large", v.ID, step.ID, int64(maxClock))
	case !v.UntilUS.IsZero() && at > des.Time(v.UntilUS):
		return nil
	case end > s.horizon:
		v.waits = true
		return nil
	case step.Tool != "":
		p.made = true
		v.out.Tools++
		v.out.ToolUS += step.LatencyUS
		return s.stepDone(i, k, end, step.LatencyUS)
	}
	p.made = true
	v.pending++
	v.out.Offered++
	s.makeCall(i, k, at)
	return nil
}

// makeCall makes the request of a step, which arrives at the given time.
func (s *simulation) makeCall(i int32, k int, at des.Time) {
	v := &s.sessions.open[i]
	step, q := &v.Steps[k], &s.sessions.call
	*q = stream.Request{ID: step.RequestID(v.ID), ArrivalUS: stream.Micros(at), InputTokens: step.InputTokens, OutputTokens: step.OutputTokens,
		Prompt: v.AppendPrompt(q.Prompt[:0], k), Tenant: v.Tenant, SLOClass: v.SLOClass, Model: cmp.Or(step.Model, v.Model),
		Session: v.ID, Turn: v.steps[k].turn, DeadlineUS: stream.Never, PredictedOutputTokens: step.PredictedOutputTokens}
	if step.TimeoutUS > 0 {
		q.DeadlineUS = stream.Micros(at + step.TimeoutUS)
	}
	r := &s.slots[s.place(q, v.position+int64(k))]
	r.of, r.step = i, int32(k)
	r.out.Step, r.out.Iteration = step.Name(), step.Iteration
}

// stepDone lets what waited for a step go on; the step completed for its client
// at an instant, and took so long.
func (s *simulation) stepDone(i int32, k int, at des.Time, took int64) error {
	v := &s.sessions.open[i]
	p := &v.steps[k]
	p.completed = true
	p.busy += took
	v.last = max(v.last, at)
	v.out.CriticalUS = max(v.out.CriticalUS, p.busy)
	v.out.Iterations = max(v.out.Iterations, v.Steps[k].Iteration)
	for _, child := range v.children[p.first:v.steps[k+1].first] {
		c := &v.steps[child]
		c.at, c.busy = max(c.at, at), max(c.busy, p.busy)
		if c.parents--; c.parents == 0 {
			if err := s.ready(i, int(child)); err != nil {
				return err
			}
		}
	}
	return nil
}

// called notes that a request of a session is final.
func (s *simulation) called(r *request) {
	v := &s.sessions.open[r.of]
	v.pending--
	v.missed = v.missed || r.out.SLOMet != nil && !*r.out.SLOMet
	switch r.out.State {
	case stream.StateCompleted:
		v.out.Completed++
		if v.steps[r.step].parallel {
			v.out.ParallelCompleted++
		}
	case stream.StateUnfinished:
		v.waits = true
	default:
		if v.out.Step == "" && !v.Persistent {
			v.out.Step, v.out.Reason = v.Steps[r.step].ID, r.out.Reason
		}
	}
}

// failed lets a session go on, or end, after the request of step k that ended now
// and did not complete.
func (s *simulation) failed(i, k int32, r *stream.Outcome) error {
	if r.State != stream.StateUnfinished && s.sessions.open[i].Persistent {
		return s.proceed(i, k, r.ArrivalUS, stream.Micros(s.now))
	}
	return s.settle(i)
}

// proceed lets a session go on after the request of step k, which its client saw
// from one instant to the other.
func (s *simulation) proceed(i, k int32, from, to stream.Micros) error {
	if err := s.stepDone(i, int(k), des.Time(to), int64(to-from)); err != nil {
		return err
	}
	return s.settle(i)
}

// settle ends a session of which nothing is to come any more. One that waits for
// what lies beyond the horizon ends with the run.
func (s *simulation) settle(i int32) error {
	v := &s.sessions.open[i]
	if v.pending > 0 {
		return nil
	}
	s.open--
	if v.waits {
		return nil
	}
	return s.endSession(i)
}

// endSession writes what became of a session and frees its slot.
func (s *simulation) endSession(i int32) error {
	v := &s.sessions.open[i]
	o := &v.out
	switch {
	case o.Step != "":
		o.State = stream.StateBroken
	case v.waits:
		o.State = stream.StateUnfinished
	default:
		o.State, o.CompletedUS = stream.StateCompleted, stream.Micros(v.last)
	}
	if s.check != nil {
		if err := s.check.session(v); err != nil {
			return err
		}
	}
	if class := s.router.classes[v.SLOClass]; class != nil && class.Targets != (stream.Targets{}) {
		o.SLOMet = stream.Met(o.State == stream.StateCompleted && !v.missed)
	}
	s.ledger.session(o)
	v.used = false
	s.sessions.spare = append(s.sessions.spare, i)
	return s.out.session(o)
}

// closeSessions ends the sessions that the horizon cuts, by position.
func (s *simulation) closeSessions() error {
	var open []int32
	for i := range s.sessions.open {
		if s.sessions.open[i].used {
			open = append(open, int32(i))
		}
	}
	slices.SortFunc(open, func(a, b int32) int {
		return cmp.Compare(s.sessions.open[a].position, s.sessions.open[b].position)
	})
	for _, i := range open {
		s.sessions.open[i].waits = true
		if err := s.endSession(i); err != nil {
			return err
		}
	}
	return nil
}
