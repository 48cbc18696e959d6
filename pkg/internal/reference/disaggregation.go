package reference

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Disaggregation computes the prompts of some requests on replicas of their own, which then send their blocks to the
// replicas that decode. It goes with the routers of Scaling.
type Disaggregation struct {
	// Pool is the cluster of prefill replicas: their number, engines and step times, and the router that chooses one.
	// They are numbered behind those that decode.
	Pool Config
	// Decider is always, never, prefix, or conditional. prefix: prompts of at least PromptTokens of which at least
	// NonCached are not expected in the cache; none if NonCached is 0. conditional: all but prompts of which fewer than
	// NonCached tokens, and less than the share NewRatio, are not expected there.
	Decider                 string
	NonCached, PromptTokens int
	NewRatio                float64
	// PrefillFirst: the prefill replica is chosen first, and the other one without prefixes.
	PrefillFirst bool
	// A transfer has a latency, in which it needs no bandwidth, and then BlockBytes for each block. OutGBPerS is the
	// bandwidth from a prefill replica, InGBPerS that to another one.
	LatencyUS           int64
	BlockBytes          int
	OutGBPerS, InGBPerS float64
	// HopUS is the time from a prefill replica to the other one.
	HopUS int64
	// LeaseUS is how long blocks wait at a prefill replica for the request to come to the other one, which then
	// computes the prompt itself if Recompute, else the request fails. 0 is without end.
	LeaseUS   int64
	Recompute bool
	// MaxWaiting is how many requests may be on their way to a replica before their transfers; 0 is no limit.
	MaxWaiting int
	// Granularity is what moves at once: request (also ""), chunk or block. Pipeline makes a request ready when its
	// last piece has started.
	Granularity string
	Pipeline    bool
}

// never reports whether no prompt goes to a prefill replica.
func (d *Disaggregation) never() bool {
	return d.Decider == "never" || d.Decider == "prefix" && d.NonCached == 0
}

// prefills reports whether the prompt of a request goes to a prefill replica.
func (d *Disaggregation) prefills(q *request, expected int) bool {
	if d.Decider == "always" || d.never() {
		return d.Decider == "always"
	}
	fresh := q.visible() - expected
	if d.Decider == "conditional" {
		return fresh >= d.NonCached || float64(fresh) >= float64(d.NewRatio*float64(q.visible()))
	}
	return q.visible() >= d.PromptTokens && fresh >= d.NonCached
}

// readsCaches reports whether it depends on what is expected in caches.
func (d *Disaggregation) readsCaches() bool {
	return d.Decider == "conditional" || d.Decider == "prefix" && !d.never()
}

// needsIndexes reports whether any choice depends on what the router expects in caches.
func (c *Config) needsIndexes() bool {
	uses := func(c *Config) bool {
		return c.Routing == "prefix-affinity" ||
			slices.ContainsFunc(c.Scorers, func(s Scorer) bool { return s.Name == "prefix-affinity" })
	}
	d := c.Disaggregation
	return uses(c) || d != nil && (uses(&d.Pool) || d.readsCaches())
}

// disaggregation is the state of the prefill replicas and of the links.
type disaggregation struct {
	router router
	// pulls are under way, in the order in which they were asked for, and moving those with a piece under way, in the
	// order in which the pieces started. settled is when their bytes were counted last.
	pulls, moving []*pull
	settled       int64
	counts        PieceCounts
	// heldBack wait for an open replica, without flow control.
	heldBack []*request
}

// addPrefillReplicas adds the prefill replicas to the others.
func (s *simulation) addPrefillReplicas() {
	pool := &s.config.Disaggregation.Pool
	s.prefill.router = newRouter(pool)
	s.prefill.router.indexed = s.config.needsIndexes()
	pool.Failures = s.config.Failures.ofPrefill()
	for i := range pool.Replicas {
		s.prefill.router.among = append(s.prefill.router.among, s.config.Replicas+i)
		r := newReplica(pool)
		r.prefills, r.index, r.wholePrompts = true, i, s.config.Disaggregation.inPieces()
		s.replicas = append(s.replicas, r)
	}
	for _, r := range s.replicas {
		r.connect()
		r.pipelined = !r.prefills && s.config.Disaggregation.Pipeline
	}
}

