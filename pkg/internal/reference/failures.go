package reference

import "slices"

// Failures are replicas that fail. They go with the routers of Scaling.
type Failures struct {
	Events []Failure
	// Start has the times and the curve by which replicas come back, and whether they get requests while they warm up.
	// A Scaling replaces it.
	Start Scaling
	// ProbeUS is the interval of health checks, 0 is none. A replica that fails this many in a row gets no requests
	// until it passes one.
	ProbeUS int64
	Probes  int
}

// maxRedirects is how often a request goes to another replica.
const maxRedirects = 1000

// Failure is a failure of a replica at AtUS. It is down for ForUS until it begins to load, or Never comes back. With
// Factor it is slow instead, and with Cut its reports do not reach the router, for ForUS.
type Failure struct {
	Factor      float64
	Cut         bool
	AtUS, ForUS int64
	Replica     int
	Prefill     bool // it is a prefill replica
	// Redirect: its requests, and those sent to it while it is down, go to other replicas. Otherwise they fail.
	Redirect bool
}

// ofPrefill are the failures of prefill replicas.
func (f *Failures) ofPrefill() *Failures {
	if f == nil {
		return nil
	}
	x := *f
	x.Events = nil
	for _, e := range f.Events {
		if e.Prefill {
			e.Prefill = false
			x.Events = append(x.Events, e)
		}
	}
	return &x
}

// positionOf is the number of the replica of a failure, Never if there is none.
func (s *simulation) positionOf(f Failure) int {
	return slices.IndexFunc(s.replicas, func(r *replica) bool {
		return r.prefills == f.Prefill && r.index == f.Replica
	})
}

// health is what a replica that may fail has.
type health struct {
	known     bool // to the router
	redirect  bool
	failed    int // probes in a row
	unhealthy bool
}

// starts is how replicas start.
func (c *Config) starts() *Scaling {
	switch {
	case c.Scaling != nil:
		return c.Scaling
	case c.Failures != nil:
		return &c.Failures.Start
	}
	return nil
}

// hasFleet reports whether replicas come, go or fail.
func (c *Config) hasFleet() bool {
	return c.starts() != nil || c.Disaggregation != nil && c.Disaggregation.Pool.Scaling != nil
}

// slow is the length of a step of replica i that starts at now and would take us.
func (c *Config) slow(i int, now int64, us float64) float64 {
	if c.Failures == nil {
		return us
	}
	for _, f := range c.Failures.Events {
		if f.Factor > 0 && !f.Prefill && f.Replica == i && f.AtUS <= now && (f.ForUS == Never || now < f.AtUS+f.ForUS) {
			us = float64(us * f.Factor)
		}
	}
	return us
}

// present lists the replicas that count for an auto-scaler.
func (s *simulation) present(x *scaler) (all []int) {
	for i, r := range s.replicas {
		if r.prefills != x.prefills {
			continue
		}
		if r.life.isStarting() || r.life.state == "ready" {
			all = append(all, i)
		}
	}
	return s.byMember(all)
}

// isDown reports whether a replica is down and comes back.
func (l *life) isDown() bool { return l.state == "failed" && l.nextAt != Never }

// isStarting reports whether a replica will be ready.
func (l *life) isStarting() bool {
	return slices.Contains([]string{"provisioning", "loading", "warming"}, l.state) || l.isDown()
}

// accepts reports whether a replica takes requests.
func (s *simulation) accepts(i int) bool {
	state := s.replicas[i].life.state
	return state == "ready" || state == "draining" || state == "warming" && !s.replicas[i].config.starts().WarmingWaits
}

// candidates lists the replicas to which the router may send a request.
func (s *simulation) candidates(q *request, now int64) []int { return s.candidatesOf(false, q, now) }

func (s *simulation) candidatesOf(prefills bool, q *request, now int64) (all []int) {
	for i, r := range s.replicas {
		refused := q.refusedAt == now && slices.Contains(q.refusedBy, i)
		if r.prefills == prefills && r.life.known && !r.life.unhealthy && !refused {
			all = append(all, i)
		}
	}
	return s.byMember(all)
}

// hopes reports whether there may be a candidate for a request later.
func (s *simulation) hopes(q *request, now int64) bool {
	if q.refusedAt == now && len(q.refusedBy) > 0 {
		return false
	}
	return s.config.Scaling != nil || slices.ContainsFunc(s.decodeReplicas(), func(r *replica) bool {
		return r.life.state != "failed" || r.life.isDown()
	})
}

// dispatchFailures performs the first pending failure of this instant and reports whether there was one.
func (s *simulation) dispatchFailures(now int64) bool {
	if s.config.Failures == nil {
		return false
	}
	for k, f := range s.config.Failures.Events {
		switch {
		case f.Factor > 0:
			continue
		case f.Cut && f.AtUS+f.ForUS == now && !s.healed[k]:
			s.healed[k] = true
			r := s.replicas[s.positionOf(f)]
			r.cuts--
			s.flow.due = s.flow.due || r.cuts == 0
			return true
		}
		if f.AtUS != now || s.failed[k] {
			continue
		}
		s.failed[k] = true
		switch {
		case f.Cut && s.positionOf(f) < 0: // nothing has been cut off that it could restore
			s.healed[k] = true
			return true
		case f.Cut:
			if s.config.SnapshotUS == 0 {
				s.readReports(now)
			}
			s.replicas[s.positionOf(f)].cuts++
			return true
		}
		if i := s.positionOf(f); i >= 0 {
			s.fail(i, f, now)
		}
		return true
	}
	return false
}

