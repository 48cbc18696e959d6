package attribution

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// SessionTime is where the time of completed sessions went, as shares of their E2E; parallel calls and tools count as
// often as they run, so that the shares may exceed 1 in sum. Waiting is the part of Calls before service.
type SessionTime struct {
	Calls, Waiting, Tools, Other float64
	// Joins is the number of steps with parallel calls: all were there before the first one ended. From the mean end of
	// the calls of such a step to the end of the last one take JoinMS (mean), and the share Join of the E2E in total.
	Joins        int64
	JoinMS, Join float64
	// SlowToolMS is the mean tool time of the slowest quarter of the sessions, OtherToolMS that of the others.
	SlowToolMS, OtherToolMS float64
}

// Shares of the time of sessions that are a cause of long sessions.
const (
	longTools = 0.5
	longJoins = 0.2
	longWaits = 0.5
)

// Cause names what takes much of the sessions' time: tools, joins, or waiting for service; "" if nothing does.
func (t *SessionTime) Cause() string {
	switch {
	case t == nil:
	case t.Tools >= longTools:
		return "tool_wait"
	case t.Join >= longJoins:
		return "join_wait"
	case t.Waiting >= longWaits:
		return "starved_sessions"
	}
	return ""
}

// sessionSums are sums in µs over sessions.
type sessionSums struct {
	sessions, e2e, tools int64
	broken               int64 // sessions
	calls                map[sessionStep]*callSums
	call, wait           int64
	completed            []sessionTotals
}

// sessionTotals are the E2E and the tool time of a session in µs.
type sessionTotals struct{ e2e, tools int64 }

// sessionStep is one step of one iteration of a session.
type sessionStep struct {
	session, step string
	iteration     int64
}

// callSums are over the calls of a step: their number, the sum of their ends, the first and the last end, and the last
// arrival.
type callSums struct{ n, sum, first, last, arrived int64 }

// parallel reports whether all calls were there before the first one ended. The turns of a chat are one step, too, but
// follow one another.
func (c *callSums) parallel() bool { return c.n > 1 && c.arrived < c.first }

// Session takes the outcome of a session.
func (a *Analyzer) Session(o *stream.SessionOutcome) {
	s := &a.sessions
	if o.State == stream.StateBroken {
		s.broken++
	}
	if o.State != stream.StateCompleted {
		return
	}
	s.sessions++
	s.e2e += int64(o.CompletedUS - o.ArrivalUS)
	s.tools += o.ToolUS
	s.completed = append(s.completed, sessionTotals{int64(o.CompletedUS - o.ArrivalUS), o.ToolUS})
}

// compareTools sets the tool time of the slowest quarter and of the others.
func (t *SessionTime) compareTools(all []sessionTotals) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(x, y sessionTotals) int {
		return cmp.Or(cmp.Compare(y.e2e, x.e2e), cmp.Compare(y.tools, x.tools))
	})
	n := (len(all) + 3) / 4
	meanMS := func(of []sessionTotals) float64 {
		sum := int64(0)
		for _, s := range of {
			sum += s.tools
		}
		return float64(sum) / float64(max(1, len(of))) / 1000
	}
	t.SlowToolMS, t.OtherToolMS = meanMS(all[:n]), meanMS(all[n:])
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
		s.calls[key] = &callSums{first: math.MaxInt64}
	}
	c := s.calls[key]
	c.n++
	c.sum += int64(o.CompletedUS)
	c.first, c.last = min(c.first, int64(o.CompletedUS)), max(c.last, int64(o.CompletedUS))
	c.arrived = max(c.arrived, int64(o.ArrivalUS))
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
	t.compareTools(s.completed)
	late := int64(0) // in µs: integers, as maps have no order
	for _, c := range s.calls {
		if c.parallel() {
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
