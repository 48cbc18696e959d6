package sim

import (
	"slices"

	"blis/pkg/des"
	"blis/pkg/scale"
	"blis/pkg/stream"
)

// phase is the state of a replica of a deployment that scales, or whose replicas fail.
type phase uint8

// The phases, in the order of stream.ReplicaStates.
const (
	provisioning phase = iota
	loading
	warming
	ready
	draining
	gone
	failed
)

// fleet has what replicas have that come and go; it is nil if none does.
type fleet struct {
	members []member // by replica
	// last is the look that was taken last, placed the choice of a deployment.
	last    look
	placed  placement
	numbers []int32 // 0, 1, 2 and so on
}

// member is the part of a replica that changes with its phase. Replicas of deployments that do not scale are ready.
type member struct {
	phase phase
	// createdAt is when it began to be provisioned, goneAt when it was gone, stream.Never before.
	createdAt, goneAt des.Time
	loadUS            int64    // the time that it takes to load
	due               des.Time // of its next phase
}

// setUpFleet adds the auto-scaler's part to the deployments that scale.
func (s *simulation) setUpFleet(f *fleet) {
	s.fleet = f
	s.telemetry.extremes = nil // they are of replicas that all serve
	for range s.replicas {
		f.members = append(f.members, member{phase: ready, goneAt: never})
	}
	for i := range s.deployments {
		d := &s.deployments[i]
		if d.elastic == nil {
			continue
		}
		of := s.routedPool(i)
		d.elastic.id = s.deployments[of].id
		served := func(m servedModel) bool { return slices.Contains(m.deployments, of) }
		d.elastic.model = slices.IndexFunc(s.models, served)
		for k := d.first; k < d.end; k++ {
			d.elastic.present = append(d.elastic.present, int32(k))
		}
		d.elastic.serving = slices.Clone(d.elastic.present)
	}
	s.joinFleets()
	for i := range s.deployments {
		if e := s.deployments[i].elastic; e != nil && e.lead == e {
			s.events.queue.Push(des.NewEvent(e.plan.IntervalUS, scaleCheck, int64(i), int32(i)))
		}
	}
}

// scales reports whether the number of replicas of any deployment changes.
func (s *simulation) scales() bool {
	return slices.ContainsFunc(s.deployments, func(d deployment) bool { return d.elastic != nil })
}

// elasticOf returns the auto-scaler's part of a replica's deployment.
func (s *simulation) elasticOf(i int32) *elastic {
	return s.deployments[s.replicas[i].deployment].elastic
}

// setPhase changes the phase of a replica.
func (s *simulation) setPhase(i int32, p phase) error {
	e := s.elasticOf(i)
	m := &s.fleet.members[i]
	before := m.phase
	m.phase = p
	if e != nil && (p == draining) != (before == draining) {
		if p == draining {
			e.draining++
		} else {
			e.draining--
		}
	}
	switch {
	case p == ready, p == warming && s.planOf(i).RouteWhileWarming:
		if e != nil {
			if at, found := slices.BinarySearch(e.serving, i); !found {
				e.serving = slices.Insert(e.serving, at, i)
			}
		}
		s.router.flow.schedule(s)
	case e != nil && (p == draining || p == gone):
		is := func(k int32) bool { return k == i }
		e.serving, e.present = slices.DeleteFunc(e.serving, is), slices.DeleteFunc(e.present, is)
	}
	if p == gone {
		m.goneAt = s.now
	}
	return s.observers.notify(s, onPhase, i)
}

// addReplica adds a replica to deployment i, which then has to be provisioned and to load its model.
func (s *simulation) addReplica(i int32) error {
	e := s.deployments[i].elastic
	at := int32(len(s.replicas))
	e.build()
	r := &s.replicas[at]
	s.router.addReplica(s, r.engine.Cache(), e.hitSize)
	s.telemetry.addReplica(s, at)
	random := e.stream(int(r.index))
	provisionUS := e.plan.Provision.Draw(random)
	s.fleet.members = append(s.fleet.members, member{createdAt: s.now, goneAt: never,
		loadUS: e.plan.Load.Draw(random)})
	e.present = append(e.present, at)
	s.failures.addReplica(s, at)
	s.setSlow(at, nil, 0)
	s.scheduleReplica(provisionUS, replicaReady, at)
	return s.setPhase(at, provisioning)
}

// scheduleReplica schedules an event of a replica.
func (s *simulation) scheduleReplica(delay des.Time, kind uint8, i int32) {
	s.events.queue.Push(des.NewEvent(s.now+delay, kind, int64(i), i))
	if kind == replicaReady {
		s.fleet.members[i].due = s.now + delay
	}
}

// advanceReplica takes a new replica, or one that was down, to its next phase.
func (s *simulation) advanceReplica(i int32) error {
	if s.failures.isStale(s, i) {
		return nil
	}
	m, plan := &s.fleet.members[i], s.planOf(i)
	switch m.phase {
	case failed:
		s.scheduleReplica(plan.Load.Draw(s.failures.replicas[i].random), replicaReady, i)
		return s.setPhase(i, loading)
	case provisioning:
		s.scheduleReplica(m.loadUS, replicaReady, i)
		return s.setPhase(i, loading)
	case loading:
		if plan.Warmup.DurationUS == 0 {
			return s.becomeReady(i)
		}
		s.setSlow(i, &plan.Warmup, s.now)
		s.scheduleReplica(plan.Warmup.DurationUS, replicaReady, i)
		if s.failures != nil && plan.RouteWhileWarming {
			s.failures.back(s, i)
		}
		return s.setPhase(i, warming)
	case warming:
		s.setSlow(i, nil, 0)
		return s.becomeReady(i)
	case draining:
		s.setSlow(i, nil, 0)
	}
	return nil
}

