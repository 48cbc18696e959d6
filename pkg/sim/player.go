package sim

import (
	"context"
	"fmt"

	"blis/pkg/cluster"
	"blis/pkg/engine"
	"blis/pkg/latency"
	"blis/pkg/stream"
)

// Player plays workloads in process, without streams: for fits, which play the
// same requests hundreds of times. It may be used from several goroutines.
type Player struct {
	config  *cluster.Config
	servers []server
}

// NewPlayer makes a player of a loaded cluster, with the seed of its policies and
// jitters.
func NewPlayer(c *cluster.Config) (*Player, error) {
	servers, err := serversOf(c, 0)
	return &Player{c, servers}, err
}

// Play plays requests, sorted by arrival and with distinct ids, on idle replicas
// that all have the latency model m, or that of their deployment if m is nil. It
// calls final for each request when it is final, in the order in which a run writes
// outcomes, with its place among requests; the outcome is valid during the call.
// The outcomes are those of a run of the same workload with seed 0.
func (p *Player) Play(ctx context.Context, requests []stream.Request, m latency.Model, final func(i int, o *stream.Outcome)) error {
	servers := p.servers
	if m != nil {
		servers = make([]server, len(p.servers))
		for i, s := range p.servers {
			s.model = m
			servers[i] = s
		}
	}
	s, err := newSimulation(p.config, nil, servers, &Options{})
	if err != nil {
		return err
	}
	s.arrivals, s.ledger, s.out = &memory{requests: requests}, listener(final), &output{}
	if err := s.pull(); err != nil {
		return err
	}
	if err := s.run(ctx.Err); err != nil {
		return err
	}
	return s.close()
}

// memory feeds requests from memory.
type memory struct {
	requests []stream.Request
	at       int
	arrival  stream.Arrival
}

func (l *memory) next() (*stream.Arrival, int64, error) {
	if l.at == len(l.requests) {
		return nil, 0, nil
	}
	l.arrival.Request = l.requests[l.at]
	l.at++
	if l.at > 1 && l.arrival.Request.ArrivalUS < l.requests[l.at-2].ArrivalUS {
		return nil, 0, fmt.Errorf("request %d arrives before the one ahead of it; requests must be sorted by arrival", l.at-1)
	}
	return &l.arrival, int64(l.at - 1), nil
}

func (l *memory) skip() (int64, error) {
	n := len(l.requests) - l.at
	l.at = len(l.requests)
	return int64(n + 1), nil // the one that next gave last counts
}

// listener is a ledger that hears of outcomes alone.
type listener func(i int, o *stream.Outcome)

func (l listener) final(position int64, o *stream.Outcome, _ stream.Micros) { l(int(position), o) }
func (listener) session(*stream.SessionOutcome)                             {}
func (listener) gaps(*engine.Ends)                                          {}
