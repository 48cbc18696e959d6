package reference

import "slices"

// Replicas that are removed, and where their requests go.

// changeReplicas adds or removes replicas.
func (s *simulation) changeReplicas(now int64) {
	c := s.config.Scaling
	for len(s.present()) < s.scaler.desired {
		r := newReplica(&s.config)
		r.index, r.life = len(s.replicas), life{nextAt: now + c.ProvisionUS, killAt: Never, warmFrom: Never}
		s.replicas = append(s.replicas, r)
		s.router.inflight = append(s.router.inflight, 0)
		s.router.indexes, s.router.blocks = append(s.router.indexes, nil), append(s.router.blocks, nil)
		s.enter(len(s.replicas)-1, "provisioning", now)
	}
	for len(s.present()) > s.scaler.desired {
		isReady := func(i int) bool { return s.replicas[i].life.state == "ready" }
		starting, running := slices.DeleteFunc(s.present(), isReady), s.inStates("ready")
		if len(starting) > 0 {
			s.remove(starting[len(starting)-1], now)
			continue
		}
		fewest := running[0]
		for _, i := range running {
			if s.router.inflight[i] <= s.router.inflight[fewest] {
				fewest = i
			}
		}
		s.remove(fewest, now)
	}
}

// remove removes a replica.
func (s *simulation) remove(i int, now int64) {
	c, l := s.config.Scaling, &s.replicas[i].life
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
		s.redirectAll(i, now)
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
		if !q.final() && q.stage >= stageDelay && q.outcome.Replica == i {
			s.abort(q, now, failed, "replica_lost")
		}
	}
	s.bury(i, now)
}

// redirectAll sends all requests of a replica back to routing. What it holds of those in a step stays as ghosts until
// the step ends.
func (s *simulation) redirectAll(i int, now int64) {
	r := s.replicas[i]
	for _, q := range s.requests {
		if q.final() || q.stage < stageDelay || q.outcome.Replica != i {
			continue
		}
		s.router.inflight[i]--
		s.countStopped(q, now)
		q.endPreemption(now)
		switch {
		case q.stage == stageQueued:
			r.leave(q)
			r.replace(q, ghostOf(q))
		case q.stage == stageLoading:
			g := ghostOf(q)
			r.replace(q, g)
			r.abortLoad(g, now)
			r.host.counts.Moved++
		case q.stage == stageRunning:
			g := ghostOf(q)
			r.replace(q, g)
			switch {
			case r.step != nil:
				r.aborted = append(r.aborted, g)
			case r.host == nil || !r.keepsBlocks(g):
				r.leave(g)
			}
		}
		q.host = hostUse{}
		q.tables, q.lastState, q.computed, q.inFlight, q.junction = nil, nil, 0, 0, 0
		q.outcome.Redirects++
		q.stage, q.until, q.reported = stageRouting, now, false
	}
	s.flow.due = true
	s.bury(i, now)
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
	for _, b := range []*batch{r.step, r.ahead} {
		if b == nil {
			continue
		}
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
	if r.life.state == "draining" && r.step == nil && s.router.inflight[i] == 0 && len(r.orphans) == 0 {
		r.ahead = nil
		r.failTransfers(now)
		s.enter(i, "gone", now)
	}
}
