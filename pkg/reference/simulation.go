package reference

import "slices"

// stage is where a request is. Those before isQueued end by themselves.
type stage int

const (
	isBlocked stage = iota // a step until those before it have completed
	isPending              // until its arrival
	isAdmitting
	isRouting
	isDelayed
	isQueued
	isRunning
)

// request is a request on its way.
type request struct {
	Request
	sequence
	outcome Outcome
	stage   stage
	// until is when a stage before isQueued ends.
	until int64
	// blocks hold the first tokens of the sequence, of which computed are done
	// once the step in progress and the batch ahead are.
	blocks   []int
	extra    []int // without content
	computed int
	// coming counts the tokens that those two will add to the output.
	coming int
	// lostUS is when it lost its place in a batch, Never if it does not wait for
	// another one.
	lostUS int64
}

// appeared counts the tokens that exist: the prompt and the output so far.
func (q *request) appeared() int { return q.Input + q.outcome.Generated }

// length counts the tokens that there are to compute, those coming included.
func (q *request) length() int { return q.appeared() + q.coming }

// ending reports whether the last token is coming, so that nothing is left to
// be computed.
func (q *request) ending() bool { return q.outcome.Generated+q.coming == q.Output }

func (q *request) final() bool { return q.outcome.State != "" }

// token adds a generated token at the end of a step; the last one completes.
func (q *request) token(now, clientDelay int64) {
	o := &q.outcome
	o.Generated++
	o.TokensUS = append(o.TokensUS, now)
	if o.Generated == 1 {
		o.FirstTokenUS = now + clientDelay
	}
	if o.Generated == q.Output {
		o.State = Completed
		q.resume(now)
		o.CompletedUS = now + clientDelay
	}
}

// simulation is the cluster and all its requests.
type simulation struct {
	config   Config
	requests []*request // in the order of the stream
	replicas []*replica
	router   router
	// last is the last instant at which anything happened; looked: snapshots were
	// read since.
	last   int64
	looked bool
}

func newSimulation(c Config, requests []Request) *simulation {
	s := &simulation{config: c}
	for range c.Replicas {
		s.replicas = append(s.replicas, &replica{config: &s.config, cache: newCache(c.NumBlocks)})
	}
	s.router = router{
		config:   &s.config,
		inflight: make([]int, c.Replicas),
		shadows:  make([]shadow, c.Replicas),
	}
	for _, r := range requests {
		first := isPending
		if r.Session != "" {
			first = isBlocked
			if !r.Tool {
				r.ID = r.Session + "/" + r.ID
			}
		}
		s.requests = append(s.requests, &request{
			Request:  r,
			stage:    first,
			sequence: newSequence(r),
			until:    r.ArrivalUS,
			lostUS:   Never,
			outcome: Outcome{
				ID: r.ID, ArrivalUS: r.ArrivalUS,
				AdmittedUS: Never, RoutedUS: Never, EnqueuedUS: Never, ScheduledUS: Never,
				FirstTokenUS: Never, CompletedUS: Never, Replica: Never,
			},
		})
	}
	return s
}

// run goes from instant to instant until every request is final or the horizon
// is passed.
//
// Choice: with the last final request the run ends, also if a step of aborted
// requests is in progress; such a step is not listed. One that ends at that very
// instant, on whatever replica, is over and is listed.
func (s *simulation) run() {
	for _, q := range s.requests {
		if s.config.HorizonUS != Never && q.ArrivalUS > s.config.HorizonUS {
			q.outcome.State = BeyondHorizon // not offered, so nothing to wait for
		}
	}
	s.router.look(s.replicas)
	s.release()
	for {
		now, ok := s.next()
		if !ok || s.config.HorizonUS != Never && now > s.config.HorizonUS {
			return
		}
		for s.happen(now) {
			s.release()
		}
		if every := s.config.SnapshotUS; every > 0 && now%every == 0 {
			s.router.look(s.replicas)
		}
		for _, r := range s.replicas {
			if r.step == nil && r.hasWork() {
				r.start(now)
			}
		}
	}
}

// happen lets the first of the things happen that are to at this instant, by
// their kinds, requests of one kind by their place in the stream; it reports
// whether there was one. What that brings about at the same instant takes its
// place among the rest.
func (s *simulation) happen(now int64) bool {
	for _, stage := range []struct {
		at stage
		on func(q *request, now int64)
	}{{isPending, s.arrive}, {isAdmitting, s.admit}, {isRouting, s.route}, {isDelayed, s.enqueue}} {
		for _, q := range s.requests {
			if !q.final() && q.stage == stage.at && q.until == now {
				stage.on(q, now)
				return true
			}
		}
	}
	for _, r := range s.replicas {
		if r.step != nil && r.step.EndUS == now {
			for _, q := range r.finish(now) {
				s.router.inflight[q.outcome.Replica]--
			}
			return true
		}
	}
	for _, q := range s.requests {
		if !q.final() && q.DeadlineUS == now {
			s.abort(q, now)
			return true
		}
	}
	return false
}

