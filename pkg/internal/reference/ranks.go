package reference

import (
	"cmp"
	"slices"
	"strconv"
)

// Ranks are data-parallel ranks: each Size replicas after each other are the ranks of a server.
type Ranks struct {
	Size int
	// External lets the router see all ranks. Otherwise it sees the one that the front end of each server chooses.
	External bool
	// Lockstep lets the ranks of a server start each step together and end it with the slowest. They run on, with dummy
	// batches where a rank has none, and ask after the first step and then every Interval steps if any has work.
	Lockstep bool
	Interval int
}

// rankServer is a server with ranks in lockstep.
type rankServer struct {
	first    int
	runs     bool
	steps    int
	dummyEnd int64 // of a step in which no rank has a batch, or Never
	next     int   // where its front end begins to search
	// unfinished: a rank had requests to go on with when its part of the step in progress began, with Async.
	unfinished bool
}

// part is what a replica does in the steps of a server.
type part struct {
	// ran: it had a batch in the last step. late: it formed the batch behind it when that step ended. formsLate: it has
	// still to do so.
	ran, late, formsLate bool
	// before are the requests that it had when the last step began.
	before []*request
}

// RankCounts counts steps of ranks in lockstep: all, those with a dummy batch, those of a server without any batch.
// WaitUS is the time that ranks with a batch waited for the slowest one, of BusyUS.
type RankCounts struct {
	Steps, Dummies, Empty int
	WaitUS, BusyUS        int64
	// Tokens are those of all batches, Widest those of the rank with most, for each rank.
	Tokens, Widest int64
}

// addServers groups the replicas to servers.
func (s *simulation) addServers() {
	if s.config.Ranks == nil {
		return
	}
	for first := 0; first < len(s.replicas); first += s.config.Ranks.Size {
		s.servers = append(s.servers, &rankServer{first: first, dummyEnd: Never})
	}
}

// ranks are the replicas of a server.
func (s *simulation) ranks(v *rankServer) []*replica {
	return s.replicas[v.first : v.first+s.config.Ranks.Size]
}

// choosesRank reports whether front ends choose the ranks of requests.
func (s *simulation) choosesRank() bool { return s.config.Ranks != nil && !s.config.Ranks.External }

// frontEnds are the ranks that the front ends would choose for a request.
func (s *simulation) frontEnds() (chosen []int) {
	for _, v := range s.servers {
		best, least := 0, 0.0
		for k := range s.config.Ranks.Size {
			i := v.first + (v.next+k)%s.config.Ranks.Size
			r := s.replicas[i]
			queued := float64(len(r.waiting))
			used := 1 - float64(len(r.cache.free))/float64(len(r.cache.blocks))
			score := float64(s.router.inflight[i]) + float64(queued*6*max(0, used-0.5))
			if k == 0 || score < least {
				best, least = i, score
			}
		}
		chosen = append(chosen, best)
	}
	return chosen
}

// moveOn lets the front end that chose a rank begin with the next one.
func (s *simulation) moveOn(rank int) {
	v := s.servers[rank/s.config.Ranks.Size]
	v.next = (v.next + 1) % s.config.Ranks.Size
}

