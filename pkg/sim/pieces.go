package sim

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/engine"
)

// The blocks of a prompt move to the decode replica in pieces, one after another, which are one transfer: all blocks of
// a computed prompt as one piece or, while the rest of it is computed, those that a step has filled or each block.

// granularity is what moves at once.
type granularity uint8

const (
	byRequest granularity = iota // all blocks of a computed prompt
	byChunk                      // those that a step has filled
	byBlock                      // each block
)

var granularities = map[string]granularity{cluster.GranularityChunk: byChunk, cluster.GranularityBlock: byBlock}

// pieces are those of a prompt that are computed, as numbers of its blocks.
type pieces struct {
	total, computed int32
	ends            []int32 // of each piece, with byChunk
}

// add adds what is computed up to a block and reports whether that is more than before.
func (p *pieces) add(upto int32, g granularity) bool {
	if upto <= p.computed {
		return false
	}
	if p.computed = upto; g == byChunk {
		p.ends = append(p.ends, upto)
	}
	return true
}

// next is the end of the piece behind the first sent blocks, 0 if that is not computed.
func (p *pieces) next(sent int32, g granularity) int32 {
	switch {
	case sent >= p.computed:
		return 0
	case g == byBlock:
		return sent + 1
	case g == byChunk:
		i, _ := slices.BinarySearch(p.ends, sent+1)
		return p.ends[i]
	}
	return p.computed
}

// pullProgress is how far a transfer between pools is: the decode replica had the first cached blocks of the prompt and
// has the first sent ones. The piece that moves ends at block moving, 0 if none does.
type pullProgress struct{ cached, sent, moving int32 }

// decodePool is the decode pool of a request.
func (s *simulation) decodePool(r *request) *deployment {
	return &s.deployments[s.replicas[r.replica].deployment]
}

// promptsComputed notes how much of prompts a prefill replica has computed. Where that is the first piece the request
// goes to its decode replica.
func (s *simulation) promptsComputed(prompts []engine.Prompt) {
	for _, x := range prompts {
		r := s.request(x.Tag)
		d := s.decodePool(r)
		if !r.handoff.pieces.add(int32(x.Tokens)/int32(d.limits.blockSize), d.pool.granularity) {
			continue
		}
		r.handoff.computing = true
		s.goOn(x.Tag, d)
	}
}

// goOn sends a request of which a piece is computed to its decode replica, if it is the first one, else it makes the
// piece move as soon as it can.
func (s *simulation) goOn(slot int32, d *deployment) {
	r := s.request(slot)
	switch r.handoff.stage {
	case prefilling:
		s.router.flow.recordDeparture(r)
		s.router.flow.recordSend(r.replica)
		r.handoff.stage = atPrefill
		s.replicas[r.replica].awaited.computed++
		r.handoff.enqueueAt = s.now + d.pool.hopUS + d.model.Queueing(r.out.InputTokens)
		s.events.queue.Push(des.NewEvent(r.handoff.enqueueAt, enqueue, r.position, slot))
	case transferring:
		s.pieceDue(r.handoff.transfer)
	}
}

// pieceDue makes the transfer in a slot start its next piece at this instant, if it can.
func (s *simulation) pieceDue(slot int32) {
	i := s.linkOf(slot)
	l := &s.transfers.links[i]
	l.due = append(l.due, slot)
	l.scheduleAt(&s.events.queue, linkChange, i, s.now)
}

// linkOf is the number of the link of the transfer in a slot.
func (s *simulation) linkOf(slot int32) int {
	return s.deployments[s.replicas[s.transfers.slots[slot].replica].deployment].pool.link
}

// startPiece starts the next piece of the transfer in a slot, if it is computed and none moves.
func (s *simulation) startPiece(slot int32) {
	x := &s.transfers.slots[slot]
	r := s.request(x.Tag)
	d := s.decodePool(r)
	if x.moving > 0 {
		return
	}
	if x.moving = r.handoff.pieces.next(x.sent, d.pool.granularity); x.moving == 0 {
		return
	}
	l := &s.transfers.links[d.pool.link]
	bytes := float64(x.moving-x.sent) * float64(d.blockBytes)
	l.fair.Ask(s.now, slot, int32(s.replicas[x.fromPrefill].index), int32(s.replicas[x.replica].index), bytes)
	if d.pool.pipelined && x.moving == r.handoff.pieces.total {
		l.ready = append(l.ready, slot)
		l.scheduleAt(&s.events.queue, linkChange, d.pool.link, s.now)
	}
}

