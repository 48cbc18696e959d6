package reference

// stop is what stops the queue of a replica when a batch is formed.
type stop int

const (
	stopNone stop = iota // nothing waits
	stopSlots
	stopBudget
	stopBlocks
	stopAdapters
	stopEncoder
	stops
)

// stoppedBy is what stopped the queue when b was formed.
func (r *replica) stoppedBy(b *batch, now int64) stop {
	if len(r.waiting)+len(r.loading) == 0 {
		return stopNone
	}
	if len(r.running) >= r.config.MaxNumSeqs {
		return stopSlots
	}
	if b.budget <= 0 || b.noPadding || r.cadence.stops {
		return stopBudget
	}
	first := r.tooLarge
	if r.host == nil || b.Preempted > 0 {
		first = r.firstTried()
	}
	switch {
	case first == nil && r.noRoomForItem && !r.lacking:
		return stopEncoder
	case r.passedAdapter && first == nil:
		return stopAdapters
	case first == nil: // all wait for transfers, for their grammars or for their tokens in flight
		return stopNone
	}
	computed := first.computed
	if first.stage != stageLoading {
		computed = r.lookup(first).tokens
	}
	if !r.config.Chunked && r.capChunk(first.length()-computed) > b.budget {
		return stopBudget
	}
	return stopBlocks
}

// countStopped adds the time since the last call, or since the request came, to that of a limit, until its first
// batch.
func (q *request) countStopped(by stop, now int64) {
	if q.outcome.EnqueuedUS == Never || q.outcome.ScheduledUS != Never {
		return
	}
	// The wait for the grammar comes first.
	if until := min(now, q.readyAt); until > q.stoppedAt {
		q.outcome.GrammarUS += until - q.stoppedAt
		q.stoppedAt = until
	}
	q.outcome.StoppedUS[by] += now - max(q.outcome.EnqueuedUS, q.stoppedAt)
	q.stoppedAt = now
}

// countStopped is the same for a request that ends in the queue.
func (s *simulation) countStopped(q *request, now int64) {
	if q.stage >= stageQueued {
		q.countStopped(s.replicas[q.outcome.Replica].stopped, now)
	}
}
