package reference

import (
	"math"
	"slices"
)

// PieceCounts counts what happens with pieces of prompts and with requests that run while blocks arrive.
type PieceCounts struct {
	// Early counts transfers that began before the prompt was computed, Cached those of them that had nothing to move.
	Early, Cached int
	// Together counts instants at which pieces of several transfers start.
	Together int
	// Prolonged counts steps that waited for blocks.
	Prolonged int
	// Moving, Between and Waiting count requests that ended before their prompts were computed: while a piece moved,
	// between two, and before the transfer. Ready counts those that ended when they could run but did not.
	Moving, Between, Waiting, Ready int
	// NoRoom counts attempts to admit a prompt without room for its later tokens.
	NoRoom int
}

// pull is a transfer from a prefill replica. Its pieces move one after another.
type pull struct {
	*transfer
	from, to int
	// total is the number of blocks of the prompt, of which sent have arrived, or were there before.
	total, sent int
	// piece is the number of blocks of the piece under way, 0 if there is none.
	piece     int
	startedUS int64
	left      float64 // bytes
	movesAt   int64   // after its latency
	moves     bool
	endsAt    int64 // while it moves
}

// startPulls starts the transfers for which replica i has asked at now, and reports whether there are any.
func (s *simulation) startPulls(i int, now int64) bool {
	x, started := &s.prefill, len(s.replicas[i].asked) > 0
	for _, t := range s.replicas[i].asked {
		s.flow.due = true // its request is not on its way any more
		p := &pull{transfer: t, from: t.request.twin.outcome.Replica, to: i, total: len(t.request.tables[0])}
		p.sent = p.total - t.Blocks
		x.pulls = append(x.pulls, p)
		moves := s.startPiece(p, now)
		if !t.request.twin.final() {
			x.counts.Early++
			if !moves {
				x.counts.Cached++
			}
		}
	}
	s.replicas[i].asked = nil
	return started
}

// startPiece starts the next piece of a transfer, if it is computed and none is under way, and reports whether it does.
func (s *simulation) startPiece(p *pull, now int64) bool {
	q, d := p.request, s.config.Disaggregation
	at := slices.IndexFunc(q.pieces, func(end int) bool { return end > p.sent })
	if p.piece > 0 || at < 0 || q.final() {
		return false
	}
	s.settle(now)
	p.piece = q.pieces[at] - p.sent
	p.left, p.startedUS = float64(p.piece*d.BlockBytes), now
	p.movesAt, p.moves = now+d.LatencyUS, false
	s.prefill.moving = append(s.prefill.moving, p)
	if d.LatencyUS == 0 {
		s.settle(now)
	}
	if d.Pipeline && q.pieces[at] == p.total {
		q.host.loadEnd = now
		s.replicas[p.to].woken, s.flow.due = true, true
	}
	return true
}

// startPieces starts the pieces that can start, in the order in which their transfers began, and reports whether there
// are any.
func (s *simulation) startPieces(now int64) bool {
	started := 0
	for _, p := range slices.Clone(s.prefill.pulls) {
		if s.startPiece(p, now) {
			started++
		}
	}
	if started > 1 {
		s.prefill.counts.Together++
	}
	return started > 0
}

// addPieces notes what the step of a prefill replica that ended now has computed of prompts. Where these are the first
// pieces the request goes to the other replica.
func (s *simulation) addPieces(entries []entry, now int64) {
	for _, e := range entries {
		t := e.request
		q := t.main
		if q == nil || q.twin != t || q.final() {
			continue
		}
		done := t.outcome.State == Completed
		d, size, last := s.config.Disaggregation, s.config.BlockSize, 0
		blocks := (t.computed - t.flying) / size
		if done {
			blocks = (t.Input + size - 1) / size
		}
		if n := len(q.pieces); n > 0 {
			last = q.pieces[n-1]
		}
		switch {
		case d.Granularity == "block":
			for b := last + 1; b <= blocks; b++ {
				q.pieces = append(q.pieces, b)
			}
		case blocks > last && (done || d.Granularity == "chunk"):
			q.pieces = append(q.pieces, blocks)
		}
		if q.stage == stagePrefill && len(q.pieces) > 0 {
			q.stage, q.until = stageDelay, now+d.HopUS+s.config.queueDelay(q.Input)
		}
	}
}

