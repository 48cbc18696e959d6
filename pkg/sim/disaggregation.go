package sim

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/link"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// In a disaggregated deployment a prefill replica may compute the prompt of a request. Its KV blocks stay there until
// the decode replica has pulled them (pkg/engine/pull.go), through links that all transfers share.

// handoff is the way of a request through a prefill replica, in whose engine it has the number seq once it is enqueued
// there.
type handoff struct {
	stage        handoffStage
	replica, seq int32
	leaseEnd     des.Time // never if no such event is pending
	transfer     int32    // its slot in simulation.transfers, while it runs
	scheduled    bool     // it was in a batch of the prefill replica
	enqueueAt    des.Time // at the decode replica
	pieces       pieces
	// computing: the prefill replica still computes the prompt, of which pieces are computed. departed: it is final and
	// has left the decode replica then.
	computing, departed bool
}

type handoffStage uint8

const (
	noHandoff    handoffStage = iota
	returning                 // a prefill replica is chosen again, at this instant
	prefilling                // on the way to the prefill replica or there
	atPrefill                 // its prompt is computed; its blocks are at the prefill replica
	lapsed                    // they were freed, since the request has not come to the decode replica in time
	transferring              // and move to the decode replica
	atDecode
)

// pool is the part of a deployment that is a pool of a disaggregated one.
type pool struct {
	decider cluster.Decider
	prefill int // the prefill pool, in simulation.deployments
	link    int // in transfers.links
	hopUS   des.Time
	// leaseUS is how long blocks wait for the request to come to the decode replica, which then recomputes or not.
	leaseUS     des.Time
	recomputes  bool
	maxWaiting  int32 // at which backpressure closes a replica; 0: never
	granularity granularity
	// pipelined: requests may run when their last piece has started.
	pipelined bool
	// prefillFirst: the prefill replica is chosen before the decode replica.
	prefillFirst bool
}

// connectPools connects the pools of disaggregated deployments.
func (s *simulation) connectPools(c *cluster.Config) {
	prefill := len(c.Deployments)
	for i := range c.Deployments {
		d := &c.Deployments[i]
		if !d.Disaggregates() {
			continue
		}
		t, links := d.Transfer, &s.transfers.links
		s.deployments[i].pool = &pool{*d.Decider, prefill, len(*links), t.HopUS, t.LeaseUS(), t.Recomputes(),
			int32(d.MaxWaiting()), granularities[t.Granularity], t.Pipeline, d.PrefillFirst()}
		*links = append(*links, poolLink{next: math.MaxInt64,
			fair: link.NewFair(t.LatencyUS, t.OutGBPerS, t.InGBPerS, d.Prefill.Replicas, d.Replicas)})
		s.deployments[prefill].prefills = true
		prefill++
	}
}

// rejectReason is why no replica of d can serve a request, "" if one can.
func (s *simulation) rejectReason(d *deployment, r *request) string {
	if r.grammar.id != 0 && !d.grammars.simulated {
		return stream.ReasonNoStructuredOutput
	}
	reason := d.limits.rejectReason(r.out.InputTokens, r.out.OutputTokens, r.out.Adapter)
	if reason == "" {
		reason = d.limits.itemsReason(r.items)
	}
	if p := d.pool; reason == "" && p != nil && p.decider.Ever() {
		prefill := &s.deployments[p.prefill].limits
		if reason = prefill.rejectReason(r.out.InputTokens, 1, r.out.Adapter); reason == "" {
			reason = prefill.itemsReason(r.items)
		}
	}
	return reason
}

// queuedAt returns the replica where the request is or goes next, missing before routing, and whether it waits there
// for its first batch.
func (r *request) queuedAt() (replica int32, queued bool) {
	if r.handoff.stage == prefilling {
		return r.handoff.replica, r.handoff.seq != missing && !r.handoff.scheduled
	}
	return r.replica, r.engineSeq != missing && r.out.ScheduledUS.IsZero()
}

// tokens is the number of tokens of a request that are computed before its next one: the prompt and those that it has.
func (r *request) tokens() int {
	n := int(r.out.InputTokens)
	if r.moved != nil {
		n += r.moved.Generated
	}
	return n
}

// disaggregates reports whether a prefill replica computes the prompt of a request that was routed to a replica of d.
func (s *simulation) disaggregates(d *deployment, r *request) bool {
	return s.disaggregatesWith(d, r, r.out.ExpectedCachedTokens)
}