// startPieces starts the pieces of a link that can start now, those of transfers that began first before others, and
// makes requests ready whose last piece has started.
func (s *simulation) startPieces(l *poolLink) {
	if len(l.due) > 1 {
		all := s.transfers.slots
		slices.SortFunc(l.due, func(a, b int32) int { return cmp.Compare(all[a].number, all[b].number) })
	}
	for _, slot := range l.due {
		s.startPiece(slot)
	}
	l.due = l.due[:0]
	for _, slot := range l.ready {
		x := &s.transfers.slots[slot]
		s.replicas[x.replica].engine.ReadyPull(x.pullSeq, s.now)
		s.router.flow.schedule(s)
		s.markReady(x.replica)
	}
	l.ready = l.ready[:0]
}

// endPiece ends the piece of the transfer in a slot that moves, and the transfer if that is the last one, or the first
// one after a deadline.
func (s *simulation) endPiece(slot int32) error {
	x := &s.transfers.slots[slot]
	if x.sent, x.moving = x.moving, 0; !x.moved && !s.hasArrived(x) && !s.request(x.Tag).isFinal {
		s.pieceDue(slot)
		return nil
	}
	return s.endPull(slot)
}

// awaitsBlocks reports whether the step of replica i cannot end, since blocks of its requests are arriving.
func (s *simulation) awaitsBlocks(i int32) bool {
	r := &s.replicas[i]
	r.awaitsBlocks = r.engine.AwaitsBlocks()
	return r.awaitsBlocks
}

// endLateStep ends the step of replica i at this instant, if it only waited for blocks that have arrived.
func (s *simulation) endLateStep(i int32) {
	if r := &s.replicas[i]; r.awaitsBlocks && !s.awaitsBlocks(i) {
		r.engine.Prolong(s.now)
		s.events.steps.Push(des.NewEvent(s.now, stepEnd, int64(i), i))
	}
}

// endComputing ends a request of whose prompt pieces are computed, but not all.
func (s *simulation) endComputing(slot int32, state, reason string) error {
	r := s.request(slot)
	at, prefill := r.handoff.replica, s.replicas[r.handoff.replica].engine
	r.isFinal = true // so that no transfer is recorded as complete
	switch x := r.handoff.transfer; {
	case r.handoff.stage == atPrefill:
		s.stopAwaiting(r)
		r.handoff.stage = atDecode
	case s.transfers.slots[x].moving > 0:
		prefill.KeepBlocks(r.handoff.seq)
	default:
		if err := s.endPull(x); err != nil {
			return err
		}
	}
	s.telemetry.beforeChange(s, at, s.instantDone())
	_, removed := prefill.Abort(r.handoff.seq)
	s.telemetry.afterChange(s, at)
	s.markReady(at)
	if removed {
		s.leftPrefill(slot)
	}
	if r.engineSeq != missing {
		return s.abort(slot, state, reason)
	}
	s.events.stale++ // it does not enter the queue
	s.leaveOnTheWay(slot)
	err := s.finalize(slot, state, reason)
	s.leaveSlot(slot)
	return err
}

// leftPrefill counts a request that a prefill replica does not compute any more.
func (s *simulation) leftPrefill(slot int32) {
	h := &s.request(slot).handoff
	h.computing = false
	s.router.countLeftReplica(s, h.replica)
	if h.departed {
		s.release(slot)
	}
}

// leaveSlot releases the slot of a request that is final and has left its decode replica, or does so as soon as its
// prefill replica has ended the step with it.
func (s *simulation) leaveSlot(slot int32) {
	if h := &s.request(slot).handoff; h.computing {
		h.departed = true
		return
	}
	s.release(slot)
}

// departFrom counts a request that has left replica i.
func (s *simulation) departFrom(i, slot int32) {
	if h := &s.request(slot).handoff; h.computing && h.replica == i {
		s.leftPrefill(slot)
		return
	}
	s.depart(slot)
}

// startLease starts the lease of the blocks of a prompt that is computed, if it may run out before the request comes to
// its decode replica. Each piece renews it, so that it does not matter before.
func (s *simulation) startLease(slot int32, p *pool) {
	r := s.request(slot)
	if end := s.now + p.leaseUS; r.handoff.stage == atPrefill && r.engineSeq == missing && r.handoff.enqueueAt > end {
		r.handoff.leaseEnd = end
		s.events.queue.Push(des.NewEvent(end, leaseEnd, r.position, slot))
	}
}

// hasArrived reports whether a transfer has moved its last piece.
func (s *simulation) hasArrived(x *transfer) bool {
	return x.sent == s.request(x.Tag).handoff.pieces.total
}

// check checks that a transfer of the pieces p moves what is computed, in order.
func (p *pieces) check(x *pullProgress) error {
	arrived := x.sent > x.cached // else the decode replica may have more than is computed
	if x.cached > x.sent || x.moving != 0 && x.moving <= x.sent || arrived && x.sent > p.computed ||
		x.moving > p.computed || p.computed > p.total {
		return fmt.Errorf("of %d blocks %d are computed, %d have arrived after the first %d, and those up to %d move",
			p.total, p.computed, x.sent, x.cached, x.moving)
	}
	return nil
}
