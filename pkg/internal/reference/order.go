package reference

import "slices"

// Order of the wait queue and choice of whom to preempt.

// order is where a request stands in the wait queue: the lowest is first.
func (c *Config) order(q *request) float64 {
	switch c.Scheduler {
	case "priority-fcfs":
		return -q.Priority
	case "reverse-priority":
		return q.Priority
	case "sjf":
		return float64(q.Predicted)
	}
	return 0
}

// enter puts a request behind its equals in the wait queue.
func (r *replica) enter(q *request) {
	i := 0
	for i < len(r.waiting) && r.config.order(r.waiting[i]) <= r.config.order(q) {
		i++
	}
	r.waiting = slices.Insert(r.waiting, i, q)
}

// reenter puts a preempted request before its equals.
func (r *replica) reenter(q *request) {
	i := 0
	for i < len(r.waiting) && r.config.order(r.waiting[i]) < r.config.order(q) {
		i++
	}
	r.waiting = slices.Insert(r.waiting, i, q)
}

// victim is whom a batch preempts: the request that yields most readily, of
// equals the one that was admitted last.
func (r *replica) victim() *request {
	worst := r.running[len(r.running)-1]
	for _, q := range slices.Backward(r.running) {
		if r.config.yields(q) > r.config.yields(worst) {
			worst = q
		}
	}
	return worst
}

// yields is how readily a running request is preempted.
func (c *Config) yields(q *request) float64 {
	switch {
	case c.Victim != nil:
		return c.Victim(q.Request, q.outcome.Generated, q.computed, len(q.blocks)+len(q.extra))
	case c.Preemption == "lowest-priority":
		return -q.Priority
	}
	return 0
}

// withdraw takes what a batch that is being formed computes of a request out of
// it, and gives the tokens back to the budget. The blocks that it filled keep
// their hashes.
func (b *batch) withdraw(q *request, window int) {
	i := slices.IndexFunc(b.parts, func(p part) bool { return p.request == q })
	if i < 0 {
		return
	}
	p := b.parts[i]
	b.parts = slices.Delete(b.parts, i, i+1)
	b.budget += p.tokens
	q.computed -= p.tokens
	if p.yields {
		q.coming--
	}
	b.Batch = Batch{}
	for _, p := range b.parts {
		if p.decodes {
			b.decode(p.past, window)
		} else {
			b.chunk(p.tokens, p.past, window)
		}
	}
}
