package reference

import (
	"fmt"
	"slices"
)

// replica is one engine: its queue, its batch and its KV memory.
type replica struct {
	config  *Config
	cache   cache
	waiting []*request // the head first
	running []*request // in the order of their last admission
	// step is the one in progress, nil between two.
	step  *batch
	steps []Step
	// aborted are those whose deadline met them in the step in progress, in
	// the order of the deadlines.
	aborted []*request
}

// batch is what one step computes.
type batch struct {
	Step
	parts  []part
	budget int // tokens that it may still take
}

// part is what a step computes of one request.
type part struct {
	request *request
	tokens  int
}

// start forms a batch at now and begins its step. There must be work.
func (r *replica) start(now int64) {
	r.step = &batch{Step: Step{StartUS: now}, budget: r.config.MaxNumBatchedTokens}
	r.scheduleRunning()
	if r.step.Preempted == 0 {
		r.scheduleWaiting(now)
	}
	s := r.step
	s.EndUS = now + r.config.stepTime(s.Prefill, s.Decode, s.Context)
	s.UsedBlocks = r.cache.used()
	s.Running, s.Waiting = len(r.running), len(r.waiting)
	r.check()
}

// scheduleRunning gives the running requests their tokens in order, and
// preempts the last ones where the memory does not suffice.
func (r *replica) scheduleRunning() {
	for i := 0; i < len(r.running) && r.step.budget > 0; i++ {
		q := r.running[i]
		n := min(r.cut(q.length()-q.computed), r.step.budget)
		if r.config.MaxModelLen > 0 {
			n = min(n, r.config.MaxModelLen-1-q.computed)
		}
		if n <= 0 {
			continue
		}
		for !r.allocate(q, nil, n) {
			victim := r.running[len(r.running)-1]
			r.preempt(victim)
			if victim == q {
				return
			}
		}
		r.schedule(q, n)
	}
}

// scheduleWaiting admits from the head of the queue until one does not fit.
func (r *replica) scheduleWaiting(now int64) {
	for len(r.waiting) > 0 && r.step.budget > 0 && len(r.running) < r.config.MaxNumSeqs {
		q := r.waiting[0]
		hits := r.hits(q)
		n := r.cut(q.length() - len(hits)*r.config.BlockSize)
		if !r.config.Chunked && n > r.step.budget {
			return
		}
		n = min(n, r.step.budget)
		if !r.allocate(q, hits, n) {
			return
		}
		r.waiting = r.waiting[1:]
		r.running = append(r.running, q)
		q.stage = isRunning
		if q.outcome.ScheduledUS == Never {
			q.outcome.ScheduledUS = now
			q.outcome.Cached = q.computed
		}
		r.schedule(q, n)
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
			break
		}
		hits = append(hits, b)
	}
	return hits
}

// allocate gives a request the blocks it needs for its hits and n more tokens,
// or reports that they are not there and changes nothing. A hit without owner
// is in the free list and so counts as needed. Blocks that the n tokens fill
// are hashed at once.
func (r *replica) allocate(q *request, hits []int, n int) bool {
	size := r.config.BlockSize
	computed := q.computed + len(hits)*size
	missing := (computed+n+size-1)/size - len(q.blocks) - len(hits)
	idle := 0
	for _, b := range hits {
		if r.cache.blocks[b].owners == 0 {
			idle++
		}
	}
	if missing+idle > len(r.cache.free) {
		return false
	}
	for _, b := range hits {
		r.cache.share(b)
		q.blocks = append(q.blocks, b)
	}
	for range missing {
		q.blocks = append(q.blocks, r.cache.take())
	}
	q.computed = computed
	if r.config.PrefixCaching {
		for i := range min(computed+n, q.length()) / size {
			if b := q.blocks[i]; r.cache.blocks[b].hash == "" {
				r.cache.register(b, q.hash((i+1)*size))
			}
		}
	}
	return true
}

// schedule adds n tokens of a request to the batch. The one uncomputed token of
// a sequence with output is decode. Choice: the context of a request admitted
// with all but one token cached is those cached tokens.
func (r *replica) schedule(q *request, n int) {
	if q.outcome.Generated > 0 && q.length()-q.computed == 1 {
		r.step.Decode++
		r.step.Context += q.computed
	} else {
		r.step.Prefill += n
	}
	r.step.parts = append(r.step.parts, part{q, n})
	r.step.budget -= n
}

// preempt sends the last running request back to the head of the queue, without
// blocks.
func (r *replica) preempt(q *request) {
	r.leave(q)
	r.waiting = slices.Insert(r.waiting, 0, q)
	q.stage = isQueued
	q.outcome.Preemptions++
	r.step.Preempted++
}

// leave takes a request out of running and frees its blocks.
func (r *replica) leave(q *request) {
	i := slices.Index(r.running, q)
	r.running = slices.Delete(r.running, i, i+1)
	r.cache.release(q.blocks)
	q.blocks = nil
	q.computed = 0
}

// finish ends the step in progress at now: tokens appear, then completed
// requests leave in the order of their admission, then aborted ones. It returns
// those that left, for the router to count.
func (r *replica) finish(now int64) []*request {
	var left []*request
	for _, p := range r.step.parts {
		q := p.request
		q.computed += p.tokens
		if q.final() || q.computed < q.length() {
			continue
		}
		q.token(now, r.config.clientDelay())
		if q.final() {
			left = append(left, q)
		}
	}
	// Choice: aborted requests leave in the order of their deadlines, as the
	// engine takes up aborts in the order in which they come.
	left = append(left, r.aborted...)
	r.aborted = nil
	for _, q := range left {
		r.leave(q)
	}
	r.steps = append(r.steps, r.step.Step)
	r.step = nil
	r.cache.check(r.running)
	return left
}

// check panics if the batch breaks a limit.
func (r *replica) check() {
	r.cache.check(r.running)
	tokens := 0
	for _, p := range r.step.parts {
		tokens += p.tokens
		if p.tokens < 1 || p.request.computed+p.tokens > p.request.length() {
			panic("reference: a request computes tokens that it does not have")
		}
	}
	if tokens < 1 || tokens > r.config.MaxNumBatchedTokens || len(r.running) > r.config.MaxNumSeqs {
		panic(fmt.Sprintf("reference: a step of %d tokens and %d sequences", tokens, len(r.running)))
	}
}
