package sim

import (
	"context"
	"fmt"
	"slices"

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
// workload with seed 0, but for the waits by the limit that stopped the queue, which are not measured.
func (p *Player) Play(ctx context.Context, requests []stream.Request, m latency.Model,
	final func(i int, o *stream.Outcome)) error {
	for i := 1; i < len(requests); i++ {
		if requests[i].ArrivalUS < requests[i-1].ArrivalUS {
			return fmt.Errorf("request %d arrives before the previous one; requests must be sorted by arrival", i)
		}
	}
	specs := slices.Clone(p.specs)
	if m != nil {
		for i := range specs {
			specs[i].model = m
		}
	}
	s, err := newSimulation(p.config, nil, specs, &Options{})
	if err != nil {
		return err
	}
	s.feed = &memoryFeed{n: len(requests), load: func(i int, a *stream.Arrival) int64 {
		a.Request = requests[i]
		return int64(i)
	}}
	s.observers.add(outcomeFunc(final))
	if err := s.readNext(); err != nil {
		return err
	}
	if err := s.run(ctx.Err); err != nil {
		return err
	}
	return s.close()
}

// outcomeFunc observes outcomes only.
type outcomeFunc func(i int, o *stream.Outcome)

func (outcomeFunc) hooks() []hook { return []hook{onFinal} }

func (f outcomeFunc) observe(s *simulation, _ hook, i int32) error {
	r := s.request(i)
	f(int(r.position), &r.out)
	return nil
}
