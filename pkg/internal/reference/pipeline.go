package reference

import "slices"

// Pipeline divides the layers into stages, which compute different batches at the same time.
type Pipeline struct {
	// Layers has the number of layers of each stage.
	Layers []int
	// Batches is the length of the queue of batches. The replica waits for the oldest batch when the queue is full and,
	// unless EmptyBatches is set, after a batch without tokens.
	Batches      int
	EmptyBatches bool
	// Cadence is for Async: from a batch that gives a request a token to the next one with the request there are at
	// least as many, and that batch waits for the tokens of the first one, also if it does not have the request.
	Cadence int
	// HopUS is the time from a stage to the next one, and HopTokenUS what each token adds.
	HopUS, HopTokenUS float64
}

// inFlight are the batches in flight of a replica with a Pipeline.
type inFlight struct {
	// queue are the formed batches behind the step in progress, oldest first.
	queue []*batch
	// formed is the number of batches formed, left: a request has left since the last one.
	formed int
	left   bool
	// freeAt is when each stage has nothing to do, ends when the batches that give tokens end, by their numbers.
	freeAt map[int]int64
	ends   map[int]int64
	// ended are the batches that have ended.
	ended  []*batch
	counts PipelineCounts
}

// PipelineCounts counts what is rare: empty batches, those formed while others were in flight, waits of a batch for
// tokens of another one, waits for a stage, and
// requests not resumed since they were in flight.
type PipelineCounts struct{ Empty, Overlaps, TokenWaits, StageWaits, Flying int }

func (p *PipelineCounts) add(q PipelineCounts) {
	p.Empty += q.Empty
	p.Overlaps += q.Overlaps
	p.TokenWaits += q.TokenWaits
	p.StageWaits += q.StageWaits
	p.Flying += q.Flying
}

// batchesInFlight are the step in progress and the batches behind it.
func (r *replica) batchesInFlight() (all []*batch) {
	for _, b := range append([]*batch{r.step, r.ahead}, r.flight.queue...) {
		if b != nil {
			all = append(all, b)
		}
	}
	return all
}

// startPipelined fills the queue of batches and then waits for the oldest one.
func (r *replica) startPipelined(now int64) {
	p, f := r.config.Pipeline, &r.flight
	for tries := 0; ; tries++ {
		if tries > 100000 {
			panic("reference: a pipeline makes no progress")
		}
		present := len(r.running)+len(r.waiting) > 0
		if !present && !f.left && len(f.queue) == 0 {
			return
		}
		if present || f.left {
			f.formed++
			f.left = false
			b := r.form(now)
			f.queue = append(f.queue, b)
			empty := len(b.entries) == 0
			if empty {
				f.counts.Empty++
				r.victims += b.Preempted
			} else {
				b.Preempted += r.victims
				r.victims = 0
				r.compute(b, now)
			}
			full := len(f.queue) == p.Batches
			waits := empty
			if p.EmptyBatches {
				waits = empty && !present
			} else if oldest := f.queue[0]; len(oldest.entries) == 0 || oldest.EndUS <= now {
				waits = true
			}
			if !full && !waits {
				continue
			}
		}
		oldest := f.queue[0]
		f.queue = f.queue[1:]
		if len(oldest.entries) > 0 {
			r.step = oldest
			return
		}
	}
}

// compute finds when the stages compute a batch.
func (r *replica) compute(b *batch, now int64) {
	p, f := r.config.Pipeline, &r.flight
	for _, e := range b.entries {
		b.Shares = append(b.Shares, Share{e.request.ID, e.tokens})
	}
	if now < f.freeAt[len(p.Layers)-1] {
		f.counts.Overlaps++
	}
	b.StartUS = max(now, f.freeAt[0])
	if r.config.Async {
		for number, end := range f.ends {
			if number <= f.formed-p.Cadence && end > b.StartUS {
				b.StartUS = end
				f.counts.TokenWaits++
			}
		}
		if slices.ContainsFunc(b.entries, func(e entry) bool { return e.emitsToken }) {
			defer func() { f.ends[f.formed] = b.EndUS }()
		}
	}
	us := r.lengthOf(b)
	layers, all := int64(0), int64(0)
	for _, n := range p.Layers {
		all += int64(n)
	}
	at := b.StartUS
	for i, n := range p.Layers {
		if i > 0 {
			at += roundHalfUp(p.HopUS + float64(p.HopTokenUS*float64(b.Prefill+b.Decode)))
		}
		if f.freeAt[i] > at {
			f.counts.StageWaits++
			at = f.freeAt[i]
		}
		start := at
		at += us*(layers+int64(n))/all - us*layers/all
		layers += int64(n)
		f.freeAt[i] = at
		b.stages = append(b.stages, [2]int64{start, at})
	}
	b.EndUS = at
}

// waitsForToken reports whether a running request cannot be in the batch that is being formed: its newest token is in
// flight and, with Async, the batch is too near to that one.
func (r *replica) waitsForToken(q *request) bool {
	switch {
	case r.config.Pipeline == nil:
		return false
	case r.config.Async:
		return r.flight.formed < q.nextBatch
	}
	return q.inFlight > 0
}

// spaceTokens finds which batches may have the requests that get a token from a new batch.
func (r *replica) spaceTokens(b *batch) {
	if r.config.Pipeline == nil {
		return
	}
	for _, e := range b.entries {
		if e.emitsToken {
			e.request.nextBatch = r.flight.formed + r.config.Pipeline.Cadence
		}
	}
}

// skipsFlying passes the first waiting request if it was preempted with tokens that are still being computed.
func (r *replica) skipsFlying(q *request) bool {
	if r.config.Pipeline == nil || q.flying == 0 {
		return false
	}
	r.flight.counts.Flying++
	r.skippedNow = append(r.skippedNow, q)
	r.waiting = r.waiting[1:]
	return true
}

// stageTime is the time in which stages computed the batches of a replica before now.
func (r *replica) stageTime(now int64) (us int64) {
	for _, b := range append(r.batchesInFlight(), r.flight.ended...) {
		for _, s := range b.stages {
			us += max(0, min(s[1], now)-s[0])
		}
	}
	return us
}

// endStages ends the batches in flight of a replica that goes down at now.
func (r *replica) endStages(now int64) {
	for _, b := range r.batchesInFlight() {
		for i, s := range b.stages {
			b.stages[i] = [2]int64{min(s[0], now), min(s[1], now)}
		}
		r.flight.ended = append(r.flight.ended, b)
	}
}

// endedAt is when the run ended: at the horizon, if it cut requests.
func (s *simulation) endedAt() int64 {
	if slices.ContainsFunc(s.requests, func(q *request) bool { return q.outcome.State == Unfinished }) {
		return s.config.HorizonUS
	}
	return s.last
}
