package reference

import (
	"fmt"
	"math"
	"slices"
)

// form makes the next batch at now. What a step in progress computes counts as
// computed, and the tokens it gives as present; but who gets the last token in
// it is still running, and holds a seat and blocks. The batch is empty if there
// is nothing to compute or no room for it.
func (r *replica) form(now int64) *batch {
	b := &batch{budget: r.config.MaxNumBatchedTokens}
	r.scheduleRunning(b, now)
	if b.Preempted == 0 {
		r.scheduleWaiting(b, now)
	}
	b.UsedBlocks = r.cache.used()
	b.Running, b.Waiting = len(r.running), len(r.waiting)
	r.check(b)
	return b
}

// scheduleRunning gives the running requests their tokens in order, and
// preempts where the memory does not suffice.
func (r *replica) scheduleRunning(b *batch, now int64) {
	for i := 0; i < len(r.running) && b.budget > 0; i++ {
		q := r.running[i]
		if q.ending() {
			continue
		}
		n := min(r.cut(q.length()-q.computed), b.budget)
		if r.config.MaxModelLen > 0 {
			n = min(n, r.config.MaxModelLen-1-q.computed)
		}
		if n <= 0 {
			continue
		}
		for r.needed(q, nil, q.computed+n) > len(r.cache.free) {
			victim := r.victim()
			if b.has(victim) {
				r.undone++
				b.withdraw(victim, r.config.Window)
			}
			if slices.Index(r.running, victim) < i { // it had its turn, if only to be passed over
				i--
			}
			r.preempt(b, victim, now)
			if victim == q {
				r.yielded++
				return
			}
		}
		r.allocate(q, nil, n)
		r.schedule(b, q, n)
	}
}

// scheduleWaiting admits from the head of the queue until one does not fit.
func (r *replica) scheduleWaiting(b *batch, now int64) {
	for len(r.waiting) > 0 && b.budget > 0 {
		if len(r.running) >= r.config.MaxNumSeqs {
			if slices.ContainsFunc(r.running, (*request).ending) {
				r.seen.Seats++
			}
			return
		}
		q := r.waiting[0]
		hits := r.hits(q)
		n := r.cut(q.length() - len(hits)*r.config.BlockSize)
		if !r.config.Chunked && n > b.budget {
			return
		}
		n = min(n, b.budget)
		if !r.admissible(q, hits, n) {
			return
		}
		r.waiting = r.waiting[1:]
		r.running = append(r.running, q)
		q.stage = isRunning
		r.allocate(q, hits, n)
		if q.outcome.ScheduledUS == Never {
			q.outcome.ScheduledUS = now
			q.outcome.Cached = q.computed
		}
		q.resume(now)
		r.schedule(b, q, n)
	}
}

// cut applies the threshold for long prefills.
func (r *replica) cut(n int) int {
	if t := r.config.LongPrefillThreshold; 0 < t && t < n {
		return t
	}
	return n
}

// hits returns the blocks of the longest cached prefix of a request, leaving it
// at least one token to compute.
func (r *replica) hits(q *request) []int {
	var hits []int
	if !r.config.PrefixCaching {
		return hits
	}
	size := r.config.BlockSize
	for i := range (q.length() - 1) / size {
		b, ok := r.cache.lookup(q.hash((i + 1) * size))
		if !ok {
			if r.lagging(q.hash((i + 1) * size)) {
				r.seen.Lagging++
			}
			break
		}
		hits = append(hits, b)
	}
	return hits
}

// lagging reports whether a running request has a block for these tokens, which
// has no hash because some of them have not appeared.
func (r *replica) lagging(hash string) bool {
	return slices.ContainsFunc(r.running, func(q *request) bool {
		n := slices.Index(q.end, len(hash))
		return q.appeared() < n && n <= q.computed && q.hash(n) == hash
	})
}

// needed counts the free blocks that a request takes so that its hits and what
// it has hold its first n tokens. A hit without owner is a free block.
func (r *replica) needed(q *request, hits []int, n int) int {
	size := r.config.BlockSize
	needed := (n+size-1)/size - len(q.blocks) - len(hits)
	needed += r.config.extra((n+size-1)/size) - len(q.extra)
	for _, b := range hits {
		if r.cache.blocks[b].owners == 0 {
			needed++
		}
	}
	return needed
}

