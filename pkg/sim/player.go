package sim

import (
	"context"
	"fmt"

	"blis/pkg/cluster"
	"blis/pkg/latency"
	"blis/pkg/stream"
)

// Player simulates workloads in process, without streams: for fits, which simulate the same requests
// hundreds of times. It is safe for concurrent use.
type Player struct {
	config *cluster.Config
	specs  []replicaSpec
}

// NewPlayer returns a player for a loaded cluster. The seeds of its policies and of jitter are 0.
func NewPlayer(c *cluster.Config) (*Player, error) {
	specs, err := replicaSpecs(c, 0)
	return &Player{c, specs}, err
}

// Play simulates requests, which are sorted by arrival and have distinct ids, on idle replicas. All
// replicas have the latency model m, or that of their deployment if m is nil. It calls final for
// each request with its index when the request is final, in the order in which a run writes
// outcomes. The outcome is valid during the call. The outcomes equal those of a run of the same
// workload with seed 0.
func (p *Player) Play(ctx context.Context, requests []stream.Request, m latency.Model,
	final func(i int, o *stream.Outcome)) error {
	specs := p.specs
	if m != nil {
		specs = make([]replicaSpec, len(p.specs))
		for i, s := range p.specs {
			s.model = m
			specs[i] = s
		}
	}
	s, err := newSimulation(p.config, nil, specs, &Options{})
	if err != nil {
		return err
	}
	s.feed = &memoryFeed{requests: requests}
	s.observers.add(outcomeFunc(final))
	if err := s.readNext(); err != nil {
		return err
	}
	if err := s.run(ctx.Err); err != nil {
		return err
	}
	return s.close()
}

// memoryFeed supplies requests from memory.
type memoryFeed struct {
	requests []stream.Request
	at       int
	arrival  stream.Arrival
}

func (l *memoryFeed) next() (*stream.Arrival, int64, error) {
	if l.at == len(l.requests) {
		return nil, 0, nil
	}
	l.arrival.Request = l.requests[l.at]
	l.at++
	if l.at > 1 && l.arrival.Request.ArrivalUS < l.requests[l.at-2].ArrivalUS {
		return nil, 0, fmt.Errorf("request %d arrives before the previous one; requests must be sorted by arrival",
			l.at-1)
	}
	return &l.arrival, int64(l.at - 1), nil
}

func (l *memoryFeed) skip() (int64, error) {
	n := len(l.requests) - l.at
	l.at = len(l.requests)
	return int64(n + 1), nil // includes the last arrival of next
}

// outcomeFunc observes outcomes only.
type outcomeFunc func(i int, o *stream.Outcome)

func (outcomeFunc) hooks() []hook { return []hook{onFinal} }

func (f outcomeFunc) observe(s *simulation, _ hook, i int32) error {
	r := s.request(i)
	f(int(r.position), &r.out)
	return nil
}