// connect lets a replica send and get blocks. Without memory of the host it has the state for that only.
func (r *replica) connect() {
	if r.host == nil {
		r.host = &host{}
	}
}

// decodeReplicas are all replicas but the prefill ones.
func (s *simulation) decodeReplicas() []*replica { return s.pool(false) }

func (s *simulation) prefillReplicas() []*replica { return s.pool(true) }

func (s *simulation) pool(prefills bool) (all []*replica) {
	for _, r := range s.replicas {
		if r.prefills == prefills {
			all = append(all, r)
		}
	}
	return all
}

// routerOf is the router that chooses replica i, and the number that the replica has there.
func (s *simulation) routerOf(i int) (*router, int) {
	r := s.replicas[i]
	if r.prefills {
		return &s.prefill.router, r.index
	}
	return &s.router, r.index
}

// inflight is how many requests the router counts at replica i, and count adds n to it.
func (s *simulation) inflight(i int) int {
	of, k := s.routerOf(i)
	return of.inflight[k]
}

func (s *simulation) count(i, n int) {
	of, k := s.routerOf(i)
	of.inflight[k] += n
}

// readReports makes the routers read what the replicas report.
func (s *simulation) readReports(now int64) {
	s.router.readReports(s.decodeReplicas(), now)
	if s.config.Disaggregation != nil {
		s.prefill.router.readReports(s.prefillReplicas(), now)
	}
}

// goesToPrefill reports whether a prefill replica computes the prompt of a request.
func (s *simulation) goesToPrefill(q *request, now int64) bool {
	d := s.config.Disaggregation
	return d != nil && d.prefills(q, q.outcome.ExpectedCached) && d.Pool.tooLong(q.visible(), 1) == "" &&
		len(s.candidatesOf(true, q, now)) > 0
}

// sendToPrefill chooses the prefill replica of a request.
func (s *simulation) sendToPrefill(q *request, now int64) {
	x := &s.prefill.router
	x.now, x.position, x.requests, x.settled = now, s.router.position, s.requests, s.router.settled
	if s.config.SnapshotUS == 0 {
		x.readReports(s.prefillReplicas(), now)
	}
	var chosen, expected int
	if s.config.hasFleet() {
		chosen, expected = s.chooseServing(x, q, s.candidatesOf(true, q, now))
	} else {
		chosen, expected = x.choose(q, s.prefillReplicas())
		chosen += s.config.Replicas
	}
	q.outcome.ExpectedCached = expected
	short := q.Request
	short.Input, short.Output, short.EOS = q.visible(), 1, false
	q.twin = &request{Request: short, sequence: q.sequence, main: q, preemptedAt: Never,
		firstWay: q.outcome.EnqueuedUS == Never,
		outcome:  Outcome{ID: q.ID, EnqueuedUS: Never, ScheduledUS: Never, Replica: chosen}}
	q.pieces = nil
	if q.twin.firstWay {
		q.outcome.PrefillReplica = s.replicas[chosen].index
	}
	if !s.encodesFirst(q) {
		q.stage, q.until = stagePrefillDelay, now+s.config.Disaggregation.Pool.queueDelay(q.Input)
	}
	if s.config.Failures != nil && !s.accepts(chosen) {
		s.refuseSent(q, chosen, now)
	}
}

