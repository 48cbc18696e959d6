package attribution

import "blis/pkg/stream"

// span is the time from the first to the last of the times added to it. It is empty, from 0 until 0, before.
type span struct {
	from, until stream.Micros
	known       bool
}

// add widens the span, so that it has the time between two instants. Neither is never.
func (s *span) add(from, until stream.Micros) {
	if !s.known {
		*s = span{from, until, true}
		return
	}
	s.from, s.until = min(s.from, from), max(s.until, until)
}

// us is the length of the span.
func (s *span) us() float64 { return float64(s.until - s.from) }
