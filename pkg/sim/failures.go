package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/dist"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/scale"
	"blis/pkg/stream"
)

// Replicas that fail. A replica that is down has lost its requests and its cache, and refuses requests until it has
// loaded the model again. The router knows of that only by its health checks (health.go).

// failures is nil if no replica fails. Its methods may then not be called, except where they say so.
type failures struct {
	config   *cluster.Failures
	restarts []*scale.Plan // by deployment
	replicas []failing
	// cutting: a partition whose replica was there when it began.
	cutting []bool // by event
	// health is nil without health checks.
	health *healthCheck
	// stream is the source of the random numbers of a replica.
	stream func(deployment string, index int64) *rand.Rand
	// mtbfUS and mttrUS are the means of random failures.
	mtbfUS, mttrUS float64
	// refusals are those at refusedAt: a replica that refused a request gets it no more at that instant.
	refusals  []refusal
	refusedAt des.Time
	stats     failureStats
}

// maxRedirects is how often a request is redirected at most. The next time it fails.
const maxRedirects = 1000

// failing is what may fail of a replica.
type failing struct {
	random *rand.Rand
	// randomAt is the time of its next random failure, stream.Never if none is pending.
	randomAt des.Time
	// backAt is when a replica that is down begins to load, stream.Never if it does not.
	backAt des.Time
	// redirect: requests of a replica that is down go back to routing. Otherwise they fail.
	redirect bool
	// stale are the times of events of its phases that do not count any more.
	stale []des.Time
	// downSince is when it went down, if it has not come back.
	downSince des.Time
	slow      slowSteps
	pace      *pace
	probes
}

type refusal struct {
	position int64 // of the request
	replica  int32
}

// failureStats are the totals of a run. downUS is the time since the first arrival for which
// replicas accepted no requests after a failure.
type failureStats struct{ count, lost, redirected, refused, downUS int64 }

// failureContradiction reports options that need replicas that do not fail.
func failureContradiction(c *cluster.Config, o *Options) error {
	switch {
	case !c.Fails():
	case o.Counterfactual.enabled():
		return errors.New("--counterfactual needs replicas that do not fail; remove failures")
	case o.Clairvoyant != "":
		return errors.New("--clairvoyant needs replicas that do not fail; remove failures")
	}
	return nil
}

// setUpFailures schedules the failures of c, and the first random one of each replica.
func (s *simulation) setUpFailures(c *cluster.Config, seed uint64) error {
	f := &failures{config: c.Failures, health: newHealthCheck(c.ControlPlane.HealthCheck), refusedAt: -1,
		stream: func(deployment string, index int64) *rand.Rand {
			return dist.NewStream(seed, "failures/"+deployment+"/"+strconv.FormatInt(index, 10))
		}}
	s.failures = f
	for _, d := range c.Pools() {
		plan, err := c.RestartPlan(d)
		if err != nil {
			return err
		}
		f.restarts = append(f.restarts, plan)
	}
	f.cutting = make([]bool, len(f.config.Events))
	for i := range f.config.Events {
		from, until := interval(&f.config.Events[i])
		switch f.config.Events[i].Kind {
		case cluster.FailurePartition:
			s.events.queue.Push(des.NewEvent(until, failure, int64(i), -int32(i)-1))
			fallthrough
		case cluster.FailureDown:
			s.events.queue.Push(des.NewEvent(from, failure, int64(i), int32(i)))
		}
	}
	s.keepImages()
	if r := f.config.Random; r != nil {
		mtbf, err := r.MTBF.Micros()
		if err != nil {
			return err
		}
		mttr, err := r.MTTR.Micros()
		if err != nil {
			return err
		}
		f.mtbfUS, f.mttrUS = float64(mtbf), float64(mttr)
	}
	for i := range s.replicas {
		f.addReplica(s, int32(i))
		s.setSlow(int32(i), nil, 0)
		f.drawFailure(s, int32(i))
	}
	return nil
}

