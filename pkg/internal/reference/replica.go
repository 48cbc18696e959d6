package reference

import "slices"

// replica is one engine: its queue, its batches and its KV cache.
type replica struct {
	config *Config
	index  int // in its pool
	member int // of a fleet
	// prefills: it is a prefill replica.
	prefills bool
	cuts     int // by which its reports do not reach the router
	cache    cache
	waiting  []*request // head first
	// stopped is the limit that stopped the queue when the last batch was formed.
	stopped stop
	// tooLarge is the request that did not fit into it, if the replica has a host.
	tooLarge *request
	// changed: a request came while the replica was idle, or a step began or ended, at this instant.
	changed bool
	// woken: it forms a batch at this instant, if it has work and none is in progress. Only a replica with a storage
	// needs it, since a second lookup may promote blocks that the first one did not, and one with encode replicas: a
	// second try finds embeddings evicted for which the first one made room.
	woken bool
	// hitTokens counts prompt tokens found in the cache when requests are first scheduled, firstTokens and laterTokens
	// the µs that clients wait for them. meanStepUS is a moving average.
	hitTokens, firstTokens, laterTokens []measurement
	meanStepUS                          float64
	running                             []*request // in the order of last admission
	// host is the memory of the host, nil if blocks are not offloaded. loading have blocks for a load, in the order of
	// their loads; orphans were aborted then.
	host             *host
	loading, orphans []*request
	// held are done, with blocks that go to another replica. asked are transfers of such blocks to this one.
	held []*request
	// wholePrompts: it admits a prompt only with all its blocks. pipelined: its requests may run while blocks arrive.
	wholePrompts, pipelined bool
	// See PieceCounts.
	prolonged, noRoomForPrompt int
	released                   []*request // of them, after the step in progress
	asked                      []*transfer
	arrivals                   int
	// step is the step in progress, nil between steps.
	step *batch
	// ahead is the batch formed when step started, which runs next; nil if there is none, and always
	// without Async.
	ahead *batch
	steps []Step
	// seenUS is when clients saw the tokens of the last step.
	seenUS int64
	// notBefore is when clients see tokens at the earliest: they have those of requests that were redirected before.
	notBefore int64
	// aborted are the requests whose deadline passed during the step in progress, in deadline order.
	aborted []*request
	life    life
	// victims counts the requests preempted since the last step started, by batches that compute nothing.
	victims int
	// See Result for these counts.
	reservationBlocked, watermarkBlocked  int
	undoneVictims, selfPreempted, retries int
	spared, raised, continued, skipped    int
	junctions                             int
	// fresh are the hashes that states got in the batch that is being formed, deferred counts requests that wait
	// for one.
	fresh    []string
	deferred int
	// threshold is the long-prefill threshold of the batch that is being formed; 0 is none.
	threshold int
	cadence   cadence
	part      part
	async     AsyncCounts
	drafts    DraftCounts
	// inHost and onGPU are adapters, the least recently used one first. skippedNow are the waiting requests that the
	// batch being formed may not have.
	inHost, onGPU []string
	skippedNow    []*request
	adapters      AdapterCounts
	grammars      structured
	// passedAdapter: one of them is passed for its adapter.
	passedAdapter bool
	flight        inFlight
	embeddings    encoderCache
	encoding      EncoderCounts
	// received are the contents of which embeddings have come from encode replicas and are needed, underWay those that
	// were asked for, and asks what was asked for since the last batch. lacking: a request of the batch that is being
	// formed waits for some. lost counts embeddings that were in the cache but no more when they were to be used.
	received, underWay map[string]bool
	asks               []askedItem
	lacking            bool
	lost               int
	// noRoomForItem: a request was passed since the encoder has no room for an item.
	noRoomForItem bool
}

// hasWork reports whether a step must start.
func (r *replica) hasWork() bool {
	requests := len(r.running) + len(r.waiting) + len(r.loading)
	return r.life.state != "gone" && (r.ahead != nil || r.flight.left || len(r.flight.queue)+requests > 0)
}

