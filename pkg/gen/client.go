package gen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"blis/pkg/dist"
	"blis/pkg/registry"
	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

// clientSource generates the arrivals of one Client.
type clientSource struct {
	*Client
	times    dist.Times // nil if all arrive at 0
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
// it has any, its bursts. It stops after the first error.
func newClientSources(s *Spec, index int, at field) (clients []*clientSource) {
	c := &s.Clients[index]
	if c.ID == "" {
		at.fail("id", "must be given")
	}
	if slices.ContainsFunc(s.Clients[:index], func(other Client) bool { return other.ID == c.ID }) {
		at.fail("id", "%q is taken by an earlier client", c.ID)
	}
	s.checkBlocks(c, at)
	if !(c.RateFraction > 0 && c.RateFraction <= 1) && (s.hasRate(c) || c.RateFraction != 0) {
		at.fail("rate_fraction", "must be above 0 and at most 1, is %g", c.RateFraction)
	}
	if at.err != nil {
		return nil
	}
	for _, part := range s.expandClient(c, at) {
		c := &clientSource{Client: part, arrivals: part.stream(s.Seed, "arrival"), limit: math.MaxInt64}
		if !s.startsAtZero(part) {
			c.times = newTimes(s, part, at)
		} else if part.LoadProfile != nil {
			at.fail("load_profile", "needs an arrival process; without one all users begin at 0")
		}
		if at.err != nil {
			return nil
		}
		m := s.newGenerator(part, at)
		if users, ok := m.(*closedLoopUsers); ok {
			c.limit = users.users
		}
		c.generator = withDecorators(m, s.Seed, part, at)
		clients = append(clients, c)
	}
	return clients
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

// advance moves to the client's next arrival and reports whether there is one up to the horizon.
func (c *clientSource) advance(horizon int64) (bool, error) {
	if c.sent == c.limit {
		return false, nil
	}
	if c.times != nil {
		c.nextUS = c.times(c.arrivals)
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
func (s *Spec) clients(errorf strictyaml.Errorf) (clients []*clientSource, err error) {
	spec := newField(errorf)
	if s.Version != "2" {
		spec.fail("version", `must be "2", is %q`, s.Version)
	}
	if s.Category != "" && !slices.Contains(categories, s.Category) {
		spec.fail("category", "%v", registry.Unknown("category", s.Category, categories))
	}
	if len(s.Clients) == 0 {
		spec.fail("clients", "must name at least one client")
	}
	s.checkCorrelations(spec.at("correlations"))
	switch {
	case !(s.AggregateRate > 0 && s.AggregateRate <= maxRate) && (s.anyClientHasRate() || s.AggregateRate != 0):
		spec.fail("aggregate_rate", "must be above 0 and at most %g requests a second, is %g", maxRate, s.AggregateRate)
	case s.Horizon < 0 || s.Horizon > maxHorizon:
		spec.fail("horizon", "must be between 1 and %d µs, is %d", int64(maxHorizon), s.Horizon)
	case s.Requests < 0:
		spec.fail("requests", "must be at least 1, is %d", s.Requests)
	case s.Horizon == 0 && s.Requests == 0 && !s.isFinite():
		spec.fail("requests", "must be given (or horizon): otherwise the workload has no end")
	}
	for i := range s.Clients {
		if spec.err == nil {
			clients = append(clients, newClientSources(s, i, spec.at("clients").element(i))...)
		}
	}
	return clients, spec.err
}