// addReplica makes room for replica i, the last one. f may be nil.
func (f *failures) addReplica(s *simulation, i int32) {
	if f != nil {
		r := &s.replicas[i]
		f.replicas = append(f.replicas, failing{randomAt: never, downSince: -1,
			random: f.stream(s.deployments[r.deployment].id, int64(r.index))})
	}
}

// drawFailure schedules the next random failure of a replica that is ready from now on. f may be nil.
func (f *failures) drawFailure(s *simulation, i int32) {
	if f == nil || f.config.Random == nil || !f.config.Random.Affects(s.deployments[s.replicas[i].deployment].id) {
		return
	}
	x := &f.replicas[i]
	x.randomAt = s.now + max(1, des.Micros(float64(x.random.ExpFloat64()*f.mtbfUS)))
	number := len(f.config.Events) + int(i)
	s.events.queue.Push(des.NewEvent(x.randomAt, failure, int64(number), int32(number)))
}

// fail processes a failure: a number below the number of configured events is that of one, which -1 − its number ends,
// and others are random failures of replicas.
func (s *simulation) fail(number int32) error {
	f := s.failures
	if n := int32(len(f.config.Events)); number >= n {
		i := number - n
		x := &f.replicas[i]
		if x.randomAt != s.now || s.isQuiet() {
			return nil
		}
		x.randomAt = never
		down := max(1, des.Micros(float64(x.random.ExpFloat64()*f.mttrUS)))
		return s.failReplica(i, s.now+down, f.config.Random.Redirects())
	}
	at := max(number, -1-number)
	e := &f.config.Events[at]
	i := s.replicaOf(e)
	switch begins := number >= 0; {
	case i == missing:
		return nil
	case e.Kind == cluster.FailurePartition:
		if f.cutting[at] = begins || f.cutting[at]; f.cutting[at] {
			s.cutOff(i, begins)
		}
		return nil
	}
	_, until := interval(e)
	if until == noHorizon {
		until = never
	}
	return s.failReplica(i, until, e.Redirects())
}

// replicaOf returns the replica of a failure, missing if there is none yet.
func (s *simulation) replicaOf(e *cluster.Failure) int32 {
	for i := range s.replicas {
		if s.isOf(e, int32(i)) {
			return int32(i)
		}
	}
	return missing
}

// isQuiet reports whether nothing is pending but events of replicas, all of which are up, or down for good. Requests
// that wait then wait for ever, and the run can end.
func (s *simulation) isQuiet() bool {
	if s.events.steps.Len() > 0 || len(s.events.ready) > 0 {
		return false
	}
	for e := range s.events.queue.All() {
		if e.Kind() < failure && e.Kind() != transferEnd { // requests that load or wait for stores are in replicas
			return false
		}
	}
	for i := range s.replicas {
		if e := s.replicas[i].engine; e.Running()+e.Waiting() > 0 {
			return false
		}
	}
	for i, m := range s.fleet.members {
		forGood := m.phase == failed && s.failures.replicas[i].backAt < 0
		if m.phase != ready && m.phase != gone && !forGood {
			return false
		}
	}
	return true
}

// failReplica takes a replica down until a time, stream.Never for good. One that is down already stays down until the
// later of both times.
func (s *simulation) failReplica(i int32, until des.Time, redirect bool) error {
	m, x := &s.fleet.members[i], &s.failures.replicas[i]
	before := m.phase
	switch {
	case before == gone, before == failed && x.backAt < 0, before == failed && until >= 0 && until <= x.backAt:
		return nil
	case before == failed:
		x.stale = append(x.stale, x.backAt)
		s.router.flow.schedule(s) // it may not come back now
	case before < ready:
		x.stale = append(x.stale, m.due)
	}
	if before != failed {
		s.failures.stats.count++
		if before == ready || before == warming {
			x.downSince = s.now
		}
		if err := s.crash(i, redirect); err != nil {
			return err
		}
	}
	x.redirect, x.backAt, x.randomAt = redirect, until, never
	m = &s.fleet.members[i]
	switch {
	case before == draining:
		return s.setPhase(i, gone)
	case until >= 0:
		s.scheduleReplica(until-s.now, replicaReady, i)
	default:
		m.goneAt = s.now
		if e := s.elasticOf(i); e != nil {
			e.present = slices.DeleteFunc(e.present, func(k int32) bool { return k == i })
		}
	}
	s.failures.health.start(s)
	return nil
}