// disaggregatesWith is disaggregates where this many tokens are expected in the cache.
func (s *simulation) disaggregatesWith(d *deployment, r *request, expected int64) bool {
	return d.pool != nil && d.pool.decider.Disaggregates(int64(r.tokens()), expected) &&
		s.deployments[d.pool.prefill].limits.rejectReason(int64(r.tokens()), 1, r.out.Adapter) == "" &&
		len(s.router.views.prefillCandidates(s, r, d, 0)) > 0
}

// sendToPrefill chooses the prefill replica of a request that was routed to a replica of d.
func (s *simulation) sendToPrefill(slot int32, d *deployment) error {
	v, choice, err := s.choosePrefill(slot, d)
	if err != nil {
		return err
	}
	chosen := v.Replicas[choice.Candidate]
	s.awaitPrefill(s.request(slot), &chosen)
	if err := s.decidePrefill(slot, v, choice); err != nil {
		return err
	}
	return s.leaveForPrefill(slot, d, &chosen)
}

// choosePrefill chooses a prefill replica of d for a request.
func (s *simulation) choosePrefill(slot int32, d *deployment) (*policy.View, policy.Choice, error) {
	r, needs := s.request(slot), s.router.needs.prefill
	v := s.router.views.viewOf(s, r, needs, s.router.views.prefillCandidates(s, r, d, needs))
	choice, err := s.router.chooser.choosePrefill(s, slot, v)
	if err != nil {
		return v, choice, err
	}
	if s.decisions.overridden() {
		choice.Candidate = s.decisions.override.candidate
	}
	s.router.prefixes.recordRouting(s, r, &v.Replicas[choice.Candidate], needs)
	return v, choice, nil
}

// awaitPrefill counts a request that goes to a prefill replica before its decode replica.
func (s *simulation) awaitPrefill(r *request, chosen *policy.Replica) {
	target := &s.replicas[chosen.Index]
	target.requests++
	r.handoff = handoff{stage: prefilling, replica: chosen.Index, seq: missing, leaseEnd: never}
	s.await(r)
	if r.isFirstWay() {
		r.out.PrefillReplica = target.index
	}
}

// decidePrefill notifies observers of the choice of a prefill replica.
func (s *simulation) decidePrefill(slot int32, v *policy.View, choice policy.Choice) error {
	decision := s.decisions.next(stream.StagePrefillRouting)
	decision.view, decision.choice = v, choice
	return s.observers.notify(s, onDecision, slot)
}

// leaveForPrefill sends a request to its prefill replica in d.
func (s *simulation) leaveForPrefill(slot int32, d *deployment, chosen *policy.Replica) error {
	r := s.request(slot)
	s.router.countSent(s, r, chosen)
	s.router.flow.recordSend(chosen.Index)
	if s.failures != nil && !s.accepts(chosen.Index) {
		return s.refuseSent(slot, chosen.Index)
	}
	return s.leave(slot, &s.deployments[d.pool.prefill])
}

// isFirstWay reports whether a request has not been in the queue of a decode replica. Outcomes have the prefill replica
// and the times there of the way to that queue only.
func (r *request) isFirstWay() bool { return r.out.EnqueuedUS.IsZero() }

// recordPrefill sets a time of this way, unless it is set. The prompt of a request may be computed when it is in the
// queue of the decode replica.
func (r *request) recordPrefill(at *stream.Micros, now des.Time) {
	if (r.isFirstWay() || r.handoff.computing) && at.IsZero() {
		*at = stream.Micros(now)
	}
}

// recordsTransfer reports whether the transfer of a request comes before its first batch of a decode replica, and after
// the prefill that its outcome has.
func (r *request) recordsTransfer() bool {
	return r.out.ScheduledUS.IsZero() && (!r.out.PrefilledUS.IsZero() || r.handoff.computing)
}

// enqueuePrefill hands a request to its prefill replica, for the first of its tokens.
func (s *simulation) enqueuePrefill(slot int32) error {
	r := s.request(slot)
	at := r.handoff.replica
	s.telemetry.beforeChange(s, at, s.instantDone())
	r.recordPrefill(&r.out.PrefillEnqueuedUS, s.now)
	s.router.flow.recordEnqueue(r, at)
	size := int(s.decodePool(r).limits.blockSize)
	r.handoff.pieces = pieces{total: int32((r.tokens() + size - 1) / size)}
	order := 0.0
	if !s.router.needs.fcfs {
		order = s.router.policies.Scheduler.Order(s.router.views.local(s, r, at))
	}
	r.handoff.seq = s.replicas[at].engine.Enqueue(engine.Request{Tag: slot, Path: r.path, Input: r.tokens(), Output: 1,
		Order: order, Priority: r.out.Priority, Items: r.items, Hold: true})
	if err := s.observers.notify(s, onEnqueue, slot); err != nil {
		return err
	}
	s.telemetry.afterChange(s, at)
	s.markReady(at)
	return nil
}

