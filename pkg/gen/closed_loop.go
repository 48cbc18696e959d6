package gen

import (
	"cmp"
	"math"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// ClosedLoop replaces a client by a fixed number of users, who wait for each response before they
// send the next request. A user is one session, which ends at the spec's horizon or when the
// client's part of Spec.Requests has been sent. The request rate depends on the response times, so
// Spec.Requests is required.
type ClosedLoop struct {
	Concurrency int64      `yaml:"concurrency" json:"concurrency"`
	ThinkTime   *dist.Spec `yaml:"think_time" json:"think_time,omitempty"`
}

// maxUsers bounds the users of one client.
const maxUsers = 1 << 20

// closedLoopUsers generates the users of a client in a closed loop.
type closedLoopUsers struct {
	sessionBase
	lengths
	thinkTime *dist.Length // nil means 0
	endUS     stream.Micros
	// users is the number of users, requests the number that they send together.
	users, requests int64
}

// newClosedLoopUsers makes the generator of the client c.
func newClosedLoopUsers(s *Spec, c *Client, loop *ClosedLoop, at field) *closedLoopUsers {
	m := &closedLoopUsers{sessionBase: newSessionBase(s.Seed, c, "closed_loop", at), lengths: newLengths(c, at),
		endUS: stream.Never}
	if s.Horizon > 0 {
		m.endUS = stream.Micros(s.Horizon)
	}
	between(at, "closed_loop.concurrency", loop.Concurrency, 1, maxUsers)
	m.thinkTime = at.duration("closed_loop.think_time", loop.ThinkTime)
	if s.Requests == 0 {
		at.spec().fail("requests", "must be given for the closed loop of client %q: the simulation decides how many "+
			"fit into the horizon", c.ID)
	}
	share := cmp.Or(c.RateFraction, 1)
	m.requests = max(1, int64(math.Round(float64(s.Requests)*share)))
	m.users = max(1, min(loop.Concurrency, m.requests)) // an invalid concurrency must not divide by 0 below
	if each := (m.requests + m.users - 1) / m.users; each > maxSteps {
		at.spec().fail("requests", "are %d for each of the %d users of client %q, more than %d; use fewer requests or "+
			"more users", each, m.users, c.ID, maxSteps)
	}
	return m
}

// fill makes one user.
func (m *closedLoopUsers) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.newDraft(a, n, at)
	d.UntilUS, d.Persistent = m.endUS, true
	inputs, outputs := d.lengthStreams()
	prefixes, think := d.stream("prefix"), d.stream("think")
	requests := m.requests / m.users
	if n < m.requests%m.users {
		requests++
	}
	for k := range requests {
		s := d.addCall("request")
		s.InputTokens, s.OutputTokens = m.input.Draw(inputs), m.output.Draw(outputs)
		s.Prompt = m.prefixes.appendTo(s.Prompt, s.InputTokens, prefixes)
		if k > 0 && m.thinkTime != nil {
			s.DelayUS = m.thinkTime.Draw(think)
		}
	}
	return nil
}
