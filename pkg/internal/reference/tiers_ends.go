package reference

import "slices"

// The ends of transfers, and of requests whose blocks are still being moved.

// leaveHost ends the use of the host by a request that still has its blocks, if it has any.
func (r *replica) leaveHost(q *request) {
	if q.ghost {
		q.host = hostUse{}
		return
	}
	r.host.number(q)
	x := leaver{request: q, use: q.host, offered: q.host.offered}
	if slices.Contains(r.running, q) {
		tokens := min(q.computed, q.visible())
		if q.outcome.State == Completed {
			tokens = q.visible() - 1
		}
		x.full, x.blocks = tokens/r.config.BlockSize, slices.Clone(q.tables[0])
		for i := range x.full {
			x.hashes = append(x.hashes, q.hash((i+1)*r.config.BlockSize))
		}
	}
	r.host.left = append(r.host.left, x)
	q.host = hostUse{}
}

// finishWithHost makes the requests leave that are aborted, or done when the step ends at now, and returns them.
func (r *replica) finishWithHost(done []*request, now int64) (left []*request) {
	late := r.host.late
	r.host.late = nil
	for _, q := range r.aborted {
		loadEnd := q.host.loadEnd
		switch {
		case q.stage == stageLoading && loadEnd > r.host.formed:
			r.leaveHost(q)
			r.host.counts.Orphans++
			r.orphans = append(r.orphans, q)
			r.host.unused(q)
			continue
		case q.stage == stageLoading:
			r.leaveHost(q)
			r.free(q)
		case r.keepsBlocks(q):
			continue
		default:
			r.leave(q)
		}
		left = append(left, q)
	}
	r.aborted = nil
	for _, q := range late {
		r.free(q)
		if q.outcome.State != Completed {
			left = append(left, q)
		}
	}
	for _, q := range done {
		r.leaveHost(q)
		switch {
		case q.main != nil:
			r.keep(q)
		case r.ahead.contains(q): // it keeps its blocks until that step has ended
			r.host.counts.Late++
			r.running = slices.DeleteFunc(r.running, func(x *request) bool { return x == q })
			r.host.late = append(r.host.late, q)
		default:
			r.leave(q)
		}
		left = append(left, q)
	}
	left = append(left, r.freeOrphans(now)...)
	for _, q := range r.released {
		r.free(q)
	}
	r.released = nil
	return left
}

// keepsBlocks ends the use of the host by an aborted running request, and reports whether it keeps its blocks until the
// end of the step formed ahead.
func (r *replica) keepsBlocks(q *request) bool {
	late := r.ahead != nil && (r.step.contains(q) || r.ahead.contains(q))
	r.leaveHost(q)
	if late {
		r.host.counts.Late++
		r.running = slices.DeleteFunc(r.running, func(x *request) bool { return x == q })
		r.host.late = append(r.host.late, q)
	}
	return late
}

// leaving are the requests that have ended and not left the replica yet.
func (r *replica) leaving() []*request {
	all := slices.Concat(r.aborted, r.orphans)
	if r.host != nil {
		all = append(all, r.host.late...)
	}
	return slices.DeleteFunc(all, func(q *request) bool { return q.outcome.State == Completed })
}

// freeOrphans frees the blocks of aborted requests whose loads have ended, and returns them.
func (r *replica) freeOrphans(now int64) (freed []*request) {
	for _, q := range slices.Clone(r.orphans) {
		loading := func(t *transfer) bool { return t.Load && !t.Storage && t.request == q && t.EndedUS > now }
		if !slices.ContainsFunc(r.host.transfers, loading) {
			r.orphans = slices.DeleteFunc(r.orphans, func(x *request) bool { return x == q })
			r.free(q)
			freed = append(freed, q)
		}
	}
	return freed
}

// endTransfer ends a transfer at now and returns the requests that leave then.
func (r *replica) endTransfer(t *transfer, now int64) (left []*request) {
	r.host.transfers = slices.DeleteFunc(r.host.transfers, func(x *transfer) bool { return x == t })
	if t.Blocks > 0 { // else a deadline came before its first piece
		r.host.done = append(r.host.done, t.Transfer)
	}
	r.host.now = now
	r.host.endMove(t)
	if r.step == nil {
		left = r.freeOrphans(now)
	}
	return left
}

// failTransfers ends all transfers of a replica that is down or gone.
func (r *replica) failTransfers(now int64) {
	if r.host == nil {
		return
	}
	for _, t := range r.host.transfers {
		if t.AskedUS <= now {
			t.Failed = t.EndedUS > now
			t.StartedUS, t.EndedUS = min(t.StartedUS, now), now
			r.host.done = append(r.host.done, t.Transfer)
			if t.Failed {
				r.host.counts.Failed++
			}
		}
	}
	r.host.transfers = nil
}

// free frees the blocks of a request, unless a transfer reads them.
func (r *replica) free(q *request) {
	if q.read {
		r.held = append(r.held, q)
		return
	}
	for _, blocks := range q.tables {
		r.cache.release(blocks)
	}
	q.tables, q.computed = nil, 0
}

// underWay returns the transfers of a request that have not ended.
func (h *host) underWay(q *request, load bool) (list []*transfer) {
	for _, t := range h.transfers {
		if t.request == q && t.Load == load && !t.Storage {
			list = append(list, t)
		}
	}
	return list
}

// waitForStores makes the next step wait for the stores of a request that loses its blocks.
func (h *host) waitForStores(q *request) {
	for _, t := range h.underWay(q, false) {
		h.wait = max(h.wait, t.EndedUS)
	}
}

// waitForTaken makes the next step wait for stores of blocks that were taken or hit after their owner had left.
func (r *replica) waitForTaken() {
	for _, t := range r.host.transfers {
		if t.Load || !t.request.final() {
			continue
		}
		for _, b := range t.blocks {
			if slices.Contains(r.cache.taken, b) {
				r.host.wait = max(r.host.wait, t.EndedUS)
			}
		}
	}
}