// prefilled sends a request whose prompt is computed to its decode replica, unless it went there with a first piece.
func (s *simulation) prefilled(slot int32) {
	r := s.request(slot)
	s.replicas[r.handoff.replica].completed++
	s.router.countLeftReplica(s, r.handoff.replica)
	d := s.decodePool(r)
	r.handoff.pieces.add(r.handoff.pieces.total, d.pool.granularity)
	s.goOn(slot, d)
	s.transfers.left[slot] = r.out.ID // the prefill replica's tier may get blocks yet
	r.recordPrefill(&r.out.PrefilledUS, s.now)
	r.handoff.computing = false
	s.startLease(slot, d.pool)
}

// endLease frees the blocks of a request that has not come to its decode replica in time.
func (s *simulation) endLease(slot int32) error {
	r := s.request(slot)
	s.releaseHeld(r.handoff.replica, r.handoff.seq)
	s.stopAwaiting(r)
	r.handoff.stage, r.handoff.leaseEnd = lapsed, never
	s.transfers.expired++
	return s.fleet.settle(s, r.handoff.replica)
}

// startPull starts the transfer in a slot, to a replica of a pool.
func (s *simulation) startPull(slot int32, p *pool) {
	x := &s.transfers.slots[slot]
	r := s.request(x.Tag)
	s.stopAwaiting(r)
	r.handoff.stage, r.handoff.transfer = transferring, slot
	x.fromPrefill, x.heldSeq, x.pullSeq, x.pulls = r.handoff.replica, r.handoff.seq, r.engineSeq, true
	if r.recordsTransfer() {
		r.out.TransferBlocks, r.out.TransferStartedUS = int64(x.Blocks), stream.Micros(s.now)
	}
	cached := r.handoff.pieces.total - x.Blocks
	x.pullProgress = pullProgress{cached: cached, sent: cached}
	s.startPiece(slot)
	s.scheduleLink(p.link)
}

// scheduleLink schedules the next change of a link, unless an event before it is pending.
func (s *simulation) scheduleLink(i int) {
	s.transfers.links[i].schedule(&s.events.queue, linkChange, i)
}

// changeLink ends the transfers of a link that are done now.
func (s *simulation) changeLink(i int32) error {
	l := &s.transfers.links[i]
	for _, slot := range l.change(s.now) {
		if err := s.endPiece(slot); err != nil {
			return err
		}
	}
	s.startPieces(l)
	s.scheduleLink(int(i))
	return nil
}

// checkHandoffs checks that the blocks of each request are where its stage says: until its transfer ends the prefill
// replica holds them, and while it runs the decode replica, too.
func (s *simulation) checkHandoffs(r *replica) error {
	held, pulled := 0, 0
	for slot := range s.requests.count {
		q := s.request(slot)
		if q.position < 0 || q.handoff.stage == noHandoff {
			continue
		}
		if h := &q.handoff; &s.replicas[h.replica] == r && !h.computing && (h.stage == atPrefill ||
			h.stage == transferring) {
			held++
		}
		if &s.replicas[q.replica] == r && q.handoff.stage == transferring {
			pulled++
			if err := q.handoff.pieces.check(&s.transfers.slots[q.handoff.transfer].pullProgress); err != nil {
				return err
			}
		}
	}
	for i := range s.transfers.slots {
		x := &s.transfers.slots[i]
		if !x.pulls || !x.moved {
			continue
		}
		if &s.replicas[x.fromPrefill] == r {
			held++
		}
		if &s.replicas[x.replica] == r {
			pulled++
		}
	}
	if r.engine.Held() != held || r.engine.Pulling() != pulled {
		return fmt.Errorf("the blocks of %d computed and %d arriving prompts are held, must be %d and %d",
			r.engine.Held(), r.engine.Pulling(), held, pulled)
	}
	return nil
}

// routedPool returns the decode pool of deployment i, if that is a prefill pool, else i.
func (s *simulation) routedPool(i int) int {
	of := func(d deployment) bool { return d.pool != nil && d.pool.prefill == i }
	if at := slices.IndexFunc(s.deployments, of); s.deployments[i].prefills {
		return at
	}
	return i
}

// isPool reports whether d is a pool of a disaggregated deployment.
func (d *deployment) isPool() bool { return d.pool != nil || d.prefills }

// poolOf returns the pool that deployment i is.
func (s *simulation) poolOf(i int) metrics.Pool {
	switch d := &s.deployments[i]; {
	case d.prefills:
		return metrics.PrefillPool
	case d.pool != nil:
		return metrics.DecodePool
	}
	return metrics.NoPool
}
