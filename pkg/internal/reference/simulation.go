package reference

import (
	"math"
	"slices"
)

// stage is the stage of a request. Stages before stageQueued end at a known time.
type stage int

const (
	stageBlocked stage = iota // a session step whose parents have not completed
	stagePending              // until its arrival
	stageAdmission
	stageRouting
	stageFlow // until it times out there, or Never
	stageEncoding
	stagePrefillDelay
	stagePrefill // its twin is at a prefill replica
	stageDelay
	stageQueued
	stageRunning
	stageLoading
)

// simulation is the cluster and all its requests.
type simulation struct {
	config   Config
	requests []*request // in stream order
	replicas []*replica
	router   router
	flow     flow
	scalers  []*scaler
	prefill  disaggregation
	encoders encoders
	// fleet are the looks of the auto-scaler and the changes of state, as text.
	fleet []string
	// last is the last instant with an event. snapshotRead: snapshots were read since.
	last         int64
	snapshotRead bool
	// failed are the failures that have happened, healed those that have ended. probedAt is the time of the last probe.
	failed   map[int]bool
	healed   map[int]bool
	probedAt int64
	held     int // requests that waited for an open replica, without flow control
	tenants  tenantHistory
	// servers are those with ranks.
	servers    []*rankServer
	rankCounts RankCounts
}

func newSimulation(c Config, requests []Request) *simulation {
	s := &simulation{config: c, flow: flow{turns: map[float64]*turns{}, refreshAt: Never}, failed: map[int]bool{},
		healed: map[int]bool{}, probedAt: Never, tenants: tenantHistory{arrived: map[string]bool{}}}
	starts := []Member{{Start: c.Replicas}}
	if c.Scaling != nil && len(c.Scaling.Fleet) > 0 {
		starts = c.Scaling.Fleet
	}
	for k, m := range starts {
		for range m.Start {
			s.addMember(nil, k)
		}
	}
	s.addServers()
	s.router = newRouter(&s.config)
	if c.Disaggregation != nil {
		d := *c.Disaggregation
		s.config.Disaggregation = &d
		s.router.indexed = c.needsIndexes()
		s.addPrefillReplicas()
	}
	s.shareStorage()
	s.addEncoders()
	s.addScaler(c.Scaling, false)
	if d := c.Disaggregation; d != nil {
		s.addScaler(d.Pool.Scaling, true)
	}
	for _, r := range requests {
		first := stagePending
		if r.Session != "" {
			first = stageBlocked
			if !r.Tool {
				r.ID = r.Session + "/" + r.ID
			}
		}
		q := newRequest(r, newSequence(r))
		q.stage = first
		s.requests = append(s.requests, q)
	}
	return s
}

// addScaler adds an auto-scaler, unless it is nil.
func (s *simulation) addScaler(c *Scaling, prefills bool) {
	if c != nil {
		s.scalers = append(s.scalers, &scaler{config: c, prefills: prefills, checkAt: c.IntervalUS, lastAct: Never,
			heldAt: Never, predicted: predicted{seen: map[*request]bool{}}})
	}
}

// newRequest is a request that has not arrived.
func newRequest(r Request, tokens sequence) *request {
	return &request{
		Request:     r,
		sequence:    tokens,
		until:       r.ArrivalUS,
		preemptedAt: Never,
		refusedAt:   Never,
		leaseEnd:    Never,
		outcome: Outcome{
			ID: r.ID, ArrivalUS: r.ArrivalUS,
			AdmittedUS: Never, RoutedUS: Never, EnqueuedUS: Never, ScheduledUS: Never,
			FirstTokenUS: Never, CompletedUS: Never, Replica: Never,
			PrefillReplica: Never, PrefillEnqueuedUS: Never, PrefillScheduledUS: Never, PrefilledUS: Never,
			TransferStartedUS: Never, TransferredUS: Never, EncodedUS: Never, EmbeddingsUS: Never,
		},
	}
}

func newReplica(c *Config) *replica {
	r := &replica{config: c, cache: newCache(c.usable(), c.UnhashedFirst),
		life:    life{state: "ready", killAt: Never, warmFrom: Never, health: health{known: true}},
		flight:  inFlight{freeAt: map[int]int64{}, ends: map[int]int64{}},
		cadence: cadence{prefilled: Never}}
	if c.Host != nil {
		r.host = &host{Host: *c.Host, storedAt: map[string]int64{}}
		if c.Host.Storage != nil {
			r.host.storage = &storage{Storage: *c.Host.Storage}
		}
	}
	return r
}

func newRouter(c *Config) router {
	return router{
		config:   c,
		ties:     numberStream(c.TieSeed),
		draws:    numberStream(c.DrawSeed),
		inflight: make([]int, c.Replicas),
		indexes:  make([]prefixIndex, c.Replicas),
		blocks:   make([]prefixIndex, c.Replicas),
		// Until the first decision there is no last replica.
		variables: variables{last: -1, mean: 2},
		state:     profileState{pins: map[int]map[string]pin{}, cold: map[int][]int{}},
	}
}