// becomeReady makes a replica ready, after it has loaded or warmed up.
func (s *simulation) becomeReady(i int32) error {
	if s.failures != nil {
		s.failures.back(s, i)
		s.failures.drawFailure(s, i)
	}
	return s.setPhase(i, ready)
}

// removeReplica removes a replica: at once if it does not serve yet, else when its requests have left.
func (s *simulation) removeReplica(i int32) error {
	if p := s.fleet.members[i].phase; p <= loading || p == failed {
		return s.setPhase(i, gone)
	}
	if err := s.setPhase(i, draining); err != nil {
		return err
	}
	switch plan := s.elasticOf(i).plan; {
	case plan.Drain == scale.DrainImmediate:
		return s.loseRequests(i)
	case plan.Drain == scale.DrainRedirect:
		return s.redirectRequests(i, s.requestsOf(i, false))
	case plan.DrainTimeoutUS > 0:
		s.scheduleReplica(plan.DrainTimeoutUS, drainTimeout, i)
	}
	return s.fleet.settle(s, i)
}

// loseRequests ends all requests of a replica, in the order of the stream.
func (s *simulation) loseRequests(i int32) error {
	if s.fleet.members[i].phase == gone {
		return nil
	}
	for _, slot := range s.requestsOf(i, false) {
		if err := s.lose(slot); err != nil {
			return err
		}
	}
	return s.fleet.settle(s, i)
}

// requestsOf returns the slots of the requests of a replica that are not final, in the order of the stream. Those of a
// prefill replica are the ones whose prompts it computes and, if it is down, whose blocks it still has.
func (s *simulation) requestsOf(i int32, isDown bool) (slots []int32) {
	for slot := range s.requests.count {
		r := s.request(slot)
		if r.position < 0 || r.isFinal {
			continue
		}
		h := &r.handoff
		prefills := h.stage == prefilling || isDown && (h.stage == atPrefill || h.stage == transferring)
		if r.replica == i || prefills && h.replica == i {
			slots = append(slots, slot)
		}
	}
	slices.SortFunc(slots, s.byPosition)
	return slots
}

// redirectRequests sends requests of a replica back to routing, or those of a prefill replica to the choice of another
// one.
func (s *simulation) redirectRequests(i int32, slots []int32) error {
	s.events.queue.Keep(func(e des.Event) bool { // those on the way do not arrive
		return e.Kind() != enqueue || !slices.Contains(slots, e.Slot)
	})
	s.telemetry.beforeChange(s, i, s.instantDone())
	move := s.moveAway
	if s.deployments[s.replicas[i].deployment].prefills {
		move = s.returnToPrefill
	}
	for _, slot := range slots {
		if err := move(slot); err != nil {
			return err
		}
	}
	s.telemetry.afterChange(s, i)
	return s.fleet.settle(s, i)
}

// moveAway takes a request from its replica, or from the way there, and sends it back to routing.
func (s *simulation) moveAway(slot int32) error {
	if err := s.observers.notify(s, onMove, slot); err != nil {
		return err
	}
	r := s.request(slot)
	s.events.queue.Push(des.NewEvent(s.now, routing, r.position, slot))
	s.router.countLeft(s, r)
	s.router.flow.recordDeparture(r)
	s.leaveEngine(r)
	left := s.leavePrefill(slot)
	if r.flowTimeout >= s.now { // flow control may queue it again, for as long as at first
		s.events.queue.Keep(func(e des.Event) bool { return e.Kind() != flowTimeout || e.Slot != slot })
		r.flowTimeout = never
	}
	r.replica = missing
	r.out.Redirects++
	return s.settleBoth(missing, left)
}

// lose ends a request whose replica goes.
func (s *simulation) lose(slot int32) error {
	switch r := s.request(slot); {
	case r.handoff.stage != noHandoff && r.handoff.stage != atDecode:
		return s.endHandoff(slot, stream.StateFailed, stream.ReasonReplicaLost)
	case r.engineSeq != missing:
		return s.abort(slot, stream.StateFailed, stream.ReasonReplicaLost)
	}
	s.events.stale++ // it does not enter the queue
	s.leaveOnTheWay(slot)
	return s.drop(slot, stream.StateFailed, stream.ReasonReplicaLost)
}

// settle ends a replica that drains when nothing is left there. f may be nil.
func (f *fleet) settle(s *simulation, i int32) error {
	if f == nil || f.members[i].phase != draining || s.telemetry.states[i].Inflight > 0 {
		return nil
	}
	e := s.replicas[i].engine
	if e.Busy() || e.Orphans()+e.Held() > 0 {
		return nil
	}
	e.FailTransfers(s.now)
	if err := s.transfers.fail(s, i); err != nil {
		return err
	}
	return s.setPhase(i, gone)
}

// isGone reports whether a replica is gone. f may be nil.
func (f *fleet) isGone(i int32) bool { return f != nil && f.members[i].phase == gone }

// upUS is the time in which a replica held its GPUs, of the time since the first arrival.
func (s *simulation) upUS(i int) int64 {
	from, until := s.events.firstArrival, s.now
	if s.fleet != nil {
		m := &s.fleet.members[i]
		from = max(from, m.createdAt)
		if m.goneAt >= 0 {
			until = max(from, m.goneAt)
		}
	}
	return until - from
}
