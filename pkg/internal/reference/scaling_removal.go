package reference

import "slices"

// Replicas that are removed, and where their requests go.

// changeReplicas adds or removes replicas.
func (s *simulation) changeReplicas(x *scaler, now int64) {
	c := x.config
	for len(s.present(x)) < x.desired {
		of := &s.router
		if x.prefills {
			of = &s.prefill.router
		}
		r := s.addMember(x, s.place(x, 1, now))
		r.index, r.prefills = len(of.inflight), x.prefills
		if s.config.Disaggregation != nil {
			r.connect()
		}
		r.life = life{nextAt: now + c.ProvisionUS, killAt: Never, warmFrom: Never}
		of.inflight = append(of.inflight, 0)
		of.indexes, of.blocks = append(of.indexes, nil), append(of.blocks, nil)
		s.enter(len(s.replicas)-1, "provisioning", now)
	}
	for len(s.present(x)) > x.desired {
		isReady := func(i int) bool { return s.replicas[i].life.state == "ready" }
		k := s.place(x, -1, now)
		starting := slices.DeleteFunc(s.ofMember(k, s.present(x)), isReady)
		running := s.ofMember(k, s.inStates(x, "ready"))
		if len(starting) > 0 {
			s.remove(starting[len(starting)-1], now)
			continue
		}
		fewest := running[0]
		for _, i := range running {
			if s.inflight(i) <= s.inflight(fewest) {
				fewest = i
			}
		}
		s.remove(fewest, now)
	}
}

// remove removes a replica.
func (s *simulation) remove(i int, now int64) {
	c, l := s.replicas[i].config.Scaling, &s.replicas[i].life
	if l.state == "provisioning" || l.state == "loading" || l.state == "failed" {
		s.enter(i, "gone", now)
		return
	}
	s.enter(i, "draining", now)
	if c.Immediate {
		s.loseAll(i, now)
		return
	}
	if c.Redirect {
		s.redirectAll(i, now, false)
		return
	}
	if c.TimeoutUS > 0 {
		l.killAt = now + c.TimeoutUS
	}
	s.bury(i, now)
}

// loseAll ends all requests of a replica.
func (s *simulation) loseAll(i int, now int64) {
	for _, q := range s.requests {
		if !q.final() && s.isAt(q, i, false) {
			s.abort(q, now, failed, "replica_lost")
		}
	}
	s.bury(i, now)
}

// isAt reports whether a request is at a replica, or on its way there. Those of a prefill replica are the ones whose
// prompts it computes and, if it is down, whose blocks it still has.
func (s *simulation) isAt(q *request, i int, isDown bool) bool {
	prefills := q.stage == stagePrefillDelay || q.stage == stagePrefill
	if s.replicas[i].prefills {
		return q.twin != nil && q.twin.outcome.Replica == i && (prefills || isDown && s.isHeld(q))
	}
	return q.stage >= stagePrefillDelay && q.outcome.Replica == i
}

// redirectAll sends all requests of a replica back to routing, or those of a prefill replica to the choice of another
// one. What a replica holds of those in a step stays as ghosts until the step ends.
func (s *simulation) redirectAll(i int, now int64, isDown bool) {
	for _, q := range s.requests {
		switch {
		case q.final() || !s.isAt(q, i, isDown):
		case s.replicas[i].prefills:
			s.returnToPrefill(q, now)
		default:
			s.count(i, -1)
			s.takeAway(q, now)
			q.outcome.Redirects++
			q.stage, q.until = stageRouting, now
		}
	}
	s.flow.due = true
	s.bury(i, now)
}

// returnToPrefill sends a request, whose prefill replica goes, back to the choice of one.
func (s *simulation) returnToPrefill(q *request, now int64) {
	s.takeAway(q, now)
	q.outcome.Redirects++
	q.stage, q.until, q.returns = stageRouting, now, true
	s.flow.due = true
	s.bury(q.outcome.Replica, now)
}

// takeAway takes a request from its replica and its prefill replica, or from the way there.
func (s *simulation) takeAway(q *request, now int64) {
	s.countStopped(q, now)
	q.endPreemption(now)
	t := q.twin
	transferring := q.stage == stageLoading && q.host.pulls && q.host.loadEnd > now
	if q.stage >= stageQueued {
		s.replicas[q.outcome.Replica].takeAway(q, now)
	}
	if t != nil {
		r := s.replicas[t.outcome.Replica]
		switch {
		case q.stage == stagePrefillDelay:
			s.count(t.outcome.Replica, -1)
		case q.stage == stagePrefill:
			s.count(t.outcome.Replica, -1)
			t.countStopped(r.stopped, now)
			t.endPreemption(now)
			r.takeAway(t, now)
			r.changed = r.changed || r.step == nil
		case s.isHeld(q) && !transferring:
			s.releaseTwin(q)
		}
		q.foldTwin()
		s.bury(t.outcome.Replica, now)
	}
	q.host, q.drafting = hostUse{}, drafting{}
	q.tables, q.lastState, q.computed, q.inFlight, q.junction = nil, nil, 0, 0, 0
	q.flying, q.nextBatch = 0, 0
	q.reported, q.pulled, q.lapsed, q.leaseEnd = false, false, false, Never
}

// takeAway takes a request, which goes on elsewhere, from a replica.
func (r *replica) takeAway(q *request, now int64) {
	r.releaseAll(q)
	g := ghostOf(q)
	switch q.stage {
	case stageQueued:
		r.leave(q)
		r.replace(q, g)
	case stageLoading:
		r.replace(q, g)
		r.abortLoad(g, now)
		r.host.counts.Moved++
	case stageRunning:
		r.replace(q, g)
		switch {
		case r.step != nil:
			r.aborted = append(r.aborted, g)
		case r.host == nil || !r.keepsBlocks(g):
			r.leave(g)
		}
	}
	r.changed = r.changed || r.step == nil && !r.grammars.filling
}

// ghostOf is what a replica keeps of a request that has gone to another one.
func ghostOf(q *request) *request {
	g := *q
	g.ghost = true
	g.outcome.State = failed
	return &g
}

// replace puts a ghost where a request is.
func (r *replica) replace(q, ghost *request) {
	for _, b := range r.batchesInFlight() {
		for k := range b.entries {
			if b.entries[k].request == q {
				b.entries[k].request = ghost
			}
		}
	}
	for _, list := range [][]*request{r.running, r.loading} {
		if k := slices.Index(list, q); k >= 0 {
			list[k] = ghost
		}
	}
	if r.host != nil {
		for _, t := range r.host.transfers {
			if t.request == q {
				t.request = ghost
			}
		}
	}
}

// bury ends a replica that drains and has nothing left.
func (s *simulation) bury(i int, now int64) {
	r := s.replicas[i]
	if r.life.state == "draining" && r.step == nil && !r.grammars.filling &&
		s.inflight(i) == 0 && len(r.orphans)+len(r.held) == 0 {
		r.flight.ended = append(r.flight.ended, r.flight.queue...)
		r.ahead, r.flight.queue = nil, nil
		r.failTransfers(now)
		s.enter(i, "gone", now)
	}
}
