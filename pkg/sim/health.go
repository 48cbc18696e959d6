package sim

import (
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
)

// healthCheck probes the replicas that the router knows, at the multiples of its interval. It does so only while one of
// them is not healthy, which gives the same.
type healthCheck struct {
	intervalUS int64
	failures   int
	active     bool // a probe is scheduled
}

// probes is what the health check knows of a replica: how many probes have failed in a row, and whether they were
// enough.
type probes struct {
	failed    int
	unhealthy bool
}

// newHealthCheck returns nil if there is none.
func newHealthCheck(c *cluster.HealthCheck) *healthCheck {
	if c == nil {
		return nil
	}
	us, err := c.Interval.Micros()
	if err != nil {
		panic("sim: " + err.Error()) // it was checked
	}
	return &healthCheck{intervalUS: us, failures: c.Failures}
}

// start schedules the next probe, unless one is. h may be nil.
func (h *healthCheck) start(s *simulation) {
	if h == nil || h.active {
		return
	}
	h.active = true
	at := s.now
	if past := at % h.intervalUS; past > 0 {
		at += h.intervalUS - past
	}
	s.events.queue.Push(des.NewEvent(at, probe, 0, missing))
}

// probeAll probes all replicas that the router knows.
func (s *simulation) probeAll() {
	h := s.failures.health
	h.active = false
	for i := range s.deployments {
		for _, k := range s.fleet.known(s, &s.deployments[i]) {
			x := &s.failures.replicas[k]
			if s.accepts(k) {
				x.failed = 0
				if x.unhealthy {
					x.unhealthy = false
					s.router.flow.schedule(s)
				}
				continue
			}
			if x.failed++; x.failed == h.failures {
				x.unhealthy = true
				s.router.flow.schedule(s)
			}
			comesBack := s.fleet.members[k].phase != failed || x.backAt != never
			h.active = h.active || comesBack || !x.unhealthy
		}
	}
	if h.active {
		s.events.queue.Push(des.NewEvent(s.now+h.intervalUS, probe, 0, missing))
	}
}

// known returns the replicas of a deployment that the router knows.
func (f *fleet) known(s *simulation, d *deployment) []int32 {
	if d.elastic != nil {
		return d.elastic.serving
	}
	for int32(len(f.numbers)) < int32(d.end) {
		f.numbers = append(f.numbers, int32(len(f.numbers)))
	}
	return slices.Clip(f.numbers[d.first:d.end])
}