// next returns the first instant at which anything is to happen; there is none
// once every request is final.
func (s *simulation) next() (at int64, ok bool) {
	var times []int64
	for _, q := range s.requests {
		if q.final() || q.stage == isBlocked {
			continue
		}
		if q.stage < isQueued {
			times = append(times, q.until)
		}
		if q.stage != isPending && q.DeadlineUS != Never {
			times = append(times, q.DeadlineUS)
		}
	}
	if !slices.ContainsFunc(s.requests, func(q *request) bool { return !q.final() && q.stage != isBlocked }) {
		return 0, false
	}
	for _, r := range s.replicas {
		if r.step != nil {
			times = append(times, r.step.EndUS)
		}
	}
	at = slices.Min(times)
	// Between two instants nothing changes, so that of the looks there only the
	// first one matters.
	if every := s.config.SnapshotUS; every > 0 && !s.looked {
		if look := (s.last/every + 1) * every; look < at {
			s.looked = true
			return look, true
		}
	}
	s.last, s.looked = at, false
	return at, true
}

// arrive rejects what no replica could ever serve.
func (s *simulation) arrive(q *request, now int64) {
	c := &s.config
	slots := q.Input + q.Output - 1 // the last token is never computed
	blocks := (slots + c.BlockSize - 1) / c.BlockSize
	reason := ""
	switch {
	case c.MaxModelLen > 0 && q.Input+q.Output > c.MaxModelLen:
		reason = "too_long_for_model"
	case blocks+c.extra(blocks) > c.NumBlocks:
		reason = "too_long_for_cache"
	case !c.Chunked && slots > c.MaxNumBatchedTokens:
		reason = "too_long_for_budget"
	}
	if reason != "" {
		q.outcome.State, q.outcome.Reason = Rejected, reason
		return
	}
	q.stage, q.until = isAdmitting, now+c.AdmissionLatencyUS
}

func (s *simulation) admit(q *request, now int64) {
	q.outcome.AdmittedUS = now
	q.stage, q.until = isRouting, now+s.config.RoutingLatencyUS
}

func (s *simulation) route(q *request, now int64) {
	q.outcome.RoutedUS = now
	q.outcome.Replica, q.outcome.ExpectedCached = s.router.choose(q, s.replicas)
	q.stage, q.until = isDelayed, now+s.config.queueDelay(q.Input)
}

func (s *simulation) enqueue(q *request, now int64) {
	q.outcome.EnqueuedUS = now
	q.stage = isQueued
	r := s.replicas[q.outcome.Replica]
	r.enter(q)
}

// abort ends a request at its deadline. In the middle of a step it keeps what it
// holds until the step ends. Choice: a step that has just ended at this instant
// is over, and what it ran leaves at once, also if the batch ahead has it too.
func (s *simulation) abort(q *request, now int64) {
	q.resume(now)
	q.outcome.State, q.outcome.Reason = TimedOut, "deadline"
	met := []string{isAdmitting: "admission", isRouting: "routing", isDelayed: "delay", isQueued: "queue"}
	if q.stage < isRunning {
		q.outcome.Met = met[q.stage]
	}
	if q.stage < isDelayed {
		return
	}
	r := s.replicas[q.outcome.Replica]
	switch {
	case q.stage == isQueued:
		if q.coming > 0 {
			q.outcome.Met = "flight"
		}
		r.leave(q)
	case q.stage == isRunning && r.step != nil:
		q.outcome.Met = "running"
		if r.ahead.has(q) && !r.step.has(q) {
			q.outcome.Met = "ahead"
		}
		r.aborted = append(r.aborted, q)
		return
	case q.stage == isRunning:
		q.outcome.Met = "between"
		r.leave(q)
	}
	s.router.inflight[q.outcome.Replica]--
}

// result collects the outcomes; what is not final was cut by the horizon.
func (s *simulation) result() Result {
	var result Result
	for _, q := range s.requests {
		switch {
		case q.stage == isBlocked && !q.final():
			q.outcome.State = NotOffered
		case !q.final():
			q.outcome.State, q.outcome.Reason = Unfinished, "horizon"
			q.resume(s.config.HorizonUS)
		}
		result.Outcomes = append(result.Outcomes, q.outcome)
	}
	for _, r := range s.replicas {
		result.Steps = append(result.Steps, r.steps)
		result.Duplicates += r.cache.duplicates
		result.Evictions += r.cache.evictions
		result.Reserved += r.reserved
		result.Kept += r.kept
		result.Undone += r.undone
		result.Yielded += r.yielded
		result.Retries += r.retries
		result.Ahead.add(r.seen)
	}
	return result
}