// startRanks starts a step of all ranks of a server, if none is in progress and they go on.
func (s *simulation) startRanks(v *rankServer, now int64) {
	ranks := s.ranks(v)
	if v.dummyEnd != Never || slices.ContainsFunc(ranks, func(r *replica) bool { return r.step != nil }) {
		return
	}
	if v.runs {
		v.steps++
		if s.asks(v.steps) && !s.isUnfinished(v) {
			v.runs, v.steps = false, 0
			for _, r := range ranks {
				r.part = part{}
			}
		}
	}
	if !v.runs && !slices.ContainsFunc(ranks, (*replica).hasWork) {
		return
	}
	v.runs = true
	late := s.config.Async && s.asks(v.steps+1) && !allOf(ranks, (*replica).takesPart)
	var batches []Batch
	for _, r := range ranks {
		if r.takesPart() {
			r.part.formsLate = late
			if r.cadence.formed = v.steps; r.ahead != nil {
				r.cadence.formed++
			}
			r.start(now)
			r.changed = true
			batches = append(batches, r.step.Batch)
			continue
		}
		dummy := Batch{Decode: 1}
		if x := s.config.Speculation; x != nil {
			dummy.Drafts, dummy.Proposals = int64(x.Tokens), int64(x.Tokens)
		}
		batches = append(batches, dummy)
	}
	s.noteParts(v)
	times := s.config.jointTimes(batches)
	end := now + slices.Max(times)
	v.dummyEnd = end
	widest := slices.MaxFunc(batches, func(a, b Batch) int { return cmp.Compare(a.tokens(), b.tokens()) })
	for i, r := range ranks {
		s.rankCounts.Steps++
		s.rankCounts.Tokens += batches[i].tokens()
		s.rankCounts.Widest += widest.tokens()
		if r.step == nil {
			s.rankCounts.Dummies++
			continue
		}
		r.step.EndUS, v.dummyEnd = end, Never
		s.rankCounts.WaitUS += end - now - times[i]
		s.rankCounts.BusyUS += end - now
	}
	if v.dummyEnd != Never {
		s.rankCounts.Empty++
	}
}

// asks reports whether ranks ask after a step.
func (s *simulation) asks(step int) bool { return step == 1 || step%s.config.Ranks.Interval == 0 }

// takesPart reports whether a rank has a batch in the step that begins. With Async one that has formed none ahead,
// while it ran, has none.
func (r *replica) takesPart() bool {
	return r.ahead != nil || r.hasWork() && !(r.config.Async && r.part.ran)
}

// isUnfinished reports whether any rank has requests that it had when its part of the last step began.
func (s *simulation) isUnfinished(v *rankServer) bool {
	if s.config.Async {
		return v.unfinished
	}
	return slices.ContainsFunc(s.ranks(v), func(r *replica) bool { return r.hasAny(r.part.before) })
}

func (r *replica) present() []*request { return slices.Concat(r.running, r.waiting) }

// hasAny reports whether any of these requests is still here.
func (r *replica) hasAny(of []*request) bool {
	return slices.ContainsFunc(r.present(), func(q *request) bool { return slices.Contains(of, q) })
}

// noteParts notes what the ranks of a server do in the step that begins.
func (s *simulation) noteParts(v *rankServer) {
	v.unfinished = false
	for _, r := range s.ranks(v) {
		before := r.present()
		if r.part.ran && !r.part.late {
			before = r.part.before
		}
		v.unfinished = v.unfinished || r.hasAny(before)
		r.part = part{ran: r.step != nil, late: r.part.formsLate, formsLate: r.part.formsLate, before: r.present()}
	}
}

func allOf[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !is(x) })
}

func (b Batch) tokens() int64 { return b.Prefill + b.Decode + b.Drafts }

// jointTimes are the times of the ranks in a step with these batches.
func (c *Config) jointTimes(batches []Batch) (times []int64) {
	var all, most, chunks int64
	for _, b := range batches {
		all += b.tokens()
		most = max(most, b.tokens())
		chunks += b.Chunks
	}
	for _, b := range batches {
		b.RankTokens, b.WidestRank, b.RankChunks = all, most, chunks
		times = append(times, c.stepTime(b))
	}
	return times
}

// endDummies ends a step without batches and reports whether there was one.
func (s *simulation) endDummies(now int64) bool {
	for _, v := range s.servers {
		if v.dummyEnd == now {
			v.dummyEnd = Never
			return true
		}
	}
	return false
}

// setRanks sets a key of the cluster command.
func (c *Config) setRanks(key, value string) (err error) {
	if c.Ranks == nil {
		c.Ranks = &Ranks{Size: 1, Lockstep: true, Interval: 16}
	}
	switch key {
	case "ranks":
		c.Ranks.Size, err = strconv.Atoi(value)
	case "sync":
		c.Ranks.Interval, err = strconv.Atoi(value)
	case "external":
		c.Ranks.External, err = onOff(value)
	case "lockstep":
		c.Ranks.Lockstep, err = onOff(value)
	}
	return err
}