// sendPrefillFirst sends a request to a prefill replica, chosen first, and chooses the other one as if no cache had
// anything of the prompt. Where the other one that prefixes prefer is to compute the prompt, the request goes there.
func (s *simulation) sendPrefillFirst(q *request, now int64) {
	d, replicas := s.config.Disaggregation, s.decodeReplicas()
	if d.readsCaches() { // else the decider is always
		at, expected := s.router.prefer(q, replicas)
		if s.router.hasIndexes() {
			expected = min(s.router.indexes[at].matched(s.router.hashes(q))*s.router.config.BlockSize, s.router.most(q))
		}
		if !d.prefills(q, expected) || d.Pool.tooLong(q.visible(), 1) != "" {
			q.outcome.Replica, q.outcome.ExpectedCached = at, expected
			s.router.inflight[at]++
			s.router.remember(q, at)
			if !s.rejected(q) {
				q.stage, q.until = stageDelay, now+s.config.queueDelay(q.Input)
			}
			return
		}
	}
	s.sendToPrefill(q, now)
	s.router.blind = true
	q.outcome.Replica, _ = s.router.choose(q, replicas)
	s.router.blind = false
	if s.rejected(q) {
		s.count(q.twin.outcome.Replica, -1)
		q.twin, q.outcome.PrefillReplica = nil, Never
	}
}

// chooseAgain chooses another prefill replica, or lets the decode replica compute the prompt if there is none.
func (s *simulation) chooseAgain(q *request, now int64) {
	q.returns = false
	s.router.position = s.rank(q)
	if len(s.candidatesOf(true, q, now)) > 0 {
		s.sendToPrefill(q, now)
		return
	}
	q.stage, q.until = stageDelay, now+s.config.queueDelay(q.Input)
}

// recordsTransfer: the transfer is before the first batch of a decode replica, and after the prefill of the outcome or
// while the prompt is computed.
func (q *request) recordsTransfer() bool {
	return q.outcome.ScheduledUS == Never && (q.outcome.PrefilledUS != Never || !q.twin.final())
}

// note sets a time of the way to the first queue of a decode replica, unless it is set.
func (q *request) note(at *int64, now int64) {
	if q.twin.firstWay && *at == Never {
		*at = now
	}
}

func (s *simulation) enqueueTwin(q *request, now int64) {
	t := q.twin
	q.note(&q.outcome.PrefillEnqueuedUS, now)
	q.stage, q.until = stagePrefill, Never
	t.outcome.EnqueuedUS, t.stage, t.stoppedAt = now, stageQueued, now
	r := s.replicas[t.outcome.Replica]
	r.insert(t)
	r.changed, r.woken = r.step == nil, true
}

// leftReplica counts a request that has left a replica. The lease of one whose prompt is computed begins.
func (s *simulation) leftReplica(q *request, now int64) {
	main := q.main
	if main == nil {
		s.count(q.outcome.Replica, -1)
		return
	}
	s.count(q.outcome.Replica, -1)
	if main.final() {
		return
	}
	main.note(&main.outcome.PrefilledUS, now)
	d := s.config.Disaggregation
	if d.LeaseUS > 0 && main.stage == stageDelay && main.until > now+d.LeaseUS {
		main.leaseEnd = now + d.LeaseUS
	}
}

// endLeases frees the blocks of a prompt for which the request has not come in time, and reports whether there was one.
func (s *simulation) endLeases(now int64) bool {
	for _, q := range s.requests {
		if q.leaseEnd != Never && q.leaseEnd == now && q.stage == stageDelay && !q.final() {
			s.releaseTwin(q)
			q.leaseEnd, q.lapsed, s.flow.due = Never, true, true
			s.bury(q.twin.outcome.Replica, now)
			return true
		}
	}
	return false
}

// onTheWay counts the requests sent to a replica whose prompts are at prefill replicas, or on the way there.
func (s *simulation) onTheWay(i int) int {
	n := 0
	for _, q := range s.requests {
		if q.outcome.Replica == i && q.twin != nil && !q.final() && !q.lapsed && !q.pulled {
			n++
		}
	}
	return n
}

