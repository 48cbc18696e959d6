package gen

import (
	"math"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// ClosedLoop makes users of a client, each of whom sends a request and waits for
// the answer before sending the next one: a session without end but the spec's
// horizon and its number of requests. Together they send the client's part of the
// spec's requests (rate_fraction; absent, all), each as many as the others or one
// more. How fast depends on how fast the answers come, so that requests must be
// given. An arrival process, where there is one, says when users begin; without
// it all do at 0.
type ClosedLoop struct {
	// Concurrency is the number of users.
	Concurrency int64 `yaml:"concurrency" json:"concurrency"`
	// ThinkTime is from an answer to the user's next request, in µs; absent, no
	// time.
	ThinkTime *dist.Spec `yaml:"think_time" json:"think_time,omitempty"`
}

// maxUsers bounds those of one client.
const maxUsers = 1 << 20

// users are those of a client in a closed loop.
type users struct {
	sessions
	lengths
	think *dist.Length // nil if no time
	until stream.Micros
	// count is how many there are, requests how many they send together.
	count, requests int64
}

// newUsers makes the users of c, which stands at path.
func newUsers(s *Spec, c *Client, loop *ClosedLoop, path string, fault fault) (*users, error) {
	m := &users{until: stream.Never}
	if s.Horizon > 0 {
		m.until = stream.Micros(s.Horizon)
	}
	var err error
	if m.sessions, err = newSessions(s.Seed, c, path, "closed_loop", fault); err != nil {
		return nil, err
	}
	if m.lengths, err = newLengths(c, path, fault); err != nil {
		return nil, err
	}
	if loop.Concurrency < 1 || loop.Concurrency > maxUsers {
		return nil, fault(path+".closed_loop.concurrency", "must be between 1 and %d, is %d", maxUsers, loop.Concurrency)
	}
	if loop.ThinkTime != nil {
		if m.think, err = durationAt(*loop.ThinkTime, path+".closed_loop.think_time", fault); err != nil {
			return nil, err
		}
	}
	if s.Requests == 0 {
		return nil, fault("requests", "must be given for the closed loop of client %q: how many its users send until the horizon, only a simulation can tell", c.ID)
	}
	share := c.RateFraction
	if share == 0 {
		share = 1
	}
	m.requests = max(1, int64(math.Round(float64(s.Requests)*share)))
	m.count = min(loop.Concurrency, m.requests)
	if each := (m.requests + m.count - 1) / m.count; each > maxSteps {
		return nil, fault("requests", "are %d for each of the %d users of client %q, more than %d: let there be fewer requests or more users", each, m.count, c.ID, maxSteps)
	}
	return m, nil
}

// fill makes one user.
func (m *users) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.begin(a, n, at)
	d.UntilUS, d.Persistent = m.until, true
	from, prefixes, think := d.draws(), d.stream("prefix"), d.stream("think")
	requests := m.requests / m.count
	if n < m.requests%m.count {
		requests++
	}
	for k := range requests {
		s := d.next("request")
		s.InputTokens, s.OutputTokens = m.input.Draw(from.input), m.output.Draw(from.output)
		s.Prompt = m.prefixes.begin(s.Prompt, s.InputTokens, prefixes)
		if k > 0 && m.think != nil {
			s.DelayUS = m.think.Draw(think)
		}
	}
	return nil
}
