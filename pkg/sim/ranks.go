package sim

import (
	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/latency"
	"blis/pkg/metrics"
	"blis/pkg/policy"
)

// server is one server with data-parallel ranks, replicas[first:end], each with its own queue, batches and cache.
type server struct {
	first, end int32
	// external: a load balancer before the server chooses the rank of a request; else its front end does.
	external bool
	// start is where the search of the front end for a rank begins.
	start int32
	// lockstep: the ranks start each step together and wait for the slowest, since they share experts. The rest is
	// for these.
	lockstep bool
	// running: the ranks run steps, with dummy batches where a rank has none, until they agree that none has work.
	// They ask after the first step and then every interval steps; steps counts those since they began to run.
	running         bool
	steps, interval int64
	// async: batches are formed ahead. ranks has what each rank did.
	async bool
	ranks []rank
	// unfinished: a rank had requests when its part of the last joint step began, with asynchronous scheduling.
	unfinished bool
	// busy is the number of ranks in a joint step that have a batch. stepping: a joint step is in flight.
	busy     int
	stepping bool
	dummy    latency.Batch
	// batches are those of the ranks in a joint step, and own the times that these would take for each rank.
	batches []latency.Batch
	own     []des.Time
}

// rank is what a server knows of a rank.
type rank struct {
	// ran: it had a batch in the last joint step. late: the batch behind that was formed when it ended.
	ran, late bool
	// seen are its Arrivals when the last joint step began.
	seen int64
}

// rankTotals are sums over the joint steps of a rank.
type rankTotals struct {
	metrics.RankTotals
	dummyUS int64 // of the steps with a dummy batch
}

// addServers groups the ranks of the last deployment to servers.
func (s *simulation) addServers(d *cluster.Deployment) {
	e := &d.Engine
	n := int32(e.Ranks())
	if n == 1 {
		return
	}
	dummy := latency.Batch{Decode: 1}
	if x := e.SpeculativeConfig; x != nil {
		dummy.Drafts, dummy.Proposals = int64(x.NumSpeculativeTokens), int64(x.NumSpeculativeTokens)
	}
	for first := int32(len(s.replicas) - d.Replicas*int(n)); first < int32(len(s.replicas)); first += n {
		for i := first; i < first+n; i++ {
			s.replicas[i].server = int32(len(s.servers))
		}
		s.servers = append(s.servers, server{first: first, end: first + n, external: e.DataParallelExternalLB,
			lockstep: d.Lockstep(), interval: int64(e.DPSyncInterval), dummy: dummy,
			async: e.AsyncScheduling, ranks: make([]rank, n)})
	}
}

// frontEnds leaves of the ranks of each server the one that its front end would choose for a request. The candidates
// of a server are all its ranks.
func (s *simulation) frontEnds(candidates []policy.Replica) []policy.Replica {
	if len(s.servers) == 0 {
		return candidates
	}
	s.choices = s.choices[:0]
	for k := 0; k < len(candidates); k++ {
		at := s.replicas[candidates[k].Index].server
		if at == missing || s.servers[at].external {
			s.choices = append(s.choices, candidates[k])
			continue
		}
		v := &s.servers[at]
		s.choices = append(s.choices, candidates[k+int(s.frontEndChoice(v)-v.first)])
		k += int(v.end-v.first) - 1
	}
	return s.choices
}

// frontEndChoice returns the rank that the front end of a server chooses: that with the fewest requests, to which it
// adds those that wait, times up to 3 as its KV cache is more than half full (DPLBAsyncMPClient in
// vllm/v1/engine/core_client.py, v0.33.0). Of equal ones it is the first from start on. vLLM's front end knows its own
// requests, and what waits as of up to 100 ms ago; here both are known at once.
func (s *simulation) frontEndChoice(v *server) int32 {
	best, least, n := v.first, 0.0, v.end-v.first
	for k := range n {
		i := v.first + (v.start+k)%n
		e := s.replicas[i].engine
		score := float64(s.telemetry.states[i].Inflight)
		if waiting := e.Waiting(); waiting > 0 {
			used := 1 - float64(e.Cache().Free())/float64(e.Cache().Total())
			score += float64(float64(waiting) * 6 * max(0, used-0.5))
		}
		if k == 0 || score < least {
			best, least = i, score
		}
	}
	return best
}

// countChoice moves on the search of the front end that has chosen a rank.
func (s *simulation) countChoice(r *replica) {
	if r.server == missing || s.servers[r.server].external {
		return
	}
	v := &s.servers[r.server]
	v.start = (v.start + 1) % (v.end - v.first)
}

