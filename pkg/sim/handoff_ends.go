package sim

import (
	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// The ends of transfers between pools, and of the way of a request through a prefill replica before that.

// endPull ends the transfer in a slot. Both replicas may then have work.
func (s *simulation) endPull(slot int32) error {
	x := &s.transfers.slots[slot]
	x.Ended, x.pulls, x.Blocks = s.now, false, x.sent-x.cached
	if !x.moved {
		r := s.request(x.Tag)
		r.handoff.stage = atDecode
		if !r.isFinal && (r.recordsTransfer() || s.decodePool(r).pool.pipelined) {
			r.out.TransferredUS = stream.Micros(s.now)
		}
	}
	s.releaseHeld(x.fromPrefill, x.heldSeq)
	s.endArrival(x)
	s.transfers.spare = append(s.transfers.spare, slot)
	if x.Blocks > 0 { // else a deadline came before the first piece
		if err := s.observers.notify(s, onTransfer, slot); err != nil {
			return err
		}
	}
	return s.settleBoth(x.replica, x.fromPrefill)
}

// endArrival ends a transfer at its decode replica.
func (s *simulation) endArrival(x *transfer) {
	s.telemetry.beforeChange(s, x.replica, s.instantDone())
	for _, tag := range s.replicas[x.replica].engine.EndPull(x.pullSeq, s.now) {
		s.depart(tag)
	}
	s.telemetry.afterChange(s, x.replica)
	s.markReady(x.replica)
	s.endLateStep(x.replica)
}

// settleBoth ends a decode and a prefill replica that drain when nothing is left there. Either may be missing.
func (s *simulation) settleBoth(decode, prefill int32) error {
	for _, i := range [...]int32{decode, prefill} {
		if i == missing {
			continue
		}
		if err := s.fleet.settle(s, i); err != nil {
			return err
		}
	}
	return nil
}

// releaseHeld frees the blocks of a computed prompt at a prefill replica, in whose engine it has the number seq.
func (s *simulation) releaseHeld(at, seq int32) {
	s.telemetry.beforeChange(s, at, s.instantDone())
	s.replicas[at].engine.Release(seq)
	s.telemetry.afterChange(s, at)
	s.router.flow.schedule(s)
	s.markReady(at)
}

// endHandoff ends a request before its prompt has arrived at the decode replica. Blocks in a transfer stay until that
// ends.
func (s *simulation) endHandoff(slot int32, state, reason string) error {
	r := s.request(slot)
	at, decode := r.handoff.replica, r.replica
	switch {
	case r.handoff.computing:
		return s.endComputing(slot, state, reason)
	case r.handoff.stage == transferring:
		return s.abort(slot, state, reason)
	case r.handoff.stage == atPrefill:
		s.releaseHeld(at, r.handoff.seq)
		s.stopAwaiting(r)
		r.handoff.stage = atDecode
		if r.engineSeq != missing {
			if err := s.abort(slot, state, reason); err != nil {
				return err
			}
			return s.fleet.settle(s, at)
		}
	case r.handoff.stage == lapsed:
	case r.handoff.seq != missing:
		return s.abortPrefill(slot, state, reason)
	default:
		s.stopAwaiting(r)
		s.router.countLeftReplica(s, at)
	}
	if r.isEncoding() {
		s.stopEncoding(slot)
	} else {
		s.events.stale++ // it does not enter the queue
	}
	s.leaveOnTheWay(slot)
	if err := s.drop(slot, state, reason); err != nil {
		return err
	}
	return s.settleBoth(decode, at)
}

// abortPrefill ends a request that a prefill replica holds.
func (s *simulation) abortPrefill(slot int32, state, reason string) error {
	r := s.request(slot)
	at, decode := r.handoff.replica, r.replica
	s.stopAwaiting(r)
	s.telemetry.beforeChange(s, at, s.instantDone())
	_, removed := s.replicas[at].engine.Abort(r.handoff.seq)
	s.telemetry.afterChange(s, at)
	s.markReady(at)
	if err := s.finalize(slot, state, reason); err != nil {
		return err
	}
	r = s.request(slot)
	s.router.countLeft(s, r)
	s.router.flow.schedule(s)
	s.router.countInflight(r, -1)
	if removed { // else it leaves when its step ends
		s.depart(slot)
	}
	return s.settleBoth(decode, at)
}

// leavePrefill takes a request, which goes on elsewhere, off its way through a prefill replica. It returns the prefill
// replica if that may have nothing left, else missing.
func (s *simulation) leavePrefill(slot int32) (left int32) {
	r := s.request(slot)
	left = missing
	switch h := &r.handoff; h.stage {
	case prefilling:
		left = h.replica
		s.stopAwaiting(r)
		s.router.countLeftReplica(s, left)
		if h.seq == missing {
			break
		}
		s.telemetry.beforeChange(s, left, s.instantDone())
		s.replicas[left].engine.Move(h.seq)
		s.telemetry.afterChange(s, left)
		s.markReady(left)
		r.endPreemption(s.now)
	case atPrefill:
		left = h.replica
		s.releaseHeld(left, h.seq)
		s.stopAwaiting(r)
	case transferring:
		s.transfers.slots[h.transfer].moved = true
	}
	if r.handoff.leaseEnd >= s.now {
		s.events.queue.Keep(func(e des.Event) bool { return e.Kind() != leaseEnd || e.Slot != slot })
	}
	r.handoff = handoff{leaseEnd: never}
	return left
}

// returnToPrefill sends a request, whose prefill replica goes, back to the choice of one. It leaves the decode replica
// if it waits or loads there.
func (s *simulation) returnToPrefill(slot int32) error {
	if err := s.observers.notify(s, onMove, slot); err != nil {
		return err
	}
	r := s.request(slot)
	s.router.flow.recordDeparture(r)
	s.events.queue.Push(des.NewEvent(s.now, routing, r.position, slot))
	if r.engineSeq != missing {
		s.telemetry.beforeChange(s, r.replica, s.instantDone())
		s.leaveEngine(r)
		s.telemetry.afterChange(s, r.replica)
		s.markReady(r.replica)
	}
	left := s.leavePrefill(slot)
	r.handoff.stage = returning
	r.out.Redirects++
	s.router.flow.schedule(s)
	return s.settleBoth(r.replica, left)
}

// leaveEngine takes a request out of the engine of its replica, if it is there.
func (s *simulation) leaveEngine(r *request) {
	if r.engineSeq == missing {
		return
	}
	r.moved = s.replicas[r.replica].engine.Move(r.engineSeq)
	r.engineSeq = missing
	r.recordResult(&r.moved.Result)
	r.endPreemption(s.now)
}

// chooseAgain chooses another prefill replica for a request that has lost its own, or lets the decode replica compute
// the prompt if there is none.
func (s *simulation) chooseAgain(slot int32) error {
	r := s.request(slot)
	d := &s.deployments[s.replicas[r.replica].deployment]
	if len(s.router.views.prefillCandidates(s, r, d, 0)) > 0 {
		return s.sendToPrefill(slot, d)
	}
	r.handoff = handoff{leaseEnd: never}
	s.router.flow.recordSend(r.replica)
	return s.schedule(d.model.Queueing(r.out.InputTokens), enqueue, slot)
}

// prefillCandidates returns the states of the prefill replicas of d that may compute the prompt of a request, with the
// fields in needs refreshed.
func (w *views) prefillCandidates(s *simulation, r *request, d *deployment, needs policy.Needs) []policy.Replica {
	p := &s.deployments[d.pool.prefill]
	if s.fleet == nil {
		s.telemetry.refreshAll(s, p.first, p.end, needs)
		return s.telemetry.states[p.first:p.end]
	}
	w.prefill = w.prefill[:0]
	for _, i := range s.fleet.known(s, p) {
		if s.failures == nil || s.failures.isCandidate(s, r, i) {
			s.telemetry.refreshAll(s, int(i), int(i)+1, needs)
			w.prefill = append(w.prefill, s.telemetry.states[i])
		}
	}
	return w.prefill
}

// failPulls ends the transfers from and to replica i, which is down, at this instant. all may be nil.
func (all *transfers) failPulls(s *simulation, i int32) error {
	if all == nil {
		return nil
	}
	for k := range all.links {
		failed := all.links[k].fair.Cancel(s.now, func(slot int32) bool {
			return all.slots[slot].replica == i || all.slots[slot].fromPrefill == i
		})
		for _, slot := range failed {
			x := &all.slots[slot]
			x.Ended, x.failed, x.pulls = s.now, true, false
			s.releaseHeld(x.fromPrefill, x.heldSeq)
			if x.replica != i {
				s.endArrival(x)
			}
			if err := s.observers.notify(s, onTransfer, slot); err != nil {
				return err
			}
			all.spare = append(all.spare, slot)
			if err := s.settleBoth(x.replica, x.fromPrefill); err != nil {
				return err
			}
		}
		s.scheduleLink(k)
	}
	return nil
}
