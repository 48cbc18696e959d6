package gen

import (
	"fmt"
	"io"
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// merge brings what all clients send into one order: by arrival, at the
// same µs by the clients' order in the spec.
type merge struct {
	clients []*client
	// arrivals are the next ones of the clients that have one left.
	arrivals des.Queue
	horizon  int64
	// made counts the arrivals, most bounds them.
	made, most int64
}

// newMerge lets the clients of s begin.
func newMerge(s *Spec, clients []*client) (*merge, error) {
	m := &merge{clients: clients, horizon: s.Horizon, most: s.Requests}
	if m.horizon == 0 {
		m.horizon = math.MaxInt64
	}
	if m.most == 0 {
		m.most = math.MaxInt64
	}
	for i := range clients {
		if err := m.advance(int32(i)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// advance notes the next arrival of client i, if there is one.
func (m *merge) advance(i int32) error {
	more, err := m.clients[i].advance(m.horizon)
	if more {
		m.arrivals.Push(des.NewEvent(m.clients[i].arrival, 0, int64(i), i))
	}
	return err
}

// next fills a with the next one; io.EOF after the last.
func (m *merge) next(a *stream.Arrival) error {
	if m.made == m.most || m.arrivals.Len() == 0 {
		return io.EOF
	}
	i := m.arrivals.Pop().Slot
	if err := m.clients[i].send(a); err != nil {
		return err
	}
	m.made++
	return m.advance(i)
}

// few says that the spec makes less than it is likely to be meant to, "" if it does
// not.
func (m *merge) few() string {
	switch {
	case m.made == 0:
		return "the spec makes no requests: the horizon ends before the first, or there is no load"
	case m.arrivals.Len() == 0 && m.most != math.MaxInt64 && m.horizon == math.MaxInt64 && m.made < m.most && !m.bounded():
		return fmt.Sprintf("the spec makes %d of the %d requests or sessions asked for: its load ends", m.made, m.most)
	}
	return ""
}

// bounded reports whether any client has an end of its own: the users of a closed
// loop, or the times of a trace.
func (m *merge) bounded() bool {
	return slices.ContainsFunc(m.clients, func(c *client) bool { return c.most != math.MaxInt64 || c.Arrival.IsTrace() })
}

// accept has nothing to add: what clients make is in order and on the wire.
func (m *merge) accept(*stream.Arrival) error { return nil }
