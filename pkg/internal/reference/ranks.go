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
	asks := !v.runs
	if v.runs {
		v.steps++
		asks = v.steps == 1 || v.steps%s.config.Ranks.Interval == 0
	}
	if asks && !slices.ContainsFunc(ranks, (*replica).hasWork) {
		v.runs, v.steps = false, 0
		return
	}
	v.runs = true
	var batches []Batch
	for _, r := range ranks {
		if r.hasWork() {
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
