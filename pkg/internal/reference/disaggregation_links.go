package reference

import (
	"math"
	"slices"
)

// pull is a transfer from a prefill replica.
type pull struct {
	*transfer
	from, to int
	left     float64 // bytes
	movesAt  int64   // after its latency
	moves    bool
	endsAt   int64 // while it moves
}

// startPulls starts the transfers for which replica i has asked at now, and reports whether there are any.
func (s *simulation) startPulls(i int, now int64) bool {
	d, started := s.config.Disaggregation, len(s.replicas[i].asked) > 0
	for _, t := range s.replicas[i].asked {
		s.flow.due = true // its request is not on its way any more
		s.settle(now)
		s.prefill.pulls = append(s.prefill.pulls, &pull{transfer: t, from: t.request.twin.outcome.Replica, to: i,
			left: float64(t.Blocks * d.BlockBytes), movesAt: now + d.LatencyUS})
		if d.LatencyUS == 0 {
			s.settle(now)
		}
	}
	s.replicas[i].asked = nil
	return started
}

// settle counts the bytes that the transfers have moved by now, and when they end from here on.
func (s *simulation) settle(now int64) {
	x := &s.prefill
	for _, p := range x.pulls {
		if p.moves {
			p.left -= float64(s.bytesPerUS(p) * float64(now-x.settled))
		}
	}
	x.settled = now
	ends := func(p *pull) bool { return p.moves && p.endsAt <= now }
	for _, p := range slices.Clone(x.pulls) {
		if ends(p) {
			x.pulls = slices.DeleteFunc(x.pulls, func(other *pull) bool { return other == p })
			s.endPull(p, now)
		}
		p.moves = p.moves || p.movesAt <= now
	}
	for _, p := range x.pulls {
		if p.moves {
			p.endsAt = max(p.AskedUS+1, now+int64(math.Ceil(p.left/s.bytesPerUS(p)-1e-9)))
		}
	}
}

// bytesPerUS is how fast a transfer moves bytes: those at each end share its bandwidth.
func (s *simulation) bytesPerUS(p *pull) float64 {
	d, out, in := s.config.Disaggregation, 0, 0
	for _, x := range s.prefill.pulls {
		if x.moves && x.from == p.from {
			out++
		}
		if x.moves && x.to == p.to {
			in++
		}
	}
	return min(float64(1000*d.OutGBPerS)/float64(out), float64(1000*d.InGBPerS)/float64(in))
}

// endPull ends a transfer: the prefill replica frees its blocks, and the request can run at the other one.
func (s *simulation) endPull(p *pull, now int64) {
	q, r := p.request, s.replicas[p.to]
	s.releaseTwin(q)
	p.EndedUS, q.host.loadEnd = now, now
	if !q.final() && q.recordsTransfer() {
		q.outcome.TransferredUS = now
	}
	r.woken = true
	for _, q := range r.endTransfer(p.transfer, now) {
		if !q.ghost {
			s.count(q.outcome.Replica, -1)
		}
	}
	s.bury(p.to, now)
	s.bury(p.from, now)
}

// failPulls ends the transfers from and to a replica that is down.
func (s *simulation) failPulls(i int, now int64) {
	if s.config.Disaggregation == nil {
		return
	}
	s.settle(now)
	x := &s.prefill
	for _, p := range slices.Clone(x.pulls) {
		if p.from != i && p.to != i {
			continue
		}
		x.pulls = slices.DeleteFunc(x.pulls, func(other *pull) bool { return other == p })
		p.Failed = true
		s.endPull(p, now)
	}
	s.settle(now)
}

// changeLinks performs what happens on the links at now and reports whether anything does.
func (s *simulation) changeLinks(now int64) bool {
	if s.config.Disaggregation == nil || !slices.Contains(s.linkTimes(), now) {
		return false
	}
	s.settle(now)
	return true
}

// linkTimes are the times at which transfers end, or begin to move bytes.
func (s *simulation) linkTimes() (times []int64) {
	for _, p := range s.prefill.pulls {
		if p.moves {
			times = append(times, p.endsAt)
		} else {
			times = append(times, p.movesAt)
		}
	}
	return times
}