// startJoint starts a joint step of the ranks of a server, unless one is in flight or none has work and they have
// agreed on that (DPEngineCoreProc.run_busy_loop in vllm/v1/engine/core.py, v0.33.0).
//
// With asynchronous scheduling a rank forms the batch of the next step when a step begins. If that comes to nothing,
// the rank has a dummy batch in the next step, whatever arrives. If the ranks ask after a step in which one of them has
// a dummy batch, the others wait for its end before they form their batches.
func (s *simulation) startJoint(v *server) error {
	if v.stepping || !s.goesOn(v) {
		return nil
	}
	v.batches = v.batches[:0]
	late := s.formsLate(v)
	for i := v.first; i < v.end; i++ {
		b := v.dummy
		if e := s.replicas[i].engine; s.hasBatch(v, i) {
			e.BeginJoint(v.steps, late)
			if _, err := s.startStep(i); err != nil {
				return err
			}
			b = e.Step().Batch
			v.busy++
		}
		v.batches = append(v.batches, b)
	}
	s.noteRanks(v, late)
	length := s.joinSteps(v)
	v.stepping = true
	if v.busy == 0 {
		s.events.steps.Push(des.NewEvent(s.now+length, stepEnd, int64(v.first), v.first))
	}
	for i := v.first; i < v.end; i++ {
		e := s.replicas[i].engine
		if !e.Busy() {
			continue
		}
		e.SetLength(length)
		if err := s.stepStarted(i, false); err != nil {
			return err
		}
	}
	return nil
}

// goesOn reports whether the ranks of a server run another step.
func (s *simulation) goesOn(v *server) bool {
	if v.running {
		v.steps++
		if v.steps != 1 && v.steps%v.interval != 0 {
			return true
		}
		if s.isUnfinished(v) {
			return true
		}
		v.steps = 0
		clear(v.ranks)
	}
	work := false
	for i := v.first; i < v.end; i++ {
		work = work || s.replicas[i].engine.HasWork()
	}
	v.running = work
	return work
}

// isUnfinished reports whether any rank says that it has work when they ask after a step. Requests that came in the
// meantime do not count: with them the ranks begin to run again.
func (s *simulation) isUnfinished(v *server) bool {
	if v.async {
		return v.unfinished
	}
	for i := v.first; i < v.end; i++ {
		if s.replicas[i].engine.HasOlder(v.ranks[i-v.first].seen) {
			return true
		}
	}
	return false
}

// hasBatch reports whether a rank has a batch in the joint step that begins now, not a dummy batch.
func (s *simulation) hasBatch(v *server, i int32) bool {
	e := s.replicas[i].engine
	return e.HasBatch() || e.HasWork() && !(v.async && v.ranks[i-v.first].ran)
}

// formsLate reports whether ranks form the batches behind the joint step that begins now when it ends.
func (s *simulation) formsLate(v *server) bool {
	for i := v.first; i < v.end && v.async && v.asks(); i++ {
		if !s.hasBatch(v, i) {
			return true
		}
	}
	return false
}

// asks reports whether the ranks ask after the joint step that begins now.
func (v *server) asks() bool { return v.steps == 0 || (v.steps+1)%v.interval == 0 }

// noteRanks notes what the ranks do in the joint step that has begun.
func (s *simulation) noteRanks(v *server, late bool) {
	v.unfinished = false
	for i := v.first; i < v.end; i++ {
		e, r := s.replicas[i].engine, &v.ranks[i-v.first]
		seen := e.Arrivals()
		if r.ran && !r.late { // its part of this step began when the one before did
			seen = r.seen
		}
		v.unfinished = v.unfinished || v.async && v.asks() && e.HasOlder(seen)
		*r = rank{ran: e.Busy(), late: late && e.Busy(), seen: e.Arrivals()}
	}
}

// joinSteps returns how long the joint step of these batches takes: as long as that of the slowest rank.
func (s *simulation) joinSteps(v *server) (length des.Time) {
	latency.JoinRanks(v.batches)
	v.own = v.own[:0]
	for k, b := range v.batches {
		us := s.jointModel(v.first + int32(k)).Step(b)
		v.own, length = append(v.own, us), max(length, us)
	}
	for k, us := range v.own {
		r := &s.replicas[v.first+int32(k)]
		b, t := &v.batches[k], &r.ranks
		t.Steps, t.Tokens, t.Widest = t.Steps+1, t.Tokens+b.Tokens(), t.Widest+b.WidestRank
		if r.engine.Busy() {
			t.StepUS, t.WaitUS = t.StepUS+length, t.WaitUS+length-us
		} else {
			t.Dummies, t.dummyUS = t.Dummies+1, t.dummyUS+length
		}
	}
	return length
}

// jointModel is the model of the joint steps of a rank.
func (s *simulation) jointModel(i int32) latency.Model {
	r := &s.replicas[i]
	return r.jitter.wrap(s.deployments[r.deployment].model)
}

// stepModel is the model by which the engine of a replica forms steps.
func (s *simulation) stepModel(i int32) latency.Model {
	if r := &s.replicas[i]; r.server != missing && s.servers[r.server].lockstep {
		return s.deployments[r.deployment].model // the jitter is that of joint steps
	}
	return s.jointModel(i)
}

// endsStep ends the part of a rank in a step and reports whether it had a batch.
func (s *simulation) endsStep(i int32) bool {
	v, busy := &s.servers[s.replicas[i].server], s.replicas[i].engine.Busy()
	if !v.lockstep {
		return true
	}
	if busy {
		v.busy--
	}
	if v.busy == 0 {
		v.stepping = false
		s.wake(v.first)
	}
	return busy
}

// formLate forms the batch of a rank behind its step, which ends now.
func (s *simulation) formLate(i int32) error {
	s.replicas[i].engine.FormLate(s.now)
	return s.batchesFormed(i)
}
