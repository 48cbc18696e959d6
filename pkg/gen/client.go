package gen

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"blis/pkg/dist"
	"blis/pkg/registry"
	"blis/pkg/stream"
)

// fault makes an error about the value at path of a spec.
type fault func(path, format string, args ...any) error

func elementPath(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// client is a Client at work: times, and what arrives at them.
type client struct {
	*Client
	times    *dist.Times // nil if all arrive at 0
	arrivals *rand.Rand
	maker
	// us is when its next request or session arrives, in µs and not rounded;
	// arrival is us rounded. made counts those before, most bounds them.
	us                  float64
	arrival, made, most int64
}

// maker makes what a client sends: requests or sessions, one after the other.
type maker interface {
	// fill fills a with the one of place n, from 0, which arrives at the given
	// time. The id of a request is not its concern.
	fill(a *stream.Arrival, n int64, at stream.Micros) error
}

const (
	maxRate    = 1e9     // a thousand arrivals a µs
	maxHorizon = 1 << 53 // the last time that the wire holds
)

// categories are what a spec may call itself.
var categories = []string{"language", "multimodal", "reasoning", "agentic"}

// newClient checks the spec's client at index and makes it ready to draw: it and,
// if it has any, its bursts.
func newClient(s *Spec, index int, fault fault) ([]*client, error) {
	c := &s.Clients[index]
	path := elementPath("clients", index)
	if c.ID == "" {
		return nil, fault(path+".id", "must be given")
	}
	for i := range index {
		if s.Clients[i].ID == c.ID {
			return nil, fault(path+".id", "%q is taken by an earlier client", c.ID)
		}
	}
	if err := s.checkBlocks(c, path, fault); err != nil {
		return nil, err
	}
	if !(c.RateFraction > 0 && c.RateFraction <= 1) && (s.rated(c) || c.RateFraction != 0) {
		return nil, fault(path+".rate_fraction", "must be above 0 and at most 1, is %g", c.RateFraction)
	}
	parts, err := s.parts(c, path, fault)
	if err != nil {
		return nil, err
	}
	var clients []*client
	for _, part := range parts {
		c := &client{Client: part, arrivals: part.stream(s.Seed, "arrival"), most: math.MaxInt64}
		if s.atOnce(part) {
			if part.LoadProfile != nil {
				return nil, fault(path+".load_profile", "must not stand there without arrival: all users begin at 0")
			}
		} else if c.times, err = newTimes(s, part, path, fault); err != nil {
			return nil, err
		}
		m, err := s.newMaker(part, path, fault)
		if err != nil {
			return nil, err
		}
		if users, ok := m.(*users); ok {
			c.most = users.count
		}
		if c.maker, err = withAdditions(m, s.Seed, part, path, fault); err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

// stream returns the client's own random stream for one purpose.
func (c *Client) stream(seed uint64, purpose string) *rand.Rand {
	return dist.NewStream(seed, "client/"+c.name()+"/"+purpose)
}

// name is what its streams and sessions are called after.
func (c *Client) name() string {
	if c.latent.bursts != nil {
		return c.ID + burstPart
	}
	return c.ID
}

// inside places an error of package dist below path.
func inside(path string, err error, fault fault) error {
	var param *dist.ParamError
	if errors.As(err, &param) {
		return fault(path+"."+param.Path, "%s", param.Msg)
	}
	return err
}

// advance moves to the client's next arrival and reports whether there is one
// up to the horizon.
func (c *client) advance(horizon int64) (bool, error) {
	if c.made == c.most {
		return false, nil
	}
	if c.times != nil {
		c.us = c.times.Next(c.arrivals)
	}
	if math.IsInf(c.us, 1) || c.us >= float64(horizon)+0.5 && horizon < maxHorizon {
		return false, nil
	}
	var err error
	if c.arrival, err = dist.Micros(c.us); err != nil {
		return false, fmt.Errorf("client %q: next arrival: %w", c.ID, err)
	}
	return true, nil
}

// send fills a with what arrives now.
func (c *client) send(a *stream.Arrival) error {
	err := c.fill(a, c.made, stream.Micros(c.arrival))
	if !a.IsSession {
		a.Request.ID = string(strconv.AppendInt(append([]byte(c.name()), '/'), c.made, 10))
	}
	c.made++
	return err
}

// atOnce reports whether all that c sends arrives at 0: users of a closed loop of
// whom nothing else is said.
func (s *Spec) atOnce(c *Client) bool { return c.Arrival.Process == "" && s.closedLoop(c) != nil }

// rated reports whether the arrivals of c have a rate.
func (s *Spec) rated(c *Client) bool { return !c.Arrival.IsTrace() && !s.atOnce(c) }

// hasRate reports whether any client's arrivals have a rate.
func (s *Spec) hasRate() bool {
	return slices.ContainsFunc(s.Clients, func(c Client) bool { return s.rated(&c) })
}

// ends reports whether the arrivals of all clients end by themselves, which bursts
// do not.
func (s *Spec) ends() bool {
	return !slices.ContainsFunc(s.Clients, func(c Client) bool {
		return !c.Arrival.IsTrace() && s.closedLoop(&c) == nil || c.burst() != nil
	})
}

// clients checks the spec and makes its clients ready to draw.
func (s *Spec) clients(fault fault) ([]*client, error) {
	if s.Version != "2" {
		return nil, fault("version", `must be "2", is %q`, s.Version)
	}
	if s.Category != "" && !slices.Contains(categories, s.Category) {
		return nil, fault("category", "%v", registry.Unknown("category", s.Category, categories))
	}
	if len(s.Clients) == 0 {
		return nil, fault("clients", "must name at least one client")
	}
	if err := s.checkSessionModel(fault); err != nil {
		return nil, err
	}
	if err := s.checkTenantLoop(fault); err != nil {
		return nil, err
	}
	switch {
	case !(s.AggregateRate > 0 && s.AggregateRate <= maxRate) && (s.hasRate() || s.AggregateRate != 0):
		return nil, fault("aggregate_rate", "must be above 0 and at most %g requests a second, is %g", maxRate, s.AggregateRate)
	case s.Horizon < 0 || s.Horizon > maxHorizon:
		return nil, fault("horizon", "must be between 1 and %d µs, is %d", int64(maxHorizon), s.Horizon)
	case s.Requests < 0:
		return nil, fault("requests", "must be at least 1, is %d", s.Requests)
	case s.Horizon == 0 && s.Requests == 0 && !s.ends():
		return nil, fault("requests", "must be given, or horizon: without one of them the workload has no end")
	}
	var clients []*client
	for i := range s.Clients {
		parts, err := newClient(s, i, fault)
		if err != nil {
			return nil, err
		}
		clients = append(clients, parts...)
	}
	return clients, nil
}