// admissible reports whether there is memory for a waiting request with these
// hits to start with n more tokens. While others run, be it that their last
// token is coming, the blocks below the watermark are not for it.
func (r *replica) admissible(q *request, hits []int, n int) bool {
	free := len(r.cache.free)
	needed := r.needed(q, hits, len(hits)*r.config.BlockSize+n)
	if needed > free {
		return false
	}
	if r.config.ReserveFull {
		needed = r.needed(q, hits, q.length())
	}
	if needed > free {
		r.reserved++
		return false
	}
	if len(r.running) > 0 && free-needed < int(math.Floor(r.config.Watermark*float64(r.config.NumBlocks))) {
		r.kept++
		return false
	}
	return true
}

// extra is how many blocks without content come to so many blocks of a request.
func (c *Config) extra(blocks int) int { return c.WindowExtra * min(blocks, c.WindowBlocks) }

// allocate gives a request its hits and the blocks it needs for n more tokens,
// which must be there. Blocks that are filled by tokens that have appeared are
// hashed at once.
func (r *replica) allocate(q *request, hits []int, n int) {
	for _, b := range hits {
		r.cache.share(b)
		q.blocks = append(q.blocks, b)
	}
	q.computed += len(hits) * r.config.BlockSize
	for len(q.blocks)*r.config.BlockSize < q.computed+n {
		q.blocks = append(q.blocks, r.cache.take())
	}
	for len(q.extra) < r.config.extra(len(q.blocks)) {
		q.extra = append(q.extra, r.cache.take())
	}
	r.register(q, min(q.computed+n, q.appeared()))
}

// schedule adds n tokens of a request to the batch, which from now on counts as
// computed. The one uncomputed token of a sequence with output, that coming
// included, is decode. Choice: the context of a request admitted with all but
// one token cached is those cached tokens.
func (r *replica) schedule(b *batch, q *request, n int) {
	past, decodes := q.computed, q.length() > q.Input && q.length()-q.computed == 1
	if decodes {
		b.decode(q.computed, r.config.Window)
	} else {
		b.chunk(n, q.computed, r.config.Window)
	}
	q.computed += n
	yields := q.computed == q.length()
	if yields {
		q.coming++
	}
	b.parts = append(b.parts, part{request: q, tokens: n, decodes: decodes, past: past, yields: yields})
	b.budget -= n
}

// preempt sends a running request back to the queue, without blocks. A token that
// is coming to it still comes.
func (r *replica) preempt(b *batch, q *request, now int64) {
	if b.has(q) {
		panic("reference: a victim that the batch computes")
	}
	if q.coming > 0 {
		r.seen.Victims++
	}
	if q.ending() {
		r.seen.LastVictims++
	}
	r.leave(q)
	r.reenter(q)
	q.stage = isQueued
	q.outcome.Preemptions++
	q.lostUS = now
	b.Preempted++
}

// resume counts the time since the request lost its place.
func (q *request) resume(now int64) {
	if q.lostUS != Never {
		q.outcome.PreemptedUS += now - q.lostUS
		q.lostUS = Never
	}
}

// check panics if a batch just formed breaks a limit.
func (r *replica) check(b *batch) {
	r.cache.check(r.running)
	tokens := 0
	for _, p := range b.parts {
		tokens += p.tokens
		q := p.request
		if p.tokens < 1 || q.final() || q.coming > 2 || q.outcome.Generated+q.coming > q.Output ||
			len(q.blocks)*r.config.BlockSize < q.computed {
			panic("reference: a request computes tokens that it does not have")
		}
	}
	if tokens > r.config.MaxNumBatchedTokens || len(r.running) > r.config.MaxNumSeqs {
		panic(fmt.Sprintf("reference: a step of %d tokens and %d sequences", tokens, len(r.running)))
	}
	if b.Batch.Prefill+b.Batch.Decode != int64(tokens) {
		panic("reference: the sums of a batch are not those of its parts")
	}
}
