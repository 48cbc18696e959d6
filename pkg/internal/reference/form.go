package reference

import (
	"fmt"
	"math"
	"slices"
)

// form makes the next batch at now. It treats the work of a step in progress as computed and its
// tokens as present, but a request that gets its last token in that step still runs and keeps its
// batch slot and blocks. The batch is empty if there is nothing to compute or no room for it.
func (r *replica) form(now int64) *batch {
	b := &batch{budget: r.config.MaxNumBatchedTokens - r.config.budgetSlots()}
	r.threshold = r.currentThreshold()
	r.beginCadence()
	r.fresh, r.cache.taken, r.skippedNow, r.passedAdapter = nil, nil, nil, false
	if r.host != nil {
		r.host.formed, r.host.now = now, now
	}
	r.lacking, r.noRoomForItem = false, false
	r.scheduleRunning(b, now)
	switch {
	case b.Preempted > 0:
	case r.host != nil:
		r.tooLarge = r.scheduleWithHost(b, now)
	default:
		r.scheduleWaiting(b, now)
	}
	if r.host != nil {
		r.waitForTaken()
		r.storeGiven(b, now)
		r.offer(b)
		r.offerLeft(b, now)
		if len(b.entries) > 0 {
			b.notBefore, r.host.wait = r.host.wait, 0
		}
		if b.notBefore > now {
			r.host.counts.Waits++
		}
	}
	r.useAdapters(b)
	if b.deferred = r.isDeferred(b); !b.deferred {
		r.fillMasks(b, now)
	}
	r.timeItems(b)
	b.UsedBlocks = r.cache.used()
	b.Running, b.Waiting = len(r.running), len(r.waiting)+len(r.loading)
	r.stopped = r.stoppedBy(b, now)
	r.endCadence(b)
	r.propose(b)
	r.spaceTokens(b)
	r.check(b)
	return b
}

// currentThreshold is the long-prefill threshold of a batch that is formed with the present requests.
func (r *replica) currentThreshold() int {
	limit, present := r.config.LongPrefillThreshold, len(r.running)+len(r.waiting)+len(r.loading)
	if limit == 0 || present == 0 {
		return 0
	}
	if present == 1 && r.config.SpareLone {
		r.spared++
		return 0
	}
	if share := r.config.MaxNumBatchedTokens / present; r.config.Adaptive && share > limit {
		r.raised++
		return share
	}
	return limit
}

// scheduleRunning gives tokens to the running requests in order and preempts where memory runs out.
func (r *replica) scheduleRunning(b *batch, now int64) {
	before := r.selfPreempted
	for i := 0; i < len(r.running) && b.budget > 0; i++ {
		q := r.running[i]
		if r.draining(q) || r.waitsForToken(q) {
			continue
		}
		n := min(r.capChunk(q.length()+q.drafting.drafts-q.computed), b.budget)
		if r.config.MaxModelLen > 0 {
			n = min(n, r.config.MaxModelLen-1-q.computed)
		}
		if r.cadence.defers && q.inPrompt {
			continue
		}
		if n > 0 {
			n = r.aligned(q, q.computed, n, false)
		}
		if r.awaitsItems(q, q.computed) {
			continue
		}
		encoded := b.encoderTokens
		media, n := r.planItems(b, q, q.computed, n)
		if n <= 0 {
			continue
		}
		skipped := 0
		r.slide(q)
		past := hit{tokens: q.computed}
		slots := r.config.slots(past.tokens + n)
		for q.stage == stageRunning && r.blocksNeeded(q, past, slots, false) > len(r.cache.free) {
			victim := r.victim()
			if r.host != nil && r.step.contains(victim) { // a load could write to its blocks while the step does
				r.host.counts.Stuck++
				return
			}
			idle := !b.contains(victim)
			if !idle {
				r.undoneVictims++
				b.withdraw(victim, r.config)
				r.withdrawItems(b, victim)
			}
			if slices.Index(r.running, victim) < slices.Index(r.running, q) { // it had its turn
				i--
				if idle && r.config.SkipAfterIdle {
					skipped++
				}
			}
			r.preempt(b, victim, now)
		}
		if q.stage != stageRunning { // it was the victim
			r.selfPreempted++
			if !r.config.ContinueAfterSelf {
				return
			}
			i--
			continue
		}
		r.encode(b, q, media, encoded)
		r.cadence.prefills = r.cadence.prefills || q.inPrompt
		r.allocate(q, hit{}, n)
		r.schedule(b, q, n)
		if r.selfPreempted > before {
			r.continued++
		}
		i += skipped
		r.skipped += skipped
	}
}

