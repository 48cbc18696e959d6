package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/stream"
)

// contention is the actual load of the replicas when a request was routed, by the outcomes of
// all requests, and the work that it waited behind.
type contention struct {
	// queue is the number of requests sent to its replica before it and not yet in a batch,
	// shortest the smallest such number over the replicas that could serve it, at replica
	// shortestAt. -1: it was not routed.
	queue, shortest, shortestAt int32
	// resident and fewestResident are the same for all requests sent there that had not ended.
	resident, fewestResident int32
	occupancy
	ahead tokensAhead
	// recomputed is how many tokens of its own prompt had been computed before.
	recomputed int64
	// interfering is the number of uncached prompt tokens of the requests that entered a batch
	// of its replica between its first token and its last.
	interfering int64
	// inBurst: it arrived in a burst of its tenant; see markBursts.
	inBurst bool
}

// tokensAhead is the work (see request.work) of the requests that entered a batch of the replica
// while a request waited for its first token: all of it, that of classes of lower priority,
// that of the heavy tenant, and the prompt tokens among it that had been computed before.
type tokensAhead struct{ total, lowerPriority, heavyTenant, recomputed int64 }

// work is the number of tokens that a request makes its replica compute.
func (r *request) work() int64 {
	return int64(r.tokens.input-r.tokens.cached) + int64(r.tokens.output)
}

// countQueues reconstructs the length of each queue at each routing decision, and how many
// requests each replica had in total.
func (a *Analyzer) countQueues() {
	a.countAt((*times).leftQueue, func(r *request, own, fewest, at int32) {
		c := &r.contention
		c.queue, c.shortest, c.shortestAt = own, fewest, at
	})
	a.countAt(func(t *times) stream.Micros { return t.ended }, func(r *request, own, fewest, _ int32) {
		r.contention.resident, r.contention.fewestResident = own, fewest
	})
}

// queueChange is a request that enters a replica or leaves it.
type queueChange struct {
	at      stream.Micros
	request int32
	enters  bool
}

// countAt counts for each routed request how many of those sent to its replica before it had not
// left, finds the smallest such count over the replicas that could serve it, and passes both to
// store; -1 and missing for a request that was not routed. A request that leaves at the instant
// of a decision has left before it.
func (a *Analyzer) countAt(left func(*times) stream.Micros, store func(r *request, own, fewest, at int32)) {
	var changes []queueChange
	for i, r := range a.requests {
		store(r, -1, -1, missing)
		if r.times.routed == never || r.replica == missing {
			continue
		}
		changes = append(changes, queueChange{r.times.routed, int32(i), true})
		if at := left(&r.times); at != never && at != r.times.routed {
			changes = append(changes, queueChange{at, int32(i), false})
		}
	}
	slices.SortFunc(changes, func(x, y queueChange) int {
		return cmp.Or(cmp.Compare(x.at, y.at), compareTrue(y.enters, x.enters), cmp.Compare(x.request, y.request))
	})
	counts := make([]int32, len(a.topology.replicas))
	for _, c := range changes {
		r := a.requests[c.request]
		if !c.enters {
			counts[r.replica]--
			continue
		}
		own := counts[r.replica]
		fewest, at := own, r.replica
		for _, n := range a.topology.candidates(a.names.list[r.labels.model], r.replica) {
			if counts[n] < fewest {
				fewest, at = counts[n], n
			}
		}
		store(r, own, fewest, at)
		if left(&r.times) != r.times.routed {
			counts[r.replica]++
		}
	}
}