// fail takes a replica down.
func (s *simulation) fail(i int, f Failure, now int64) {
	r := s.replicas[i]
	l := &r.life
	until := int64(Never)
	if f.ForUS != Never {
		until = now + f.ForUS
	}
	switch {
	case l.state == "gone", l.state == "failed" && l.nextAt == Never:
		return
	case l.state == "failed":
		if until == Never || until > l.nextAt {
			l.nextAt, l.redirect, s.flow.due = until, f.Redirect, true
		}
		return
	}
	drained := l.state == "draining"
	s.enter(i, "failed", now)
	l.nextAt, l.redirect, l.warmFrom = until, f.Redirect, Never
	for _, q := range s.requests {
		if !q.final() && s.isAt(q, i, true) {
			if f.Redirect && q.outcome.Redirects < maxRedirects {
				q.refuse(i, now)
			} else {
				s.abort(q, now, failed, "replica_lost")
			}
		}
	}
	if f.Redirect {
		s.redirectAll(i, now, true)
	}
	s.failPulls(i, now)
	for _, q := range r.leaving() {
		if !q.ghost {
			s.count(i, -1)
		}
	}
	r.loseHost(now)
	r.endStages(now)
	empty := newCache(r.config.usable(), r.config.UnhashedFirst)
	empty.duplicates, empty.evictions = r.cache.duplicates, r.cache.evictions
	r.cache, r.step, r.ahead, r.aborted, r.running, r.waiting, r.fresh = empty, nil, nil, nil, nil, nil, nil
	r.held, r.released = nil, nil
	r.flight.queue, r.flight.left = nil, false
	r.flight.freeAt, r.flight.ends = map[int]int64{}, map[int]int64{}
	r.inHost, r.onGPU = nil, nil
	r.grammars = structured{counts: r.grammars.counts}
	r.embeddings = encoderCache{}
	r.victims = 0
	s.flow.due = true
	if drained {
		s.enter(i, "gone", now)
	}
}

// loseHost empties the memory of the host of a replica that goes down.
func (r *replica) loseHost(now int64) {
	if r.host == nil {
		return
	}
	r.failTransfers(now)
	r.host = &host{Host: r.host.Host, counts: r.host.counts, done: r.host.done, storedAt: map[string]int64{}}
	r.loading, r.orphans = nil, nil
}

func (q *request) refuse(replica int, now int64) {
	if q.refusedAt != now {
		q.refusedAt, q.refusedBy = now, nil
	}
	q.refusedBy = append(q.refusedBy, replica)
}

// refuseSent ends the way of a request to a replica that does not accept it.
func (s *simulation) refuseSent(q *request, i int, now int64) {
	if !s.replicas[i].life.redirect || q.outcome.Redirects >= maxRedirects {
		if !s.replicas[i].prefills {
			q.stage = stageDelay
		}
		s.abort(q, now, failed, "replica_lost")
		return
	}
	q.refuse(i, now)
	if s.replicas[i].prefills {
		s.returnToPrefill(q, now)
		return
	}
	s.count(i, -1)
	q.outcome.Redirects++
	q.stage, q.until = stageRouting, now
}

// probe lets the router probe the replicas, and reports whether it was due.
func (s *simulation) probe(now int64) bool {
	c := s.config.Failures
	if c == nil || c.ProbeUS == 0 || now%c.ProbeUS != 0 || s.probedAt == now || !s.probing() {
		return false
	}
	s.probedAt = now
	for i, r := range s.replicas {
		l := &r.life
		switch {
		case !l.known:
		case s.accepts(i):
			s.flow.due = s.flow.due || l.unhealthy
			l.failed, l.unhealthy = 0, false
		default:
			if l.failed++; l.failed >= c.Probes {
				s.flow.due = s.flow.due || !l.unhealthy
				l.unhealthy = true
			}
		}
	}
	return true
}

// probing reports whether a probe can change anything.
func (s *simulation) probing() bool {
	for i, r := range s.replicas {
		l := &r.life
		forGood := l.state == "failed" && !l.isDown()
		if l.known && !(s.accepts(i) && !l.unhealthy && l.failed == 0) && !(forGood && l.unhealthy) {
			return true
		}
	}
	return false
}

// failureTimes are when replicas fail, start or are probed.
func (s *simulation) failureTimes() (times []int64) {
	c := s.config.Failures
	if c == nil {
		return nil
	}
	for k, f := range c.Events {
		if !s.failed[k] && f.Factor == 0 {
			times = append(times, f.AtUS)
		}
		if f.Cut && !s.healed[k] {
			times = append(times, f.AtUS+f.ForUS)
		}
	}
	if c.ProbeUS > 0 && s.probing() {
		at := (s.last + c.ProbeUS - 1) / c.ProbeUS * c.ProbeUS
		if at == s.probedAt {
			at += c.ProbeUS
		}
		times = append(times, at)
	}
	return times
}
