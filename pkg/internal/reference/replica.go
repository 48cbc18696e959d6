package reference

import "slices"

// replica is one engine: its queue, its batches and its KV memory.
type replica struct {
	config  *Config
	cache   cache
	waiting []*request // the head first
	running []*request // in the order of their last admission
	// step is the one in progress, nil between two.
	step *batch
	// ahead is the batch that was formed when step started and follows it; nil
	// if there is none, and always without Async.
	ahead *batch
	steps []Step
	// seenUS is when clients saw the tokens of the last step.
	seenUS int64
	// aborted are those whose deadline met them in the step in progress, in
	// the order of the deadlines.
	aborted []*request
	// reserved and kept count what Result calls so.
	reserved, kept int
	// undone, yielded and retries too.
	undone, yielded, retries int
	seen                     Ahead
}

// hasWork reports whether a step is to start.
func (r *replica) hasWork() bool {
	return r.ahead != nil || len(r.running)+len(r.waiting) > 0
}

// start begins a step at now, of the batch formed ahead or, if there is none, of
// one formed now. There must be work, and no step in progress. With Async the
// batch behind that step is formed at once; if it computes nothing it is
// dropped, but whom it preempted waits.
func (r *replica) start(now int64) {
	r.step, r.ahead = r.ahead, nil
	if r.step == nil {
		r.step = r.form(now)
		// Who preempts itself as the lowest may leave the batch empty. The next one
		// is formed at once, as the scheduler is asked again at once.
		for len(r.step.parts) == 0 && r.step.Preempted > 0 {
			thrown := r.step.Preempted
			r.step = r.form(now)
			r.step.Preempted += thrown
			r.retries++
		}
	}
	if len(r.step.parts) == 0 {
		panic("reference: a replica with work computes nothing")
	}
	if !slices.ContainsFunc(r.step.parts, func(p part) bool { return !p.request.final() }) {
		r.seen.Deserted++
	}
	r.step.StartUS = now
	r.step.EndUS = now + r.config.stepTime(r.step.Batch)
	if !r.config.Async {
		return
	}
	ahead := r.form(now)
	if len(ahead.parts) > 0 {
		r.ahead = ahead
		return
	}
	r.seen.DroppedVictims += ahead.Preempted
	if slices.ContainsFunc(slices.Concat(r.running, r.waiting), func(q *request) bool { return !q.ending() }) {
		r.seen.Dropped++
	}
}

// finish ends the step in progress at now: tokens appear, then completed
// requests leave in the order of the batch, then aborted ones. It returns those
// that left, for the router to count.
func (r *replica) finish(now int64) []*request {
	var left []*request
	r.seenUS = max(r.seenUS+1, now+r.config.clientDelay(r.step.Batch))
	for _, p := range r.step.parts {
		q := p.request
		if !p.yields || q.final() {
			continue
		}
		q.coming--
		q.token(now, r.seenUS)
		if len(q.blocks) > 0 {
			// The new token has no slot yet; all before it are computed.
			r.seen.Hashes += r.register(q, q.appeared()-1)
		}
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

// leave takes a request out of running, where its blocks become free, or out of
// the queue, where it has none.
func (r *replica) leave(q *request) {
	if i := slices.Index(r.waiting, q); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		return
	}
	i := slices.Index(r.running, q)
	r.running = slices.Delete(r.running, i, i+1)
	slices.Reverse(q.extra) // given away in the order in which they came
	r.cache.release(q.extra)
	r.cache.release(q.blocks)
	q.blocks, q.extra = nil, nil
	q.computed = 0
}

// register gives its hash to every block that the first n tokens of a request
// fill, unless it has it, and returns how many those were.
func (r *replica) register(q *request, n int) (registered int) {
	if !r.config.PrefixCaching {
		return 0
	}
	for i := range n / r.config.BlockSize {
		if b := q.blocks[i]; r.cache.blocks[b].hash == "" {
			r.cache.register(b, q.hash((i+1)*r.config.BlockSize))
			registered++
		}
	}
	return registered
}