// crash takes everything from a replica that goes down.
func (s *simulation) crash(i int32, redirect bool) error {
	s.failures.replicas[i].redirect = redirect
	if err := s.setPhase(i, failed); err != nil {
		return err
	}
	for _, slot := range s.requestsOf(i, true) {
		if r := s.request(slot); redirect && r.out.Redirects < maxRedirects {
			s.failures.stats.redirected++
			s.failures.refuse(s, r.position, i)
			continue
		}
		s.failures.stats.lost++
		if err := s.lose(slot); err != nil {
			return err
		}
	}
	if err := s.redirectRequests(i, s.requestsOf(i, true)); err != nil { // the others
		return err
	}
	if err := s.transfers.failPulls(s, i); err != nil {
		return err
	}
	s.telemetry.beforeChange(s, i, s.instantDone())
	for _, tag := range s.replicas[i].engine.Crash(s.now) {
		s.depart(tag)
	}
	if err := s.transfers.fail(s, i); err != nil {
		return err
	}
	s.setSlow(i, nil, 0)
	s.events.steps.Keep(func(e des.Event) bool { return e.Slot != i })
	s.telemetry.afterChange(s, i)
	s.router.flow.schedule(s)
	return nil
}

// back notes that a replica accepts requests again if it was down.
func (f *failures) back(s *simulation, i int32) {
	if x := &f.replicas[i]; x.downSince >= 0 {
		f.stats.downUS += s.timeSince(x.downSince)
		x.downSince = -1
	}
}

// timeSince is the time since an instant that is also after the first arrival, as that of upUS.
func (s *simulation) timeSince(at des.Time) int64 {
	if s.counts.Offered == 0 {
		return 0
	}
	return s.now - max(at, s.events.firstArrival)
}

// isStale reports whether the event of a replica's next phase that is due now does not count. f may be nil.
func (f *failures) isStale(s *simulation, i int32) bool {
	if f == nil {
		return false
	}
	x := &f.replicas[i]
	at := slices.Index(x.stale, s.now)
	if at < 0 {
		return false
	}
	x.stale = slices.Delete(x.stale, at, at+1)
	return true
}

// planOf returns how a replica comes to its phases.
func (s *simulation) planOf(i int32) *scale.Plan {
	if e := s.elasticOf(i); e != nil {
		return e.plan
	}
	return s.failures.restarts[s.replicas[i].deployment]
}

// accepts reports whether a replica takes requests that are sent to it.
func (s *simulation) accepts(i int32) bool {
	switch s.fleet.members[i].phase {
	case ready, draining:
		return true
	case warming:
		return s.planOf(i).RouteWhileWarming
	}
	return false
}

// refuse notes that a replica has refused the request at a position, at this instant.
func (f *failures) refuse(s *simulation, position int64, replica int32) {
	if f.refusedAt != s.now {
		f.refusals, f.refusedAt = f.refusals[:0], s.now
	}
	f.refusals = append(f.refusals, refusal{position, replica})
}

// refused reports whether a replica has refused a request at this instant.
func (f *failures) refused(s *simulation, r *request, replica int32) bool {
	return f.refusedAt == s.now && slices.Contains(f.refusals, refusal{r.position, replica})
}

// isRefused reports whether any replica has.
func (f *failures) isRefused(s *simulation, r *request) bool {
	return f.refusedAt == s.now &&
		slices.ContainsFunc(f.refusals, func(x refusal) bool { return x.position == r.position })
}

