package reference

import (
	"math"
	"slices"
)

// scheduleWithHost is scheduleWaiting with a host: requests whose load has ended come first.
func (r *replica) scheduleWithHost(b *batch, now int64) (tooLarge *request) {
	for _, q := range slices.Clone(r.loading) {
		if !r.hasRoom(b) {
			return nil
		}
		if len(r.host.underWay(q, true)) > 0 && q.host.loadEnd > now {
			continue
		}
		if !r.admitLoaded(b, q, now) {
			return q
		}
	}
	for _, q := range slices.Clone(r.waiting) {
		if !r.hasRoom(b) {
			return nil
		}
		if len(r.host.underWay(q, false)) > 0 {
			r.host.counts.Unfinished++
			continue
		}
		hits := r.hits(q)
		found, busy := r.lookupHost(q, hits)
		if busy {
			r.host.counts.Busy++
			continue
		}
		if q.stage == stageQueued && q.twin != nil && !q.pulled && !q.lapsed {
			if !r.pull(q, hits) {
				return q
			}
			continue
		}
		if found > 0 && found < r.host.MinLoad {
			r.host.counts.Short++
		}
		if found >= max(1, r.host.MinLoad) {
			if !r.load(q, hits, found, now) {
				return q
			}
			continue
		}
		if r.awaitsItems(q, hits.tokens) {
			continue
		}
		n := r.capChunk(q.length() - hits.tokens)
		if !r.config.Chunked && n > b.budget {
			return q
		}
		n = min(n, b.budget)
		encoded := b.encoderTokens
		media, n := r.planItems(b, q, hits.tokens, n)
		if n == 0 {
			r.noRoomForItem = true
			continue
		}
		if !r.canAdmit(q, hits, n) {
			r.releaseAll(q)
			return q
		}
		r.encode(b, q, media, encoded)
		r.waiting = slices.DeleteFunc(r.waiting, func(x *request) bool { return x == q })
		r.run(b, q, hits, n, now)
	}
	return nil
}

func (r *replica) hasRoom(b *batch) bool { return b.budget > 0 && len(r.running) < r.config.MaxNumSeqs }

// run makes a request that is in no list run n tokens in a batch.
func (r *replica) run(b *batch, q *request, hits hit, n int, now int64) {
	r.running = append(r.running, q)
	q.stage = stageRunning
	r.allocate(q, hits, n)
	if q.outcome.ScheduledUS == Never {
		q.outcome.ScheduledUS = now
		q.outcome.Cached, q.outcome.Loaded, q.outcome.FromStorage = q.computed, 0, 0
		if q.host.reached {
			q.outcome.Cached = q.host.hit * r.config.BlockSize
			q.outcome.Loaded = q.host.loaded * r.config.BlockSize
			q.outcome.FromStorage = q.host.fromStorage * r.config.BlockSize
		}
	}
	q.endPreemption(now)
	q.host.chunked = q.computed+n < q.length()
	r.schedule(b, q, n)
}

// admitLoaded schedules a request whose load has ended, or returns false if it does not fit.
func (r *replica) admitLoaded(b *batch, q *request, now int64) bool {
	if !q.host.reached {
		q.host.reached = true
		q.computed = (q.host.hit + q.host.loaded) * r.config.BlockSize
		if q.host.pulls {
			q.computed = q.length()
		}
		r.register(q, q.computed)
		if q.computed == q.length() {
			r.host.counts.Whole++
			q.computed--
		}
	}
	if r.awaitsItems(q, q.computed) {
		return true
	}
	n := r.capChunk(q.length() - q.computed)
	if !r.config.Chunked && n > b.budget {
		return false
	}
	n = min(n, b.budget)
	encoded := b.encoderTokens
	media, n := r.planItems(b, q, q.computed, n)
	if n == 0 {
		r.noRoomForItem = true
		return true
	}
	if !r.canAdmit(q, hit{tokens: q.computed}, n) {
		r.releaseAll(q)
		return false
	}
	r.encode(b, q, media, encoded)
	r.loading = slices.DeleteFunc(r.loading, func(x *request) bool { return x == q })
	r.cache.taken = append(r.cache.taken, q.tables[0]...)
	r.run(b, q, hit{}, n, now)
	return true
}

