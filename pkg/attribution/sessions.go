package attribution

import (
	"strings"

	"blis/pkg/stream"
)

// SessionTime is where the time of completed sessions went, as shares of their E2E; parallel calls and tools count as
// often as they run, so that the shares may exceed 1 in sum. Waiting is the part of Calls before service.
type SessionTime struct {
	Calls, Waiting, Tools, Other float64
	// Joins is the number of steps with parallel calls. From the mean end of the calls of such a step to the end of
	// the last one take JoinMS (mean), and the share Join of the E2E in total.
	Joins        int64
	JoinMS, Join float64
}

// Shares of the time of sessions that are a cause of long sessions.
const (
	longTools = 0.5
	longJoins = 0.2
)

// Cause names what takes much of the sessions' time outside the cluster or in joins, "" if nothing does.
func (t *SessionTime) Cause() string {
	switch {
	case t == nil:
	case t.Tools >= longTools:
		return "tool_wait"
	case t.Join >= longJoins:
		return "join_wait"
	}
	return ""
}

// sessionSums are sums in µs over sessions.
type sessionSums struct {
	sessions, e2e, tools int64
	calls                map[sessionStep]*callSums
	call, wait           int64
}

// sessionStep is one step of one iteration of a session.
type sessionStep struct {
	session, step string
	iteration     int64
}

// callSums are over the parallel calls of a step.
type callSums struct{ n, sum, last int64 }

// Session takes the outcome of a session.
func (a *Analyzer) Session(o *stream.SessionOutcome) {
	if o.State != stream.StateCompleted {
		return
	}
	s := &a.sessions
	s.sessions++
	s.e2e += int64(o.CompletedUS - o.ArrivalUS)
	s.tools += o.ToolUS
}

// sessionCall takes a completed call of a session.
func (a *Analyzer) sessionCall(o *stream.Outcome, r *request) {
	if o.Session == "" || o.State != stream.StateCompleted {
		return
	}
	s := &a.sessions
	s.call += int64(o.CompletedUS - o.ArrivalUS)
	s.wait += int64(waitMS(r) * 1000)
	if s.calls == nil {
		s.calls = map[sessionStep]*callSums{}
	}
	key := sessionStep{strings.Clone(o.Session), strings.Clone(o.Step), o.Iteration}
	if s.calls[key] == nil {
		s.calls[key] = &callSums{}
	}
	c := s.calls[key]
	c.n++
	c.sum += int64(o.CompletedUS)
	c.last = max(c.last, int64(o.CompletedUS))
}

// sessionTime divides the time of sessions, nil without any.
func (a *Analyzer) sessionTime() *SessionTime {
	s := &a.sessions
	if s.sessions == 0 || s.e2e == 0 {
		return nil
	}
	all := float64(s.e2e)
	t := &SessionTime{Calls: float64(s.call) / all, Waiting: float64(s.wait) / all, Tools: float64(s.tools) / all}
	t.Other = max(0, 1-t.Calls-t.Tools)
	late := int64(0) // in µs: integers, as maps have no order
	for _, c := range s.calls {
		if c.n > 1 {
			t.Joins++
			late += c.last - c.sum/c.n
		}
	}
	t.Join = float64(late) / all
	if t.Joins > 0 {
		t.JoinMS = float64(late) / float64(t.Joins) / 1000
	}
	return t
}
