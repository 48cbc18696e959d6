package sim

import (
	"slices"

	"blis/pkg/stream"
)

// workload is a workload in memory.
type workload struct {
	arrivals  []stream.Arrival
	positions []int64
}

// recordingFeed is a feed that keeps a copy of all it supplies.
type recordingFeed struct {
	feed
	workload workload
}

func (f *recordingFeed) next() (*stream.Arrival, int64, error) {
	a, position, err := f.feed.next()
	if a != nil && err == nil {
		f.workload.arrivals = append(f.workload.arrivals, clone(a))
		f.workload.positions = append(f.workload.positions, position)
	}
	return a, position, err
}

// clone returns an arrival with its own memory.
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

// replayFeed supplies a workload from memory. Several may share the workload.
type replayFeed struct {
	*workload
	at      int // index of the next arrival
	arrival stream.Arrival
}

func (f *replayFeed) next() (*stream.Arrival, int64, error) {
	if f.at == len(f.arrivals) {
		return nil, 0, nil
	}
	f.arrival = f.arrivals[f.at]
	f.at++
	return &f.arrival, f.positions[f.at-1], nil
}

func (f *replayFeed) skip() (int64, error) {
	n := int64(len(f.arrivals) - f.at + 1)
	f.at = len(f.arrivals)
	return n, nil
}