// isCandidate reports whether the router may send a request to a replica that it knows.
func (f *failures) isCandidate(s *simulation, r *request, i int32) bool {
	return !f.replicas[i].unhealthy && !f.refused(s, r, i)
}

// reaches reports whether there is a candidate for a request.
func (s *simulation) reaches(r *request) bool {
	switch f := s.failures; {
	case s.fleet == nil:
		return true
	case f != nil:
		return s.someReplica(r, func(i int32) bool { return f.isCandidate(s, r, i) })
	}
	return s.someReplica(r, func(int32) bool { return true })
}

// hopes reports whether there may be a candidate for a request later. f may be nil: then replicas only scale.
func (f *failures) hopes(s *simulation, r *request) bool {
	if f == nil {
		return true
	}
	if f.isRefused(s, r) {
		return false
	}
	scales := func(d int) bool {
		return s.deployments[d].elastic != nil && s.rejectReason(&s.deployments[d], r) == ""
	}
	return slices.ContainsFunc(s.models[r.model].deployments, scales) || s.someReplica(r, func(i int32) bool {
		return s.fleet.members[i].phase != failed || f.replicas[i].backAt >= 0
	})
}

// someReplica reports whether is holds for any replica that the router knows and that can hold a request.
func (s *simulation) someReplica(r *request, is func(int32) bool) bool {
	for _, at := range s.models[r.model].deployments {
		if d := &s.deployments[at]; s.rejectReason(d, r) == "" && slices.ContainsFunc(s.fleet.known(s, d), is) {
			return true
		}
	}
	return false
}

// refuseSent ends the way of a request to a replica that does not accept it: it fails, or goes back to routing.
func (s *simulation) refuseSent(slot, i int32) error {
	r := s.request(slot)
	f, prefills := s.failures, r.handoff.stage == prefilling
	f.stats.refused++
	if !f.replicas[i].redirect || r.out.Redirects >= maxRedirects {
		f.stats.lost++
		decode := r.replica
		if prefills {
			s.stopAwaiting(r)
			s.router.countLeftReplica(s, i)
		}
		s.leaveOnTheWay(slot)
		if err := s.drop(slot, stream.StateFailed, stream.ReasonReplicaLost); err != nil {
			return err
		}
		return s.fleet.settle(s, decode)
	}
	f.stats.redirected++
	f.refuse(s, r.position, i)
	if prefills {
		return s.returnToPrefill(slot)
	}
	return s.moveAway(slot)
}

// failUnreached ends a request for which there is no candidate.
func (s *simulation) failUnreached(slot int32) error {
	s.failures.stats.lost++
	s.router.countInflight(s.request(slot), -1)
	return s.drop(slot, stream.StateFailed, stream.ReasonNoReplica)
}

// addHealthy adds the replicas of a deployment that may get a request to the candidates.
func (w *views) addHealthy(s *simulation, d *deployment, r *request, needs policy.Needs, all bool) {
	for _, i := range s.fleet.known(s, d) {
		if all || s.failures.isCandidate(s, r, i) {
			s.telemetry.refreshAll(s, int(i), int(i)+1, needs)
			w.candidates = append(w.candidates, s.telemetry.states[i])
		}
	}
}

// summary is what metrics report of the failures of a run that is over.
func (f *failures) summary(s *simulation, r *recovery) *metrics.Failures {
	x := &metrics.Failures{Down: f.stats.count, Lost: f.stats.lost, Redirected: f.stats.redirected,
		Refused: f.stats.refused, NotRecovered: r.lasting}
	down, total := f.stats.downUS, int64(0)
	for i := range s.replicas {
		total += s.upUS(i)
		if at := f.replicas[i].downSince; at >= 0 {
			us := s.timeSince(at)
			down += us
			if s.fleet.members[i].goneAt >= 0 { // its time has ended
				total += us
			}
		}
	}
	if total > 0 {
		availability := 1 - float64(down)/float64(total)
		x.Availability = &availability
	}
	x.RecoverMS = r.meanMS()
	return x
}