// run goes from instant to instant until every request is final or the horizon has passed.
//
// Choice: the run ends with the last final request, even if a step of aborted requests is in
// progress; such a step is not listed. A step that ends at that very instant, on any replica, is
// listed.
func (s *simulation) run() {
	for _, q := range s.requests {
		if s.config.HorizonUS != Never && q.ArrivalUS > s.config.HorizonUS {
			q.outcome.State = BeyondHorizon // not offered, so there is nothing to wait for
		}
	}
	s.readReports(0)
	s.releaseSteps()
	for {
		now, ok := s.nextTime()
		if !ok || s.config.HorizonUS != Never && now > s.config.HorizonUS {
			return
		}
		s.router.settled = false
		s.dispatchAll(now)
		if every := s.config.SnapshotUS; every > 0 && now%every == 0 {
			s.readReports(now)
		}
		s.router.settled = true
		for s.isOpen() && (s.tryFlow(now) || s.startSteps(now)) {
			s.dispatchAll(now)
		}
	}
}

// dispatchAll performs all pending events of this instant.
func (s *simulation) dispatchAll(now int64) {
	for more := true; more; { // what flow control sent before may have failed
		s.retry(now)
		s.releaseSteps()
		more = s.dispatch(now)
	}
}

// tryFlow tries the queue of flow control if that is due, and reports whether it was.
func (s *simulation) tryFlow(now int64) bool {
	f := &s.flow
	switch {
	case s.config.Flow == nil:
		return s.sendHeldBack(now)
	case f.refreshAt == now:
		f.refreshAt = Never
	case f.due:
		f.due = false
	default:
		return false
	}
	s.drain(now)
	return true
}

// startSteps starts the steps of replicas that are idle and have work. It reports whether any replica got a request,
// ended a step or asked for the blocks of a prompt at this instant. Then flow control is tried again.
func (s *simulation) startSteps(now int64) (changed bool) {
	for i, r := range s.replicas {
		switch {
		case s.config.Ranks != nil && s.config.Ranks.Lockstep:
			if i%s.config.Ranks.Size == 0 {
				s.startRanks(s.servers[i/s.config.Ranks.Size], now)
			}
		case r.isBusy(now):
		case r.hasWork() && !r.woken && (r.host != nil && r.host.storage != nil || s.config.EncodePool != nil):
		case r.hasWork():
			r.woken = false
			if r.grammars.forming {
				for _, q := range r.leaveEarly() {
					if !q.ghost {
						s.leftReplica(q, now)
					}
				}
			}
			r.start(now)
			pulls := s.startPulls(i, now)
			s.startEmbeddings(i, now)
			r.changed = r.changed || r.step != nil || pulls // else its requests wait for transfers
		case r.host != nil && r.life.state != "gone":
			r.offerIdle(now)
		}
		changed, r.changed = changed || r.changed, false
	}
	s.flow.due = s.flow.due || changed
	return changed
}

// dispatch performs the first pending event of this instant and reports whether there was one.
// Events are ordered by kind, requests of one kind by their position in the stream. Events that it
// causes at the same instant are ordered with the rest.
func (s *simulation) dispatch(now int64) bool {
	for _, stage := range []struct {
		at stage
		on func(q *request, now int64)
	}{{stagePending, s.arrive}, {stageAdmission, s.admit}, {stageRouting, s.route}, {stageDelay, s.enqueue}} {
		for _, q := range s.requests {
			atPrefill := stage.at == stageDelay && q.stage == stagePrefillDelay
			if !q.final() && (q.stage == stage.at || atPrefill) && q.until == now {
				stage.on(q, now)
				return true
			}
		}
	}
	for i, r := range s.replicas {
		if r.endsStep(now) {
			entries := r.step.entries
			left := r.finish(now)
			s.addPieces(entries, now)
			for _, q := range left {
				if !q.ghost {
					s.leftReplica(q, now)
				}
			}
			s.bury(i, now)
			s.flow.due, r.changed, r.woken = true, r.changed || !r.grammars.filling, true
			return true
		}
	}
	if s.endDummies(now) {
		return true
	}
	for i, r := range s.replicas {
		if r.host == nil {
			continue
		}
		if t := r.host.ends(now); t != nil {
			s.flow.due = s.flow.due || t.Load
			s.wakeFor(t, r)
			for _, q := range r.endTransfer(t, now) {
				if !q.ghost {
					s.count(q.outcome.Replica, -1)
				}
			}
			s.bury(i, now)
			return true
		}
	}
	if s.changeLinks(now) || s.startPieces(now) || s.endLeases(now) {
		return true
	}
	for _, q := range s.requests {
		if !q.final() && q.DeadlineUS == now {
			s.abort(q, now, TimedOut, "deadline")
			return true
		}
	}
	for _, q := range s.requests {
		if !q.final() && q.stage == stageFlow && q.until == now {
			s.expire(q, now)
			return true
		}
	}
	return s.dispatchFailures(now) || s.dispatchScaling(now) || s.probe(now) || s.endEncoder(now) ||
		s.changeEmbeddings(now) || s.startEncoder(now)
}