// open are those of the replicas that may get another request.
func (s *simulation) open(among []int) []int {
	d := s.config.Disaggregation
	return slices.DeleteFunc(slices.Clone(among), func(i int) bool {
		return d != nil && d.MaxWaiting > 0 && s.onTheWay(i) >= d.MaxWaiting
	})
}

// isHeldBack reports whether a request must wait for an open replica.
func (s *simulation) isHeldBack(q *request, now int64) bool {
	among := s.candidates(q, now)
	return len(among) > 0 && len(s.open(among)) == 0
}

// holdBack lets a request wait for an open replica, or behind others that do, and reports whether it does.
func (s *simulation) holdBack(q *request, now int64) bool {
	x := &s.prefill
	if len(x.heldBack) == 0 && !s.isHeldBack(q, now) {
		return false
	}
	x.heldBack = append(x.heldBack, q)
	q.stage, q.until = stageFlow, Never
	s.held++
	return true
}

// sendHeldBack sends requests that wait for an open replica, and reports whether it tried.
func (s *simulation) sendHeldBack(now int64) bool {
	x := &s.prefill
	if !s.flow.due || len(x.heldBack) == 0 {
		return false
	}
	s.flow.due = false
	for len(x.heldBack) > 0 && !s.isHeldBack(x.heldBack[0], now) {
		q := x.heldBack[0]
		x.heldBack = x.heldBack[1:]
		s.send(q, now)
	}
	return true
}

// releaseTwin frees the blocks of a prompt at its prefill replica, after the step in progress.
func (s *simulation) releaseTwin(q *request) {
	r := s.replicas[q.twin.outcome.Replica]
	if q.twin.read = false; !slices.Contains(r.held, q.twin) {
		return // it is in the step in progress and leaves with it
	}
	r.held = slices.DeleteFunc(r.held, func(t *request) bool { return t == q.twin })
	if r.step != nil {
		r.released = append(r.released, q.twin)
	} else {
		r.free(q.twin)
	}
	r.changed, r.woken, s.flow.due = r.changed || r.step == nil, true, true
}

// keep takes a request that is done from the running ones. Its blocks stay.
func (r *replica) keep(q *request) {
	r.running = slices.DeleteFunc(r.running, func(x *request) bool { return x == q })
	r.held = append(r.held, q)
}

// pull gives a waiting request the blocks for a prompt that a prefill replica has computed, or returns false if there
// is no room for them.
func (r *replica) pull(q *request, hits hit) bool {
	if !r.fits(q, hits, q.length()) {
		return false
	}
	r.take(q, hits, q.length())
	t := &transfer{request: q}
	t.Load, t.Pull = true, true
	t.Blocks, t.Request, t.EndedUS = len(q.tables[0])-hits.tokens/r.config.BlockSize, q.ID, math.MaxInt64
	t.AskedUS, t.StartedUS = r.host.formed, r.host.formed
	q.host.hit, q.host.loaded, q.host.reached, q.host.loadEnd = hits.tokens/r.config.BlockSize, 0, false, math.MaxInt64
	q.pulled, q.host.pulls = true, true
	if q.recordsTransfer() {
		q.outcome.TransferBlocks, q.outcome.TransferStartedUS = t.Blocks, t.StartedUS
	}
	r.host.transfers = append(r.host.transfers, t)
	r.asked = append(r.asked, t)
	r.park(q)
	return true
}

