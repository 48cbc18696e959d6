package sim

import (
	"slices"

	"blis/pkg/des"
	"blis/pkg/policy"
)

// backpressure closes decode replicas to which many requests are on their way: as many as their pool allows were sent
// there and have not begun to transfer their blocks. The router itself counts them. Requests for which no replica is
// open wait in flow control or, without it, here, in the order in which they came to routing.
type backpressure struct {
	waiting [][]int32        // by model, without flow control
	open    []policy.Replica // of candidates
	stats   backpressureStats
}

type backpressureStats struct{ held, peak int64 }

// awaited counts the requests on their way to a decode replica, and those of them whose prompts are computed.
type awaited struct{ all, computed int32 }

// addBackpressure adds what s needs if a deployment has backpressure.
func (s *simulation) addBackpressure() {
	for i := range s.deployments {
		if p := s.deployments[i].pool; p != nil && p.maxWaiting > 0 {
			s.backpressure = &backpressure{waiting: make([][]int32, len(s.models))}
		}
	}
}

// isOpen reports whether a replica may get another request.
func (s *simulation) isOpen(replica int32) bool {
	r := &s.replicas[replica]
	p := s.deployments[r.deployment].pool
	return p == nil || p.maxWaiting == 0 || r.awaited.all < p.maxWaiting
}

// openAmong returns the candidates that are open.
func (s *simulation) openAmong(candidates []policy.Replica) []policy.Replica {
	b := s.backpressure
	closed := func(c policy.Replica) bool { return !s.isOpen(c.Index) }
	if b == nil || !slices.ContainsFunc(candidates, closed) {
		return candidates
	}
	b.open = slices.DeleteFunc(append(b.open[:0], candidates...), closed)
	return b.open
}

// holdsBack reports whether no replica is open for a request, which is about to be sent.
func (s *simulation) holdsBack(r *request) bool {
	if s.backpressure == nil || !s.reaches(r) { // then it fails
		return false
	}
	if len(s.openAmong(s.router.views.reachable(s, r, 0))) > 0 {
		return false
	}
	if r.heldBack.since == never {
		r.heldBack = heldBack{since: s.now, byPrefill: s.prefillIsShort(r)}
		s.backpressure.stats.held++
	}
	return true
}

// heldBack says since when backpressure holds back a request, never if it never did, and whether the prefill pool was
// the reason: most requests on their way to the decode replicas were there.
type heldBack struct {
	since     des.Time
	byPrefill bool
}

// prefillIsShort reports whether most requests on their way to the candidates of r are in the prefill pool.
func (s *simulation) prefillIsShort(r *request) bool {
	var sum awaited
	for _, c := range s.router.views.reachable(s, r, 0) {
		a := s.replicas[c.Index].awaited
		sum.all, sum.computed = sum.all+a.all, sum.computed+a.computed
	}
	return 2*sum.computed < sum.all
}

// sendWhenOpen sends a request that comes to routing without flow control, unless it must wait.
func (s *simulation) sendWhenOpen(slot int32) error {
	b := s.backpressure
	if b == nil {
		return s.send(slot)
	}
	r := s.request(slot)
	queue := &b.waiting[r.model]
	if held := s.holdsBack(r); !held && len(*queue) == 0 {
		return s.send(slot)
	}
	r.inFlowQueue = true
	*queue = append(*queue, slot)
	b.stats.peak = max(b.stats.peak, int64(len(*queue)))
	return nil
}

// drain sends the requests that wait while replicas are open. b may be nil.
func (b *backpressure) drain(s *simulation) error {
	if b == nil {
		return nil
	}
	s.router.flow.draining = true
	defer func() { s.router.flow.draining = false }()
	for model := range b.waiting {
		for queue := &b.waiting[model]; len(*queue) > 0; {
			slot := (*queue)[0]
			r := s.request(slot)
			if s.holdsBack(r) {
				break
			}
			*queue = slices.Delete(*queue, 0, 1)
			r.inFlowQueue = false
			if err := s.send(slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes a request that waits.
func (b *backpressure) remove(r *request, slot int32) {
	queue := &b.waiting[r.model]
	at := slices.Index(*queue, slot)
	*queue = slices.Delete(*queue, at, at+1)
}

// await counts a request that goes to a prefill replica.
func (s *simulation) await(r *request) { s.replicas[r.replica].awaited.all++ }

// stopAwaiting counts a request that begins its transfer, or that will not. Others may then be sent, after the other
// events of this instant.
func (s *simulation) stopAwaiting(r *request) {
	a := &s.replicas[r.replica].awaited
	if a.all--; r.handoff.stage == atPrefill {
		a.computed--
	}
	if b := s.backpressure; b != nil {
		s.router.flow.scheduleAt(s, s.now)
	}
}

func (b *backpressure) clone() *backpressure {
	if b == nil {
		return nil
	}
	c := &backpressure{waiting: slices.Clone(b.waiting), stats: b.stats}
	for i := range c.waiting {
		c.waiting[i] = slices.Clone(c.waiting[i])
	}
	return c
}
