package gen

import (
	"io"
	"math"

	"blis/pkg/record"
)

// merge brings the requests of all clients into one order: by arrival, at the
// same µs by the clients' order in the spec.
type merge struct {
	// heap holds the clients that have an arrival left, the next one on top.
	heap    []*client
	horizon int64
	// made counts the requests, most bounds them.
	made, most int64
}

// newMerge lets the clients of s begin.
func newMerge(s *Spec, clients []*client) (*merge, error) {
	m := &merge{horizon: s.Horizon, most: s.Requests}
	if m.horizon == 0 {
		m.horizon = math.MaxInt64
	}
	if m.most == 0 {
		m.most = math.MaxInt64
	}
	for _, c := range clients {
		more, err := c.advance(m.horizon)
		if err != nil {
			return nil, err
		}
		if more {
			m.heap = append(m.heap, c)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

// next fills r with the next request; io.EOF after the last.
func (m *merge) next(r *record.Request) error {
	if m.made == m.most || len(m.heap) == 0 {
		return io.EOF
	}
	c := m.heap[0]
	c.request(r)
	r.ID = requestID(m.made)
	m.made++
	more, err := c.advance(m.horizon)
	if err != nil {
		return err
	}
	if !more {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.sink(0)
	return nil
}

// accept has nothing to add: what clients make is in order and on the wire.
func (m *merge) accept(*record.Request) error { return nil }

// sink moves the client at i down to where it is not after those below it.
func (m *merge) sink(i int) {
	for {
		first := i
		for below := 2*i + 1; below <= 2*i+2 && below < len(m.heap); below++ {
			if m.heap[below].before(m.heap[first]) {
				first = below
			}
		}
		if first == i {
			return
		}
		m.heap[i], m.heap[first] = m.heap[first], m.heap[i]
		i = first
	}
}

// before reports whether c's next request comes before that of other.
func (c *client) before(other *client) bool {
	if c.arrival != other.arrival {
		return c.arrival < other.arrival
	}
	return c.index < other.index
}