// start starts a step at now: of the batch formed ahead or, if there is none, of a new one. There
// must be work and no step in progress. With Async it also forms the next batch and drops it if it
// is empty; requests that this preempted keep waiting.
func (r *replica) start(now int64) {
	for _, q := range slices.Concat(r.waiting, r.loading) {
		q.countStopped(r.stopped, now)
	}
	if r.config.Pipeline != nil {
		r.startPipelined(now)
		return
	}
	if r.grammars.forming {
		r.grammars.forming = false
		r.grammars.counts.FormedLate++
		r.startAhead(now)
		return
	}
	r.grammars.filling = false
	fresh := r.ahead == nil
	r.step, r.ahead = r.ahead, nil
	if r.step == nil {
		r.step = r.form(now)
		// A request that preempts itself as the lowest may leave the batch empty. The scheduler runs
		// again at once. Then, and if stores began, it may find something else.
		preempted := 0
		for len(r.step.entries) == 0 && (r.step.Preempted > 0 || r.step.storesLeft) {
			r.askStores(r.step, now)
			preempted += r.step.Preempted
			r.step = r.form(now)
			r.retries++
		}
		r.step.Preempted += preempted
	}
	if len(r.step.entries) == 0 && r.host != nil && len(r.host.transfers)+len(r.step.stores)+len(r.held) > 0 {
		r.askStores(r.step, now)
		r.host.counts.Idle++
		r.victims += r.step.Preempted
		r.step = nil
		return
	}
	if len(r.step.entries) == 0 && (r.lacking || len(r.running) == 0 && len(r.skippedNow) > 0) {
		// all wait for their grammars, or for embeddings
		r.grammars.counts.Idle++
		r.victims += r.step.Preempted
		r.step = nil
		return
	}
	if len(r.step.entries) == 0 {
		panic("reference: a replica with work computes nothing")
	}
	if !slices.ContainsFunc(r.step.entries, func(p entry) bool { return !p.request.final() }) {
		r.async.AbandonedSteps++
	}
	r.step.Preempted += r.victims
	r.victims = 0
	for _, p := range r.step.entries {
		r.step.Shares = append(r.step.Shares, Share{p.request.ID, p.tokens})
	}
	r.step.StartUS = max(now, r.step.notBefore)
	if r.grammars.used && !fresh { // the host may see the end of the last step later
		r.step.StartUS = r.grammars.lastEnd
	}
	r.step.EndUS = r.endOf(r.step)
	r.waitForMasks()
	r.grammars.wakeAt = 0
	r.askStores(r.step, r.step.EndUS)
	switch {
	case !r.config.Async || r.part.formsLate:
	case fresh && r.step.MaskUS > 0:
		r.grammars.forming, r.grammars.wakeAt = true, now+r.step.MaskUS
	default:
		r.startAhead(now)
	}
}

// startAhead forms the batch behind the step in progress.
func (r *replica) startAhead(now int64) {
	r.grammars.wakeAt = 0
	ahead := r.form(now)
	if len(ahead.entries) > 0 {
		if r.grammars.wakeAt = ahead.masksAt; ahead.deferred {
			r.grammars.counts.Deferred++
		}
		ahead.StartUS = max(r.step.EndUS, ahead.notBefore)
		r.askStores(ahead, r.endOf(ahead))
		r.ahead = ahead
		return
	}
	r.askStores(ahead, now)
	r.victims = ahead.Preempted
	r.async.DroppedVictims += ahead.Preempted
	if slices.ContainsFunc(slices.Concat(r.running, r.waiting), func(q *request) bool { return !r.draining(q) }) {
		r.async.DroppedBatches++
	}
}

// endOf is when a batch ends that starts at its StartUS.
func (r *replica) endOf(b *batch) int64 {
	return b.StartUS + r.lengthOf(b)
}

// lengthOf is how long a batch takes that starts at its StartUS.
func (r *replica) lengthOf(b *batch) int64 {
	us := r.config.starts().warm(&r.life, b.StartUS, r.config.stepTime(b.Batch)+b.AdapterUS+b.EncoderUS)
	return roundHalfUp(r.config.slow(r.index, b.StartUS, us))
}