// nextTime returns the next instant with an event; there is none once every request is final.
func (s *simulation) nextTime() (at int64, ok bool) {
	var times []int64
	for _, q := range s.requests {
		if q.final() || q.stage == stageBlocked {
			continue
		}
		if q.stage < stageQueued && q.until != Never {
			times = append(times, q.until)
		}
		if q.leaseEnd != Never && q.stage == stageDelay {
			times = append(times, q.leaseEnd)
		}
		if q.stage != stagePending && q.DeadlineUS != Never {
			times = append(times, q.DeadlineUS)
		}
	}
	if !s.isOpen() {
		return 0, false
	}
	for _, r := range s.replicas {
		for _, at := range r.hostTimes() {
			if at > s.last {
				times = append(times, at)
			}
		}
		if r.host != nil {
			for _, t := range r.host.transfers {
				if t.EndedUS < math.MaxInt64 {
					times = append(times, t.EndedUS)
				}
			}
		}
	}
	for _, v := range s.servers {
		if v.dummyEnd != Never {
			times = append(times, v.dummyEnd)
		}
	}
	times = append(times, s.linkTimes()...)
	times = append(times, s.encoderTimes()...)
	times = append(times, s.failureTimes()...)
	for _, x := range s.scalers {
		if x.checkAt != Never {
			times = append(times, x.checkAt)
		}
	}
	if s.config.hasFleet() {
		for _, r := range s.replicas {
			times = append(times, r.life.next()...)
		}
	}
	if len(s.flow.waiting) > 0 && s.flow.refreshAt != Never {
		times = append(times, s.flow.refreshAt)
	}
	if len(times) == 0 { // the others wait in flow control for ever
		return 0, false
	}
	at = slices.Min(times)
	// Nothing changes between two instants, so only the first read between them matters.
	if every := s.config.SnapshotUS; every > 0 && !s.snapshotRead {
		if readAt := (s.last/every + 1) * every; readAt < at {
			s.snapshotRead = true
			return readAt, true
		}
	}
	s.last, s.snapshotRead = at, false
	return at, true
}

// isOpen reports whether any request that was issued is not final.
func (s *simulation) isOpen() bool {
	return slices.ContainsFunc(s.requests, func(q *request) bool { return !q.final() && q.stage != stageBlocked })
}

// result collects the outcomes; requests that are not final were cut by the horizon.
func (s *simulation) result() (result Result) {
	result = Result{TieDraws: s.router.tieDraws, Fleet: s.fleet, HeldBack: s.held, Ranks: s.rankCounts,
		Pieces: s.prefill.counts}
	for _, q := range s.requests {
		switch {
		case q.stage == stageBlocked && !q.final():
			q.outcome.State = NotOffered
		case !q.final():
			q.outcome.State, q.outcome.Reason = Unfinished, "horizon"
			q.endPreemption(s.config.HorizonUS)
			s.countStopped(q, s.config.HorizonUS)
		}
		s.addTwin(q)
		if i := q.outcome.Replica; i != Never {
			q.outcome.Replica = s.replicas[i].index
		}
		result.Outcomes, result.Requests = append(result.Outcomes, q.outcome), append(result.Requests, q.Request)
	}
	defer func() { result.EncodePool, result.Embeddings = s.encoders.counts, s.encoders.done }()
	all := slices.Concat(s.decodeReplicas(), s.prefillReplicas())
	result.Decode = len(s.decodeReplicas())
	for _, r := range all {
		result.Steps = append(result.Steps, r.steps)
		result.Duplicates += r.cache.duplicates
		result.Evictions += r.cache.evictions
		result.ReservationBlocked += r.reservationBlocked
		result.WatermarkBlocked += r.watermarkBlocked
		result.DeferredBatches += r.cadence.deferred
		result.TurnedAway += r.cadence.turnedAway
		result.UndoneVictims += r.undoneVictims
		result.SelfPreempted += r.selfPreempted
		result.Spared += r.spared
		result.Raised += r.raised
		result.Continued += r.continued
		result.Skipped += r.skipped
		result.Junctions += r.junctions
		result.Deferred += r.deferred
		result.Retries += r.retries
		result.Async.add(r.async)
		result.Drafts.add(r.drafts)
		result.Adapters.add(r.adapters)
		result.Pieces.Prolonged += r.prolonged
		result.Pieces.NoRoom += r.noRoomForPrompt
		result.Grammars.add(r.grammars.counts)
		result.Pipeline.add(r.flight.counts)
		result.StageUS = append(result.StageUS, r.stageTime(s.endedAt()))
		result.Items.add(r.encoding)
		s.encoders.counts.Lost += r.lost
		if r.host != nil {
			result.Host.add(r.host.counts)
			result.Transfers = append(result.Transfers, r.host.done)
		}
	}
	return result
}