// abortHandoff ends a request whose prompt has not arrived at its decode replica, and reports whether that is all.
func (s *simulation) abortHandoff(q *request, now int64, state string) bool {
	t := q.twin
	if t == nil {
		return false
	}
	s.flow.due = true
	switch q.stage {
	case stagePrefillDelay, stageEncoding:
		s.count(t.outcome.Replica, -1)
		s.count(q.outcome.Replica, -1)
	case stagePrefill:
		s.count(q.outcome.Replica, -1)
		t.endPreemption(now)
		t.countStopped(s.replicas[t.outcome.Replica].stopped, now)
		t.outcome.State = state
		if s.abortAt(s.replicas[t.outcome.Replica], t, now) {
			s.count(t.outcome.Replica, -1)
		}
	case stageDelay, stageQueued:
		if s.isHeld(q) {
			s.releaseTwin(q)
		} else {
			s.abortTwin(q, now, state)
		}
		return false
	case stageLoading:
		s.abortPull(q, now)
		s.abortTwin(q, now, state)
		return false
	default:
		return false
	}
	return true
}

// isHeld reports whether a prefill replica has the blocks of the prompt of a request.
func (s *simulation) isHeld(q *request) bool {
	return q.twin != nil && slices.Contains(s.replicas[q.twin.outcome.Replica].held, q.twin)
}

// addTwin adds to the outcome of a request what happened to it at prefill replicas.
func (s *simulation) addTwin(q *request) {
	t, o := q.twin, &q.outcome
	if t != nil {
		if q.stage == stagePrefill && o.State == Unfinished {
			t.endPreemption(s.config.HorizonUS)
			t.countStopped(s.replicas[t.outcome.Replica].stopped, s.config.HorizonUS)
		}
		q.foldTwin()
	}
	if o.PrefillScheduledUS != Never {
		o.DecodeCached, o.Cached, o.Loaded = o.Cached, q.prefillCached, q.prefillLoaded
	}
}

// foldTwin adds the outcome of the twin to that of the request.
func (q *request) foldTwin() {
	t, o := q.twin, &q.outcome
	o.Preemptions += t.outcome.Preemptions
	o.PreemptedUS += t.outcome.PreemptedUS
	for i, us := range t.outcome.StoppedUS {
		o.StoppedUS[i] += us
	}
	if t.firstWay && o.PrefillScheduledUS == Never && t.outcome.ScheduledUS != Never {
		o.PrefillScheduledUS = t.outcome.ScheduledUS
		q.prefillCached, q.prefillLoaded = t.outcome.Cached, t.outcome.Loaded
	}
	q.twin = nil
}

// setDisaggregation sets a key of the pools command of a story.
func (d *Disaggregation) set(key, value string) (err error) {
	switch key {
	case "decider":
		var rest string
		d.Decider, rest, _ = strings.Cut(value, ":")
		if err = oneOf(d.Decider, "always", "never", "prefix", "conditional"); err == nil && rest != "" {
			var x []float64
			x, err = numbers(strings.ReplaceAll(rest, ":", ","))
			if len(x) == 2 {
				d.NonCached, d.PromptTokens = int(x[0]), int(x[1])
				if d.Decider == "conditional" {
					d.PromptTokens, d.NewRatio = 0, x[1]
				}
			}
		}
	case "link":
		x, wrong := numbers(strings.ReplaceAll(value, ":", ","))
		if wrong != nil || len(x) != 4 {
			return fmt.Errorf("want latency:out:in:bytes of a block")
		}
		d.LatencyUS, d.OutGBPerS, d.InGBPerS, d.BlockBytes = int64(x[0]), x[1], x[2], int(x[3])
	case "hop":
		d.HopUS, err = strconv.ParseInt(value, 10, 64)
	case "lease":
		d.LeaseUS, err = strconv.ParseInt(value, 10, 64)
	case "expiry":
		d.Recompute, err = value == "recompute", oneOf(value, "fail", "recompute")
	case "granularity":
		d.Granularity, err = value, oneOf(value, "request", "chunk", "block")
	case "pipeline":
		d.Pipeline, err = value == "on", oneOf(value, "on", "off")
	case "max_waiting":
		d.MaxWaiting, err = strconv.Atoi(value)
	case "first":
		d.PrefillFirst, err = value == "prefill", oneOf(value, "prefill", "decode")
	default:
		err = d.Pool.set(key, value)
	}
	return err
}