// finish ends the step in progress at now. Tokens become visible, then aborted requests leave, then
// completed ones in batch order. It returns the requests that left.
func (r *replica) finish(now int64) []*request {
	var left, early []*request
	if r.part.formsLate {
		early = r.formLate(now)
	}
	seen := now
	if r.pipelined {
		if now > r.step.EndUS {
			r.prolonged++
		}
		r.step.EndUS = now
	}
	r.grammars.lastEnd = r.step.EndUS
	if r.ahead != nil && r.ahead.deferred {
		r.fillMasks(r.ahead, now)
		r.grammars.filling, r.grammars.wakeAt = r.ahead.MaskUS > 0, r.ahead.masksAt
		seen = r.ahead.masksAt
	}
	r.seenUS = max(r.seenUS+1, r.notBefore, seen+r.config.clientDelay(r.step.Batch))
	for _, p := range r.step.entries {
		q := p.request
		q.flying -= p.tokens
		if q.final() {
			continue
		}
		r.finishItems(p)
		if r.config.Speculation != nil {
			if r.yield(p, now) && q.final() {
				left = append(left, q)
			}
			continue
		}
		if !p.emitsToken {
			continue
		}
		q.inFlight--
		q.addToken(now, r.seenUS)
		if len(q.held()) > 0 {
			// The new token has no slot yet; all before it are computed.
			r.async.LateHashes += r.register(q, q.visible()-1)
		}
		if q.final() {
			r.releaseAll(q)
			left = append(left, q)
		}
	}
	r.measureStep(now)
	if r.host != nil {
		left = r.finishWithHost(left, now)
		r.steps = append(r.steps, r.step.Step)
		r.step = nil
		r.cache.check(r.holders())
		return left
	}
	// Choice: aborted requests leave in deadline order, the order in which the engine receives
	// aborts.
	left = append(r.aborted, left...)
	r.aborted = nil
	for _, q := range left {
		r.leave(q)
	}
	r.steps = append(r.steps, r.step.Step)
	if r.config.Pipeline != nil {
		r.flight.ended = append(r.flight.ended, r.step)
	}
	r.step = nil
	r.cache.check(r.holders())
	return append(early, left...)
}

// formLate forms the batch behind the step that ends now. Aborted requests leave before, and are returned.
func (r *replica) formLate(now int64) []*request {
	early := r.aborted
	r.aborted, r.part.formsLate = nil, false
	for _, q := range early {
		r.leave(q)
	}
	for _, q := range r.waiting {
		q.countStopped(r.stopped, now)
	}
	r.startAhead(now)
	return early
}

// holders are the requests that have blocks.
func (r *replica) holders() []*request {
	all := slices.Concat(r.running, r.loading, r.orphans, r.held, r.released)
	if r.host != nil {
		all = append(all, r.host.late...)
	}
	for _, q := range r.aborted {
		if q.stage == stageLoading {
			all = append(all, q)
		}
	}
	return all
}

// leave removes a request from running and frees its blocks, or from the queue, where it has none.
func (r *replica) leave(q *request) {
	r.flight.left = r.config.Pipeline != nil
	r.releaseAll(q)
	if i := slices.Index(r.waiting, q); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		return
	}
	i := slices.Index(r.running, q)
	r.running = slices.Delete(r.running, i, i+1)
	r.free(q)
}

// register hashes every unhashed block that the first n tokens of a request fill and that is kept, and
// returns their number.
func (r *replica) register(q *request, n int) (registered int) {
	if !r.config.PrefixCaching {
		return 0
	}
	n = min(n, q.visible()-r.config.hashLookahead())
	if !r.config.HashAll {
		n -= n % r.config.alignment()
	}
	for k, g := range r.config.groups() {
		for i := range n / g.BlockSize {
			b, end := q.tables[k][i], (i+1)*g.BlockSize
			if b != null && r.cache.blocks[b].hash == "" && r.config.keeps(q, g, end) {
				r.cache.register(b, q.blockHash(k, end+r.config.hashLookahead()))
				r.cache.blocks[b].index, r.cache.blocks[b].tokens = i, q.hash(end)
				if g.State {
					r.fresh = append(r.fresh, q.blockHash(k, end))
				}
				registered++
			}
		}
	}
	return registered
}