// inPieces reports whether parts of a prompt move while the rest is computed.
func (d *Disaggregation) inPieces() bool { return d.Granularity == "chunk" || d.Granularity == "block" }

// settle counts the bytes that the pieces have moved by now, and when they end from here on.
func (s *simulation) settle(now int64) {
	x := &s.prefill
	for _, p := range x.moving {
		if p.moves {
			p.left -= float64(s.bytesPerUS(p) * float64(now-x.settled))
		}
	}
	x.settled = now
	ends := func(p *pull) bool { return p.moves && p.endsAt <= now }
	for _, p := range slices.Clone(x.moving) {
		if ends(p) {
			x.moving = slices.DeleteFunc(x.moving, func(other *pull) bool { return other == p })
			s.endPiece(p, now)
		}
		p.moves = p.moves || p.movesAt <= now
	}
	for _, p := range x.moving {
		if p.moves {
			p.endsAt = max(p.startedUS+1, now+int64(math.Ceil(p.left/s.bytesPerUS(p)-1e-9)))
		}
	}
}

// endPiece ends a piece, and the transfer with the last one or the first one after a deadline.
func (s *simulation) endPiece(p *pull, now int64) {
	p.sent, p.piece = p.sent+p.piece, 0
	if p.sent == p.total || p.request.final() {
		s.endPull(p, now)
	}
}

// bytesPerUS is how fast a transfer moves bytes: those at each end share its bandwidth.
func (s *simulation) bytesPerUS(p *pull) float64 {
	d, out, in := s.config.Disaggregation, 0, 0
	for _, x := range s.prefill.moving {
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
	q, r, x := p.request, s.replicas[p.to], &s.prefill
	x.pulls = slices.DeleteFunc(x.pulls, func(other *pull) bool { return other == p })
	p.Blocks -= p.total - p.sent // all, unless a deadline ended it
	s.flow.due = true
	s.releaseTwin(q)
	p.EndedUS, q.host.loadEnd = now, now
	if !q.final() && (q.recordsTransfer() || s.config.Disaggregation.Pipeline) {
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

// abortTwin ends what a prefill replica computes for a request that has ended.
func (s *simulation) abortTwin(q *request, now int64, state string) {
	t := q.twin
	if t.final() {
		return
	}
	if q.stage != stageLoading {
		s.prefill.counts.Waiting++
	}
	t.outcome.State = state
	if s.abortAt(s.replicas[t.outcome.Replica], t, now) {
		s.count(t.outcome.Replica, -1)
	}
}

// abortPull ends the transfer of a request that has ended, at once if no piece moves. Else its blocks stay until the
// piece has arrived.
func (s *simulation) abortPull(q *request, now int64) {
	for _, p := range slices.Clone(s.prefill.pulls) {
		switch {
		case p.request != q:
		case p.piece == 0:
			s.prefill.counts.Between++
			s.endPull(p, now)
		default:
			if !q.twin.final() {
				s.prefill.counts.Moving++
			}
			if q.host.loadEnd <= now {
				s.prefill.counts.Ready++
			}
			q.host.loadEnd, q.twin.read = math.MaxInt64, true
		}
	}
}

// awaitsBlocks reports whether blocks are arriving for a request that the step in progress computes.
func (r *replica) awaitsBlocks() bool {
	return slices.ContainsFunc(r.host.transfers, func(t *transfer) bool { return t.Pull && r.step.contains(t.request) })
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
		x.moving = slices.DeleteFunc(x.moving, func(other *pull) bool { return other == p })
		p.sent, p.Failed = p.total, true
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
	for _, p := range s.prefill.moving {
		if p.moves {
			times = append(times, p.endsAt)
		} else {
			times = append(times, p.movesAt)
		}
	}
	return times
}
