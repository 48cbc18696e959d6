package gen

import (
	"fmt"
	"io"
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// merge merges the arrivals of all clients by time; ties are in the order of the spec.
type merge struct {
	clients []*clientSource
	// arrivals holds the next arrival of each client that has one.
	arrivals des.Queue
	horizon  int64
	// sent counts the arrivals, limit bounds them.
	sent, limit int64
}

// newMerge starts the clients of s.
func newMerge(s *Spec, clients []*clientSource) (*merge, error) {
	m := &merge{clients: clients, horizon: s.Horizon, limit: s.Requests}
	if m.horizon == 0 {
		m.horizon = math.MaxInt64
	}
	if m.limit == 0 {
		m.limit = math.MaxInt64
	}
	for i := range clients {
		if err := m.advance(int32(i)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// advance queues the next arrival of client i, if there is one.
func (m *merge) advance(i int32) error {
	more, err := m.clients[i].advance(m.horizon)
	if more {
		m.arrivals.Push(des.NewEvent(m.clients[i].nextArrival, 0, int64(i), i))
	}
	return err
}

// next sets a to the next arrival; io.EOF after the last.
func (m *merge) next(a *stream.Arrival) error {
	if m.sent == m.limit || m.arrivals.Len() == 0 {
		return io.EOF
	}
	i := m.arrivals.Pop().Slot
	if err := m.clients[i].send(a); err != nil {
		return err
	}
	m.sent++
	return m.advance(i)
}

// shortfall warns if the spec makes fewer arrivals than requested; "" if not.
func (m *merge) shortfall() string {
	switch {
	case m.sent == 0:
		return "the spec makes no requests: the horizon ends before the first, or there is no load"
	case m.arrivals.Len() == 0 && m.limit != math.MaxInt64 && m.horizon == math.MaxInt64 && m.sent < m.limit &&
		!m.hasFiniteClient():
		return fmt.Sprintf("the spec makes %d of the %d requested requests or sessions: its load profile ends", m.sent,
			m.limit)
	}
	return ""
}

// hasFiniteClient reports whether any client ends by itself: the users of a closed loop or a trace.
func (m *merge) hasFiniteClient() bool {
	return slices.ContainsFunc(m.clients,
		func(c *clientSource) bool { return c.limit != math.MaxInt64 || c.Arrival.IsTrace() })
}

// accept does nothing: generated arrivals are valid and in order.
func (m *merge) accept(*stream.Arrival) error { return nil }
