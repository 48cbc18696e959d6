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

// errorFunc makes an error about the value at path in a spec.
type errorFunc func(path, format string, args ...any) error

func elementPath(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// clientSource generates the arrivals of one Client.
type clientSource struct {
	*Client
	times    *dist.Times // nil if all arrive at 0
	arrivals *rand.Rand
	generator
	// nextUS is the time of the next arrival in µs, not rounded, and nextArrival the same rounded.
	// sent counts the arrivals so far, limit bounds them.
	nextUS                   float64
	nextArrival, sent, limit int64
}

// generator makes the requests or sessions of a client, one after the other.
type generator interface {
	// fill sets a to arrival number n, counted from 0, at the given time. It does not set the id of
	// a request.
	fill(a *stream.Arrival, n int64, at stream.Micros) error
}

const (
	maxRate    = 1e9     // a thousand arrivals per µs
	maxHorizon = 1 << 53 // the largest time that a record can hold
)

// categories are the valid values of Spec.Category.
var categories = []string{"language", "multimodal", "reasoning", "agentic"}

// newClientSources validates the client at index and returns its sources: the client itself and, if
// it has any, its bursts.
func newClientSources(s *Spec, index int, errorf errorFunc) ([]*clientSource, error) {
	c := &s.Clients[index]
	path := elementPath("clients", index)
	if c.ID == "" {
		return nil, errorf(path+".id", "must be given")
	}
	for i := range index {
		if s.Clients[i].ID == c.ID {
			return nil, errorf(path+".id", "%q is taken by an earlier client", c.ID)
		}
	}
	if err := s.checkBlocks(c, path, errorf); err != nil {
		return nil, err
	}
	if !(c.RateFraction > 0 && c.RateFraction <= 1) && (s.hasRate(c) || c.RateFraction != 0) {
		return nil, errorf(path+".rate_fraction", "must be above 0 and at most 1, is %g", c.RateFraction)
	}
	expanded, err := s.expandClient(c, path, errorf)
	if err != nil {
		return nil, err
	}
	var clients []*clientSource
	for _, part := range expanded {
		c := &clientSource{Client: part, arrivals: part.stream(s.Seed, "arrival"), limit: math.MaxInt64}
		if s.startsAtZero(part) {
			if part.LoadProfile != nil {
				return nil, errorf(path+".load_profile", "needs an arrival process; without one all users begin at 0")
			}
		} else if c.times, err = newTimes(s, part, path, errorf); err != nil {
			return nil, err
		}
		m, err := s.newGenerator(part, path, errorf)
		if err != nil {
			return nil, err
		}
		if users, ok := m.(*closedLoopUsers); ok {
			c.limit = users.users
		}
		if c.generator, err = withDecorators(m, s.Seed, part, path, errorf); err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

// stream returns the client's own random stream for a purpose.
func (c *Client) stream(seed uint64, purpose string) *rand.Rand {
	return dist.NewStream(seed, "client/"+c.name()+"/"+purpose)
}

// name is the name of the client's random streams and the prefix of its ids.
func (c *Client) name() string {
	if c.derived.bursts != nil {
		return c.ID + burstSuffix
	}
	return c.ID
}

// paramError places a parameter error of package dist below path.
func paramError(path string, err error, errorf errorFunc) error {
	var param *dist.ParamError
	if errors.As(err, &param) {
		return errorf(path+"."+param.Path, "%s", param.Msg)
	}
	return err
}

// advance moves to the client's next arrival and reports whether there is one up to the horizon.
func (c *clientSource) advance(horizon int64) (bool, error) {
	if c.sent == c.limit {
		return false, nil
	}
	if c.times != nil {
		c.nextUS = c.times.Next(c.arrivals)
	}
	if math.IsInf(c.nextUS, 1) || c.nextUS >= float64(horizon)+0.5 && horizon < maxHorizon {
		return false, nil
	}
	var err error
	if c.nextArrival, err = dist.Micros(c.nextUS); err != nil {
		return false, fmt.Errorf("client %q: next arrival: %w", c.ID, err)
	}
	return true, nil
}

// send sets a to the current arrival.
func (c *clientSource) send(a *stream.Arrival) error {
	err := c.fill(a, c.sent, stream.Micros(c.nextArrival))
	if !a.IsSession {
		a.Request.ID = string(strconv.AppendInt(append([]byte(c.name()), '/'), c.sent, 10))
	}
	c.sent++
	return err
}

// startsAtZero reports whether all arrivals of c are at 0: users of a closed loop without an
// arrival process.
func (s *Spec) startsAtZero(c *Client) bool { return c.Arrival.Process == "" && s.closedLoop(c) != nil }

// hasRate reports whether the arrivals of c have a rate.
func (s *Spec) hasRate(c *Client) bool { return !c.Arrival.IsTrace() && !s.startsAtZero(c) }

// anyClientHasRate reports whether the arrivals of any client have a rate.
func (s *Spec) anyClientHasRate() bool {
	return slices.ContainsFunc(s.Clients, func(c Client) bool { return s.hasRate(&c) })
}

// isFinite reports whether the arrivals of all clients end by themselves. Bursts do not end.
func (s *Spec) isFinite() bool {
	return !slices.ContainsFunc(s.Clients, func(c Client) bool {
		return !c.Arrival.IsTrace() && s.closedLoop(&c) == nil || c.burst() != nil
	})
}

// clients validates the spec and returns the sources of its clients.
func (s *Spec) clients(errorf errorFunc) ([]*clientSource, error) {
	if s.Version != "2" {
		return nil, errorf("version", `must be "2", is %q`, s.Version)
	}
	if s.Category != "" && !slices.Contains(categories, s.Category) {
		return nil, errorf("category", "%v", registry.Unknown("category", s.Category, categories))
	}
	if len(s.Clients) == 0 {
		return nil, errorf("clients", "must name at least one client")
	}
	if err := s.checkSessionModel(errorf); err != nil {
		return nil, err
	}
	if err := s.checkTenantLoop(errorf); err != nil {
		return nil, err
	}
	switch {
	case !(s.AggregateRate > 0 && s.AggregateRate <= maxRate) && (s.anyClientHasRate() || s.AggregateRate != 0):
		return nil, errorf("aggregate_rate", "must be above 0 and at most %g requests a second, is %g", maxRate,
			s.AggregateRate)
	case s.Horizon < 0 || s.Horizon > maxHorizon:
		return nil, errorf("horizon", "must be between 1 and %d µs, is %d", int64(maxHorizon), s.Horizon)
	case s.Requests < 0:
		return nil, errorf("requests", "must be at least 1, is %d", s.Requests)
	case s.Horizon == 0 && s.Requests == 0 && !s.isFinite():
		return nil, errorf("requests", "must be given (or horizon): otherwise the workload has no end")
	}
	var clients []*clientSource
	for i := range s.Clients {
		parts, err := newClientSources(s, i, errorf)
		if err != nil {
			return nil, err
		}
		clients = append(clients, parts...)
	}
	return clients, nil
}
