package sim

import (
	"slices"

	"blis/pkg/stream"
)

// kept is a workload in memory.
type kept struct {
	arrivals  []stream.Arrival
	positions []int64
}

// keeping is a feed that keeps what it hands out.
type keeping struct {
	feed
	kept kept
}

func (k *keeping) next() (*stream.Arrival, int64, error) {
	a, position, err := k.feed.next()
	if a != nil && err == nil {
		k.kept.arrivals = append(k.kept.arrivals, clone(a))
		k.kept.positions = append(k.kept.positions, position)
	}
	return a, position, err
}

// clone returns an arrival with memory of its own.
func clone(a *stream.Arrival) stream.Arrival {
	if !a.IsSession {
		c := stream.Arrival{Request: a.Request}
		c.Request.Prompt = slices.Clone(a.Request.Prompt)
		return c
	}
	c := stream.Arrival{IsSession: true, Session: a.Session}
	c.Session.Steps = slices.Clone(a.Session.Steps)
	for i := range c.Session.Steps {
		step := &c.Session.Steps[i]
		step.After, step.Prompt = slices.Clone(step.After), slices.Clone(step.Prompt)
	}
	return c
}

// again is a feed of a workload in memory. Several may share it.
type again struct {
	*kept
	at      int // what next gave last is before it
	arrival stream.Arrival
}

func (f *again) next() (*stream.Arrival, int64, error) {
	if f.at == len(f.arrivals) {
		return nil, 0, nil
	}
	f.arrival = f.arrivals[f.at]
	f.at++
	return &f.arrival, f.positions[f.at-1], nil
}

func (f *again) skip() (int64, error) {
	n := int64(len(f.arrivals) - f.at + 1)
	f.at = len(f.arrivals)
	return n, nil
}