// compareTrue orders true before false.
func compareTrue(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// priority returns the priority of the request's class, whatever the priority policy assigned.
func (a *Analyzer) priority(r *request) float64 {
	return a.classes[a.names.list[r.labels.class]].Priority
}

// priorities returns the different priorities of the classes of all requests, in ascending order.
func (a *Analyzer) priorities() []float64 {
	seen := map[int32]bool{}
	var all []float64
	for _, r := range a.requests {
		if !seen[r.labels.class] {
			seen[r.labels.class] = true
			all = append(all, a.priority(r))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// measureAhead finds for each request the work that its replica started while it waited.
func (a *Analyzer) measureAhead(heavyTenant int32) {
	scheduled := make([][]int32, len(a.topology.replicas))
	enqueued := make([][]int32, len(a.topology.replicas))
	for i, r := range a.requests {
		if r.replica == missing {
			continue
		}
		if r.times.scheduled != never {
			scheduled[r.replica] = append(scheduled[r.replica], int32(i))
		}
		if r.times.enqueued != never {
			enqueued[r.replica] = append(enqueued[r.replica], int32(i))
		}
	}
	priorities := a.priorities()
	for n := range scheduled {
		totals := a.newRunningTotals(scheduled[n], priorities, heavyTenant)
		for _, i := range enqueued[n] {
			totals.measure(a.requests[i])
		}
	}
}

// runningTotals are sums over the first k requests that entered a batch of one replica, for each k.
type runningTotals struct {
	analyzer    *Analyzer
	heavyTenant int32
	scheduled   []int32 // in order of time
	work        []int64
	heavyWork   []int64
	recomputed  []int64
	prompts     []int64 // uncached prompt tokens
	priorities  []float64
	byPriority  map[float64][]int64
}

func (a *Analyzer) newRunningTotals(scheduled []int32, priorities []float64, heavyTenant int32) *runningTotals {
	slices.SortFunc(scheduled, func(x, y int32) int {
		return cmp.Or(cmp.Compare(a.requests[x].times.scheduled, a.requests[y].times.scheduled), cmp.Compare(x, y))
	})
	sums := func() []int64 { return make([]int64, len(scheduled)+1) }
	t := &runningTotals{analyzer: a, heavyTenant: heavyTenant, scheduled: scheduled, work: sums(), heavyWork: sums(),
		recomputed: sums(), prompts: sums(), priorities: priorities, byPriority: map[float64][]int64{}}
	for _, p := range priorities {
		t.byPriority[p] = sums()
	}
	for k, i := range scheduled {
		r := a.requests[i]
		t.work[k+1] = t.work[k] + r.work()
		t.heavyWork[k+1] = t.heavyWork[k] + t.workIfHeavy(r)
		t.recomputed[k+1] = t.recomputed[k] + r.contention.recomputed
		t.prompts[k+1] = t.prompts[k] + int64(r.tokens.input-r.tokens.cached)
		for _, p := range priorities {
			t.byPriority[p][k+1] = t.byPriority[p][k]
		}
		t.byPriority[a.priority(r)][k+1] += r.work()
	}
	return t
}

// workIfHeavy is the work of r if it is of the heavy tenant.
func (t *runningTotals) workIfHeavy(r *request) int64 {
	if r.labels.tenant == t.heavyTenant {
		return r.work()
	}
	return 0
}

// enteredBefore is how many requests had entered a batch before that time.
func (t *runningTotals) enteredBefore(at stream.Micros) int {
	k, _ := slices.BinarySearchFunc(t.scheduled, at, func(i int32, at stream.Micros) int {
		return cmp.Compare(t.analyzer.requests[i].times.scheduled, at)
	})
	return k
}

// measure finds what r waited behind and what interfered with its decoding.
func (t *runningTotals) measure(r *request) {
	until := r.times.firstTokenOrEnd()
	if until == never {
		return
	}
	if r.times.firstToken != never && r.times.ended != never {
		from, to := t.enteredBefore(r.times.firstToken), t.enteredBefore(r.times.ended)
		r.contention.interfering = t.prompts[to] - t.prompts[from]
	}
	from, to := t.enteredBefore(r.times.enqueued), t.enteredBefore(until)
	ahead := &r.contention.ahead
	*ahead = tokensAhead{total: t.work[to] - t.work[from], heavyTenant: t.heavyWork[to] - t.heavyWork[from],
		recomputed: t.recomputed[to] - t.recomputed[from]}
	own := t.analyzer.priority(r)
	for _, p := range t.priorities {
		if p < own {
			ahead.lowerPriority += t.byPriority[p][to] - t.byPriority[p][from]
		}
	}
	if s := r.times.scheduled; s >= r.times.enqueued && s != never && s < until { // r itself is in the sums
		ahead.total -= r.work()
		ahead.recomputed -= r.contention.recomputed
		ahead.heavyTenant -= t.workIfHeavy(r)
	}
}
