package reference

import "slices"

// The stages of a request up to the queue of its replica, and its abort.

// arrive rejects requests that no replica could ever serve.
func (s *simulation) arrive(q *request, now int64) {
	if q.cut {
		q.outcome.State = NotOffered
		return
	}
	s.tenants.arrived[q.Tenant] = true
	c := &s.config
	reason := c.tooLong(q.Input, q.Output)
	if d := c.Disaggregation; d != nil && reason == "" && !d.never() {
		reason = d.Pool.tooLong(q.Input, 1)
	}
	if reason != "" {
		q.outcome.State, q.outcome.Reason = Rejected, reason
		return
	}
	q.stage, q.until = stageAdmission, now+c.AdmissionLatencyUS
}

// tooLong is why no replica could ever serve a request, "" if one could.
func (c *Config) tooLong(input, output int) string {
	slots := input + output - 1 // the last token is never computed
	switch {
	case c.MaxModelLen > 0 && input+output > c.MaxModelLen:
		return "too_long_for_model"
	case c.lone(c.mostSlots(input, output)) > c.usable():
		return "too_long_for_cache"
	case !c.Chunked && slots > c.MaxNumBatchedTokens-c.budgetSlots():
		return "too_long_for_budget"
	}
	return ""
}

func (s *simulation) admit(q *request, now int64) {
	if a := s.config.Admission; a != nil && a.rejects(q, s, now) {
		q.outcome.State, q.outcome.Reason = Rejected, "admission"
		return
	}
	if l := s.config.TenantLimits; l != nil && l.rejects(q, s, now) {
		q.outcome.State, q.outcome.Reason = Rejected, "admission"
		return
	}
	q.outcome.AdmittedUS = now
	q.stage, q.until = stageRouting, now+s.config.RoutingLatencyUS
}

func (s *simulation) route(q *request, now int64) {
	if q.returns {
		s.chooseAgain(q, now)
		return
	}
	if s.config.Flow != nil {
		s.queueUp(q, now)
		return
	}
	if d := s.config.Disaggregation; d != nil && d.MaxWaiting > 0 && s.holdBack(q, now) {
		return
	}
	s.send(q, now)
}

// send chooses a replica and sends the request there.
func (s *simulation) send(q *request, now int64) {
	if s.config.Failures != nil && len(s.candidates(q, now)) == 0 {
		q.outcome.State, q.outcome.Reason = failed, "no_replica"
		return
	}
	if q.outcome.Redirects == 0 {
		q.outcome.RoutedUS = now
	}
	s.router.now, s.router.position, s.router.requests = now, s.rank(q), s.requests
	if d := s.config.Disaggregation; d != nil && d.PrefillFirst && !d.never() {
		s.sendPrefillFirst(q, now)
		return
	}
	if s.choosesRank() {
		q.outcome.Replica, q.outcome.ExpectedCached = s.chooseServing(&s.router, q, s.frontEnds())
		s.moveOn(q.outcome.Replica)
	} else if d := s.config.Disaggregation; s.config.hasFleet() || d != nil && d.MaxWaiting > 0 {
		among := s.open(s.candidates(q, now))
		q.outcome.Replica, q.outcome.ExpectedCached = s.chooseServing(&s.router, q, among)
	} else if !s.config.isFlowIndexed() {
		q.outcome.Replica, q.outcome.ExpectedCached = s.router.choose(q, s.decodeReplicas())
	} else {
		hashes, _ := s.router.promptBlocks(q)
		matches := s.router.indexMatches(hashes)
		q.outcome.Replica, q.outcome.ExpectedCached = s.router.choose(q, s.replicas)
		s.router.count(q, hashes, matches[q.outcome.Replica])
	}
	if s.config.Failures != nil && !s.accepts(q.outcome.Replica) {
		s.refuseSent(q, q.outcome.Replica, now)
		return
	}
	if s.rejected(q) {
		return
	}
	if s.goesToPrefill(q, now) {
		s.sendToPrefill(q, now)
		return
	}
	if s.encodesFirst(q) {
		return
	}
	q.stage, q.until = stageDelay, now+s.config.queueDelay(q.Input)
}