// lookupHost returns how many blocks behind the hits the host has, and whether one of them is in a transfer.
func (r *replica) lookupHost(q *request, hits hit) (found int, busy bool) {
	size := r.config.BlockSize
	var run, promoted []string
	for i := hits.tokens / size; i < q.length()/size; i++ {
		hash := q.hash((i + 1) * size)
		b := r.host.find(hash)
		switch {
		case b != nil:
			busy = busy || b.state != "ready"
		case r.host.promote(q, hash, i, run):
			promoted = append(promoted, hash)
		default:
			r.host.askPromotion(q, promoted)
			return found, busy || len(promoted) > 0
		}
		run = append(run, hash)
		found++
	}
	r.host.askPromotion(q, promoted)
	return found, busy || len(promoted) > 0
}

// load starts a load, or returns false if there is no room for it.
func (r *replica) load(q *request, hits hit, found int, now int64) bool {
	size := r.config.BlockSize
	all := hits.tokens + found*size
	if r.wholePrompts {
		all = q.length()
	}
	if !r.fits(q, hits, all) {
		return false
	}
	r.take(q, hits, all)
	q.host.hit, q.host.loaded, q.host.reached, q.host.pulls = hits.tokens/size, found, false, false
	q.host.offered, q.host.fromStorage = q.host.hit+found, 0
	t := &transfer{request: q}
	t.Load, t.Blocks = true, found
	for i := q.host.hit; i < q.host.offered; i++ {
		hash := q.hash((i + 1) * size)
		b := r.host.find(hash)
		b.state = "loading"
		t.hashes = append(t.hashes, hash)
		if slices.Contains(q.host.promoted, hash) {
			q.host.fromStorage++
		}
	}
	r.host.record(&q.host, q.Priority, t.hashes)
	r.host.ask(t, now)
	q.host.loadEnd = t.EndedUS
	r.park(q)
	return true
}

// fits reports whether there is room for a load of the first tokens of a request.
func (r *replica) fits(q *request, hits hit, tokens int) bool {
	free := len(r.cache.free)
	if len(r.running) > 0 {
		free -= int(math.Floor(r.config.Watermark * float64(r.config.NumBlocks)))
	}
	fits := r.blocksNeeded(q, hits, tokens, false) <= free-r.stillNeeded() &&
		(!r.config.ReserveFull || r.blocksNeeded(q, hits, q.length(), true) <= free)
	if !fits {
		r.host.counts.NoRoom++
	}
	return fits
}

// take gives a request its hits and blocks for the rest of its first tokens.
func (r *replica) take(q *request, hits hit, tokens int) {
	q.tables = hits.blocks
	if q.tables == nil {
		q.tables = make([][]int, 1)
	}
	q.lastState = make([]int, 1)
	for _, b := range q.held() {
		r.cache.pin(b)
	}
	for len(q.tables[0])*r.config.BlockSize < tokens {
		q.tables[0] = append(q.tables[0], r.cache.allocate())
	}
}

// park takes a waiting request to those that load.
func (r *replica) park(q *request) {
	r.waiting = slices.DeleteFunc(r.waiting, func(x *request) bool { return x == q })
	at := 0
	for at < len(r.loading) && r.config.order(r.loading[at]) <= r.config.order(q) && !r.cameBefore(q, r.loading[at]) {
		at++
	}
	r.loading = slices.Insert(r.loading, at, q)
	q.stage = stageLoading
}

// stillNeeded returns how many blocks the prompts in chunks and the loads need for all their tokens.
func (r *replica) stillNeeded() (n int) {
	for _, q := range slices.Concat(r.running, r.loading) {
		if q.stage == stageLoading || q.host.chunked {
			n += max(0, (q.length()+r.config.BlockSize-1)/r.config.BlockSize-len(q.tables[0]))
		}
	}
	return n
}

// abortLoad ends a request that has blocks for a load and reports whether they are free at once.
func (r *replica) abortLoad(q *request, now int64) bool {
	r.loading = slices.DeleteFunc(r.loading, func(x *request) bool { return x == q })
	r.host.number(q)
	if r.step != nil { // the engine learns of it when the step ends
		r.aborted = append(r.aborted, q)
		return false
	}
	loadEnd := q.host.loadEnd
	r.leaveHost(q)
	if loadEnd > now {
		r.host.counts.Orphans++
		r.orphans = append(r.orphans, q)
		r.host.unused(q)
		return false
	}
	r.free(q)
	return true
}