// scheduleWaiting admits from the head of the queue until a request does not fit.
func (r *replica) scheduleWaiting(b *batch, now int64) {
	defer r.returnSkipped()
	for len(r.waiting) > 0 && b.budget > 0 {
		if len(r.running) >= r.config.MaxNumSeqs {
			if slices.ContainsFunc(r.running, r.draining) {
				r.async.DrainingSlots++
			}
			return
		}
		q := r.waiting[0]
		if r.skipsFlying(q) || r.skipsGrammar(q, now) || r.skipsAdapter(q) {
			continue
		}
		hits := r.hits(q)
		if r.awaitsItems(q, hits.tokens) {
			r.passItem(q)
			continue
		}
		if r.turnsAway(q, hits) {
			return
		}
		n := q.length() - hits.tokens
		if q.drafting = (drafting{}); r.pads(b, q, hits.tokens) {
			if n += r.config.Speculation.Tokens; n > b.budget {
				b.noPadding = true
				return
			}
			q.drafting = drafting{drafts: n - 1, padded: true}
		}
		n = r.capChunk(n)
		if !r.config.Chunked && n > b.budget {
			return
		}
		n = r.aligned(q, hits.tokens, min(n, b.budget), true)
		if n == 0 || r.isFresh(q, hits) {
			return
		}
		encoded := b.encoderTokens
		media, n := r.planItems(b, q, hits.tokens, n)
		if n == 0 {
			r.noRoomForItem = true
			r.passItem(q)
			continue
		}
		if !r.canAdmit(q, hits, n) {
			r.releaseAll(q)
			return
		}
		r.encode(b, q, media, encoded)
		r.waiting = r.waiting[1:]
		r.running = append(r.running, q)
		q.stage = stageRunning
		r.allocate(q, hits, n)
		if q.outcome.ScheduledUS == Never {
			q.outcome.ScheduledUS = now
			q.outcome.Cached = q.computed
			r.hitTokens = append(r.hitTokens, measurement{now, int64(q.computed), int64(q.Input)})
		}
		q.endPreemption(now)
		r.cadence.prefills = r.cadence.prefills || hits.tokens < q.length()-1
		r.cadence.passed = slices.DeleteFunc(r.cadence.passed, func(p *request) bool { return p == q })
		r.schedule(b, q, n)
		b.entries[len(b.entries)-1].admitted = true
	}
}

// capChunk applies the long-prefill threshold.
func (r *replica) capChunk(n int) int {
	if 0 < r.threshold && r.threshold < n {
		return r.threshold
	}
	return n
}

// hits returns the longest cached prefix of a request and counts lookups of blocks that are late.
func (r *replica) hits(q *request) hit {
	h := r.lookup(q)
	g := r.config.groups()[0]
	if next := h.tokens + g.BlockSize; r.config.PrefixCaching && next < q.length() && r.isLate(q.hash(next)) {
		r.async.LateLookups++
	}
	return h
}

// isLate reports whether a running request has a block for these tokens that has no hash yet,
// because some of the tokens are still in flight.
func (r *replica) isLate(hash string) bool {
	return slices.ContainsFunc(r.running, func(q *request) bool {
		n := slices.Index(q.end, len(hash))
		return q.visible() < n && n <= q.computed && q.hash(n) == hash
	})
}

// blocksNeeded is the number of free blocks that a request takes so that its hits and its own blocks
// hold its first n tokens, of which it computes those after hits.tokens. A hit without owners is a free block. If
// whole, windows count as config.most.
func (r *replica) blocksNeeded(q *request, hits hit, n int, whole bool) int {
	needed := 0
	for k, g := range r.config.groups() {
		want := g.blocks(n)
		if whole {
			want = r.config.most(g, n)
		}
		have := 0
		if q.tables != nil {
			have = len(q.tables[k])
		} else if hits.blocks != nil {
			have = len(hits.blocks[k])
			for _, b := range hits.blocks[k] {
				if b != null && r.cache.blocks[b].owners == 0 {
					needed++
				}
			}
		}
		needed += r.config.places(q, g, hits.tokens, n, max(0, want-have))
	}
	return needed
}

// canAdmit reports whether memory suffices for a waiting request with these hits to compute n more
// tokens. While other requests run, even if only their last token is in flight, it must leave the
// watermark free.
func (r *replica) canAdmit(q *request, hits hit, n int) bool {
	free := len(r.cache.free)
	needed := r.blocksNeeded(q, hits, r.config.slots(hits.tokens+n), false)
	if needed > free {
		return false
	}
	if r.wholePrompts {
		if needed = r.blocksNeeded(q, hits, q.length(), false); needed > free {
			r.noRoomForPrompt++
			return false
		}
	}
	if r.config.ReserveFull {
		needed = max(needed, r.blocksNeeded(q, hits, q.length(), true))
	}
	if needed > free {
		r.reservationBlocked++
		return false
	}
	if len(r.running) > 0 && free-needed < int(math.Floor(r.config.Watermark*float64(r.config.NumBlocks))) {
		r.watermarkBlocked++
		return false
	}
	return true
}