func (s *simulation) enqueue(q *request, now int64) {
	if q.stage == stagePrefillDelay {
		s.enqueueTwin(q, now)
		return
	}
	q.leaseEnd = Never
	if q.lapsed && !s.config.Disaggregation.Recompute {
		q.outcome.State, q.outcome.Reason = failed, "transfer_timeout"
		s.count(q.outcome.Replica, -1)
		s.flow.due = true
		s.bury(q.outcome.Replica, now)
		return
	}
	if s.rejected(q) {
		return
	}
	if q.outcome.EnqueuedUS == Never {
		q.outcome.EnqueuedUS = now
	}
	q.stage, q.stoppedAt = stageQueued, now
	r := s.replicas[q.outcome.Replica]
	if n := len(q.outcome.SeenUS); n > 0 {
		r.notBefore = max(r.notBefore, q.outcome.SeenUS[n-1]+1)
	}
	r.insert(q)
	r.compile(q, now)
	r.changed, r.woken = r.step == nil && !r.grammars.filling, true
}

// abort ends a request, at its deadline or with its replica. During a step it keeps its blocks until the step ends.
// Choice: a step that has just ended at this instant is over, and its requests leave at once, even
// if the batch ahead contains them.
func (s *simulation) abort(q *request, now int64, state, reason string) {
	q.endPreemption(now)
	s.countStopped(q, now)
	q.outcome.State, q.outcome.Reason = state, reason
	met := []string{stageAdmission: "admission", stageRouting: "routing", stageFlow: "flow", stageEncoding: "encoding",
		stageDelay: "delay", stageQueued: "queue"}
	if q.stage < stageRunning {
		q.outcome.DeadlineAt = met[q.stage]
	}
	switch {
	case q.stage == stageFlow && s.config.Flow == nil:
		s.prefill.heldBack = slices.DeleteFunc(s.prefill.heldBack, func(x *request) bool { return x == q })
	case q.stage == stageFlow:
		s.flow.remove(s.config.Flow, q)
	case q.stage == stageEncoding:
		s.stopEncoding(q)
		if q.twin == nil {
			s.count(q.outcome.Replica, -1)
		}
		s.flow.due = true
	}
	if !s.abortHandoff(q, now, state) && q.stage >= stageDelay &&
		s.abortAt(s.replicas[q.outcome.Replica], q, now) {
		s.count(q.outcome.Replica, -1)
		s.flow.due = true
	}
	if q.stage >= stagePrefillDelay {
		s.bury(q.outcome.Replica, now)
	}
	if q.twin != nil {
		s.bury(q.twin.outcome.Replica, now)
	}
}

// abortAt ends a request at its replica, or on the way there, and reports whether it has left it.
func (s *simulation) abortAt(r *replica, q *request, now int64) bool {
	r.woken = r.woken || q.stage >= stageQueued
	r.releaseAll(q)
	switch {
	case q.stage == stageLoading:
		s.flow.due = true
		return r.abortLoad(q, now)
	case q.stage == stageQueued:
		if r.host != nil {
			r.leaveHost(q)
		}
		if q.inFlight > 0 {
			q.outcome.DeadlineAt = "flight"
		}
		r.leave(q)
	case q.stage == stageRunning && r.step != nil:
		q.outcome.DeadlineAt = "running"
		if r.ahead.contains(q) && !r.step.contains(q) {
			q.outcome.DeadlineAt = "ahead"
		}
		r.aborted = append(r.aborted, q)
		if r.host != nil {
			r.host.number(q)
		}
		return false
	case q.stage == stageRunning:
		q.outcome.DeadlineAt = "between"
		if r.host != nil && r.keepsBlocks(q) {
			return false
		}
		r.leave(q)
	}
	return true
}
