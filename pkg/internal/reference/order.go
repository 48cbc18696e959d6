package reference

import "slices"

// Order of the wait queue and choice of preemption victims.

// order is the sort key of a request in the wait queue: the lowest is first.
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

// insert puts a request behind its equals in the wait queue.
func (r *replica) insert(q *request) {
	i := 0
	r.dropReceived()
	r.arrivals++
	q.arrival = r.arrivals
	for i < len(r.waiting) && r.config.order(r.waiting[i]) <= r.config.order(q) {
		i++
	}
	r.waiting = slices.Insert(r.waiting, i, q)
}

// requeue puts a preempted request before its equals.
func (r *replica) requeue(q *request) {
	i := 0
	for i < len(r.waiting) && (r.config.order(r.waiting[i]) < r.config.order(q) || r.cameBefore(r.waiting[i], q)) {
		i++
	}
	r.waiting = slices.Insert(r.waiting, i, q)
}

// victim is the request to preempt: the one with the highest preemption score, of equals the one
// admitted last.
func (r *replica) victim() *request {
	worst := r.running[len(r.running)-1]
	for _, q := range slices.Backward(r.running) {
		score, most := r.config.preemptionScore(q), r.config.preemptionScore(worst)
		scored := r.config.Victim != nil || r.config.Preemption == "lowest-priority"
		if score > most || score == most && scored && r.ordersByArrival() && q.arrival > worst.arrival {
			worst = q
		}
	}
	return worst
}

// ordersByArrival reports whether of requests that are equal the one that arrived first is before the others.
func (r *replica) ordersByArrival() bool {
	skips := r.host != nil || r.config.LoRA != nil || r.config.Pipeline != nil || r.grammars.used ||
		r.config.Encoder != nil
	return skips && r.config.Scheduler != "" && r.config.Scheduler != "fcfs"
}

// cameBefore reports whether a request is before one that is equal to it since it arrived before that.
func (r *replica) cameBefore(p, q *request) bool {
	return r.ordersByArrival() && r.config.order(p) == r.config.order(q) && p.arrival < q.arrival
}

// preemptionScore ranks running requests for preemption: the highest is preempted first.
func (c *Config) preemptionScore(q *request) float64 {
	switch {
	case c.Victim != nil:
		return c.Victim(q.Request, q.outcome.Generated, q.computed, len(q.held()))
	case c.Preemption == "lowest-priority":
		return -q.Priority
	}
	return 0
}

// withdraw removes the work for a request from a batch that is being formed and returns the tokens
// to the budget. Blocks that it filled keep their hashes.
func (b *batch) withdraw(q *request, c *Config) {
	i := slices.IndexFunc(b.entries, func(p entry) bool { return p.request == q })
	if i < 0 {
		return
	}
	p := b.entries[i]
	b.entries = slices.Delete(b.entries, i, i+1)
	b.budget += p.tokens + c.budgetSlots()
	q.computed -= p.tokens
	if p.emitsToken {
		q.inFlight -= 1 + p.drafts
	}
	q.drafting.flying -= p.tokens
	q.flying -= p.tokens
	b.Batch = Batch{}
	for _, p := range b.entries {
		b.Drafts += int64(p.drafts)
		if p.isDecode {
			b.decode(p.computed, c.Window)
		} else {
			b.chunk(p.tokens-p.drafts, p.computed, c.Window)
		}
	}
}