// allocate gives a request its hits and the blocks for n more tokens, which must be available.
// Blocks filled by visible tokens get their hash at once.
func (r *replica) allocate(q *request, hits hit, n int) {
	if q.tables == nil {
		q.tables, q.computed = hits.blocks, hits.tokens
		q.lastState = make([]int, len(q.tables))
		for _, b := range q.held() {
			r.cache.pin(b)
		}
	}
	upto := q.computed + n
	if r.wholePrompts {
		upto = q.length()
	}
	for k, g := range r.config.groups() {
		missing := g.blocks(r.config.slots(upto)) - len(q.tables[k])
		if missing > 0 {
			q.lastState[k] = max(0, len(q.tables[k])-1)
		}
		from := missing - r.config.places(q, g, q.computed, upto, missing)
		for i := range max(0, missing) {
			b := null
			if i >= from {
				b = r.cache.allocate()
			}
			q.tables[k] = append(q.tables[k], b)
		}
	}
	r.register(q, min(q.computed+n, q.visible()))
}

// schedule adds n tokens of a request to the batch, which count as computed from now on. A single
// uncomputed token of a sequence with output, in flight included, is a decode. Choice: a request
// admitted with all but one token cached has those cached tokens as context.
func (r *replica) schedule(b *batch, q *request, n int) {
	past, decodes := q.computed, (q.length() > q.Input || q.pulled) && q.length()-q.computed == 1
	drafts := r.draftsOf(b, q, n)
	padded, wasInPrompt, follows := q.drafting.padded, q.drafting.inPrompt, q.inFlight > 0
	b.Drafts += int64(drafts)
	if decodes {
		b.decode(q.computed, r.config.Window)
	} else {
		b.chunk(n-drafts, q.computed, r.config.Window)
	}
	q.computed += n
	yields := q.computed == q.length()+drafts
	q.inPrompt = !yields
	q.drafting.drafts, q.drafting.padded = 0, false
	q.drafting.flying += n
	q.flying += n
	if yields {
		q.inFlight += 1 + drafts
		if q.outcome.Generated+q.inFlight > q.Output {
			r.async.Overruns++
		}
		q.host.chunked = false
	}
	b.entries = append(b.entries, entry{request: q, tokens: n, isDecode: decodes, computed: past, emitsToken: yields,
		drafts: drafts, padded: padded, wasInPrompt: wasInPrompt, follows: follows})
	b.budget -= n + r.config.budgetSlots()
}

// preempt moves a running request back to the queue and frees its blocks. A token in flight still
// arrives.
func (r *replica) preempt(b *batch, q *request, now int64) {
	if b.contains(q) {
		panic("reference: a victim that the batch computes")
	}
	if q.inFlight > 0 {
		r.async.PendingVictims++
	}
	if r.draining(q) {
		r.async.DrainingVictims++
	}
	r.leave(q)
	if r.host != nil {
		r.host.waitForStores(q)
		q.host.offered, q.host.chunked = 0, false
	}
	r.forgetDrafts(q)
	r.requeue(q)
	q.stage = stageQueued
	q.outcome.Preemptions++
	q.preemptedAt = now
	b.Preempted++
}

// endPreemption adds the time since the preemption to the outcome.
func (q *request) endPreemption(now int64) {
	if q.preemptedAt != Never {
		q.outcome.PreemptedUS += now - q.preemptedAt
		q.preemptedAt = Never
	}
}

// check panics if a new batch exceeds a limit.
func (r *replica) check(b *batch) {
	r.cache.check(r.holders())
	tokens := 0
	for _, p := range b.entries {
		tokens += p.tokens
		q := p.request
		if p.tokens < 1 || q.final() || r.config.Speculation == nil && r.config.Pipeline == nil && (q.inFlight > 2 ||
			q.outcome.Generated+q.inFlight > q.Output+r.config.overrun(q)) ||
			len(q.tables[0])*r.config.groups()[0].BlockSize < q.computed {
			panic("reference: a request computes tokens that it does not have")
		}
	}
	if tokens > r.config.MaxNumBatchedTokens || len(r.running) > r.config.MaxNumSeqs {
		panic(fmt.Sprintf("reference: a step of %d tokens and %d sequences", tokens, len(r.running)))
	}
	if b.Batch.Prefill+b.Batch.Decode+b.Batch.Drafts != int64(tokens) {
		panic("reference: the sums of a batch are not those of its parts")
	}
}
