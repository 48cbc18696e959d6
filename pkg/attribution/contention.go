package attribution

import (
	"cmp"
	"maps"
	"slices"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// contention is the actual load of the replicas when a request was routed, by the outcomes of
// all requests, and the work of others that started while it waited.
type contention struct {
	// queue is the number of requests sent to its replica before it and not yet in a batch,
	// shortest the smallest such number over the replicas that could serve it, at replica
	// shortestAt. -1: it was not routed.
	queue, shortest, shortestAt int32
	// underway is how many of queue had not joined the queue of the engine: a router does not see these there.
	underway int32
	// resident and fewestResident are the same for all requests sent there that had not ended.
	resident, fewestResident int32
	// inBurst: it arrived in a burst of its tenant; see markBursts.
	inBurst bool
	// busySince is when the queue of its replica was last found empty before it, or by it.
	busySince stream.Micros
	occupancy
	ahead tokensAhead
	// recomputed is how many tokens of its own prompt had been computed before.
	recomputed int64
	// interfering is the number of uncached prompt tokens of the requests that entered a batch
	// of its replica between its first token and its last.
	interfering int64
	// interferingRecomputed is how many of these tokens had been computed before.
	interferingRecomputed int64
}

// tokensAhead is the work (see request.ownWork) of the requests that entered a batch of the replica
// while a request waited for its first token: all of it, that of classes of lower priority,
// that of the heavy tenant, and the prompt tokens among it that had been computed before.
type tokensAhead struct{ total, lowerPriority, heavyTenant, recomputed int64 }

// work is the number of tokens that a request makes replicas compute.
func (r *request) work() int64 {
	return int64(r.tokens.input-r.tokens.cached) + int64(r.tokens.output)
}

// ownPrompt is the number of prompt tokens that the replica of r computed, which does not compute those that come from
// a prefill replica, and ownWork is with the output.
func (r *request) ownPrompt() int64 {
	if r.prefill != nil && !r.isRecomputed() {
		return 0
	}
	return int64(r.tokens.input - r.tokens.cached)
}

func (r *request) ownWork() int64 { return r.ownPrompt() + int64(r.tokens.output) }

// countQueues reconstructs the length of each queue at each routing decision, and how many
// requests each replica had in total.
func (a *Analyzer) countQueues() {
	routed := make([]*request, 0, a.requests.len())
	for _, r := range a.requests.all() {
		c := &r.contention
		c.queue, c.shortest, c.shortestAt, c.resident, c.fewestResident = -1, -1, missing, -1, -1
		if r.routed() != never && r.replica != missing {
			routed = append(routed, r)
		}
	}
	slices.SortStableFunc(routed, func(x, y *request) int { return cmp.Compare(x.routed(), y.routed()) })
	busySince := make([]stream.Micros, len(a.topology.replicas))
	q := newQueueCounts(a, routed)
	q.begin((*request).leftQueue)
	a.countAt(q, func(r *request, own int32) {
		c := &r.contention
		if c.queue, c.shortest, c.shortestAt = own, own, r.replica; own == 0 {
			busySince[r.replica] = r.routed()
		}
		c.busySince = busySince[r.replica]
	}, func(r *request, fewest, at int32) { r.contention.shortest, r.contention.shortestAt = fewest, at })
	q.begin(func(r *request) stream.Micros { return min(r.enqueued(), r.ended()) })
	for _, r := range routed {
		r.contention.underway = q.add(r)
	}
	q.begin((*request).ended)
	a.countAt(q, func(r *request, own int32) { r.contention.resident = own },
		func(r *request, fewest, _ int32) {
			c := &r.contention
			c.fewestResident = fewest
			if r.prefill != nil { // it is in another queue first
				c.queue, c.shortest, c.shortestAt = -1, -1, missing
			}
		})
}

// countAt passes to store how many of those sent to its replica before each routed request had not left, and to
// storeFewest the smallest such count over the replicas that could serve it. Requests that share their row have no
// such count. A request that leaves at the instant of a decision has left before it.
func (a *Analyzer) countAt(q *queueCounts, store func(r *request, own int32),
	storeFewest func(r *request, fewest, at int32)) {
	a.startFleet()
	for _, r := range q.routed {
		own := q.add(r)
		store(r, own)
		if r.shared {
			continue
		}
		a.fleet.until(r.routed())
		fewest, at := own, r.replica
		for _, n := range a.topology.candidates(a.names.list[r.labels.model], r.replica) {
			if n != r.replica && q.count(n, r.routed()) < fewest && a.fleet.serves(n) {
				fewest, at = q.counts[n], n
			}
		}
		storeFewest(r, fewest, at)
	}
}

// queueCounts counts the requests that were sent to each replica and have not left, at times in order.
type queueCounts struct {
	routed []*request // in the order of the decisions
	leaves func(*request) stream.Micros
	counts []int32
	// all has the times at which those sent to each replica leave, in order, and left those of them that have not come.
	all, left [][]stream.Micros
}

func newQueueCounts(a *Analyzer, routed []*request) *queueCounts {
	n := len(a.topology.replicas)
	q := &queueCounts{routed: routed, counts: make([]int32, n), all: make([][]stream.Micros, n),
		left: make([][]stream.Micros, n)}
	for _, r := range routed {
		q.counts[r.replica]++
	}
	for n, count := range q.counts {
		q.all[n] = make([]stream.Micros, 0, count)
	}
	return q
}

// begin starts from the first decision. leaves is when a request leaves, which may be never.
func (q *queueCounts) begin(leaves func(*request) stream.Micros) {
	q.leaves = leaves
	clear(q.counts)
	for n := range q.all {
		q.all[n] = q.all[n][:0]
	}
	for _, r := range q.routed {
		if at := leaves(r); at != never && at != r.routed() {
			q.all[r.replica] = append(q.all[r.replica], at)
		}
	}
	for n := range q.all {
		slices.Sort(q.all[n])
		q.left[n] = q.all[n]
	}
}

// count is how many requests are at replica n at a time.
func (q *queueCounts) count(n int32, at stream.Micros) int32 {
	for len(q.left[n]) > 0 && q.left[n][0] <= at {
		q.left[n] = q.left[n][1:]
		q.counts[n]--
	}
	return q.counts[n]
}

// add counts a routed request. It returns how many are at its replica without it.
func (q *queueCounts) add(r *request) int32 {
	n := q.count(r.replica, r.routed())
	if q.leaves(r) != r.routed() {
		q.counts[r.replica]++
	}
	return n
}

// priority returns the priority of the request's class, whatever the priority policy assigned.
func (a *Analyzer) priority(r *request) float64 {
	return a.classes[a.names.list[r.labels.class]].Priority
}

// replicaBuffers are those of measureReplicas, which the replicas share.
type replicaBuffers struct {
	queued, started, long, joined []*request
	events                        occupancyEvents
	copies                        sideBySide
	prefills, ofLong              progress
	work                          startedWork
	changes, scratch              []stat.Keyed
	rates                         []float64
	sums                          []prefixSums
	byCompany                     samplesByCompany
	met                           metReplica
}

// keyed returns two empty buffers for n samples.
func (b *replicaBuffers) keyed(n int) (samples, scratch []stat.Keyed) {
	b.changes, b.scratch = slices.Grow(b.changes[:0], n), slices.Grow(b.scratch[:0], n)
	return b.changes, b.scratch[:n]
}

// measureReplicas finds what happened at each replica: what started while requests waited, and what slowed them down.
// It takes the replicas one after the other.
func (a *Analyzer) measureReplicas() {
	b := replicaBuffers{}
	a.stats.prefillRates = make([]float64, len(a.topology.replicas))
	units, shared := a.speedUnits(), a.sharedLoads()
	for i, requests := range a.byReplica() {
		n := int32(i)
		if a.measuresLost && b.met.measure(a, n, requests, &units[n], &b.byCompany) {
			continue
		}
		b.queued, b.started = b.queued[:0], b.started[:0]
		// Else they are nearly side by side.
		apart := 4*len(requests) <= a.requests.len() || a.measuresLost
		own := requests
		if apart {
			own = b.copies.of(requests)
		}
		for _, r := range own {
			if r.enqueued() != never {
				b.queued = append(b.queued, r)
			}
			if r.scheduled() != never {
				b.started = append(b.started, r)
			}
		}
		a.measureOccupancy(n, b.queued, &b.events)
		b.prefills.of(b.queued, &b)
		if !a.measuresLost {
			a.measurePrompts(b.queued, &b)
			a.measureOvertaking(b.queued, &b)
		}
		a.measureInterference(n, b.queued, &b.prefills)
		sortByEntry(b.started)
		a.measureAhead(&b)
		a.measureLoads(n, b.started, shared)
		if a.measuresLost {
			a.measureSpeed(&units[n], own, &b.byCompany)
		}
		if apart {
			b.copies.giveBack(requests)
		}
	}
	if a.measuresLost {
		a.compareSpeeds(units)
	}
}

// sideBySide has copies of the requests of one replica that are side by side in memory: they stay in the cache of the
// processor, which makes what takes them several times twice as fast.
type sideBySide struct {
	requests []request
	derived  []derived
	pointers []*request
}

// of copies requests until the next call.
func (s *sideBySide) of(requests []*request) []*request {
	s.requests, s.derived = slices.Grow(s.requests[:0], len(requests)), slices.Grow(s.derived[:0], len(requests))
	s.pointers = s.pointers[:0]
	for i, r := range requests {
		s.requests, s.derived = append(s.requests, *r), append(s.derived, *r.derived)
		s.requests[i].derived = &s.derived[i]
		s.pointers = append(s.pointers, &s.requests[i])
	}
	return s.pointers
}

// giveBack stores what was found about the copies of requests.
func (s *sideBySide) giveBack(requests []*request) {
	for i, r := range requests {
		if r.outputUS = s.requests[i].outputUS; !r.shared {
			*r.derived = s.derived[i]
		}
	}
}

// countByReplica returns how many requests were sent to each replica.
func (a *Analyzer) countByReplica() []int {
	counts := make([]int, len(a.topology.replicas))
	for _, r := range a.requests.all() {
		if r.replica != missing {
			counts[r.replica]++
		}
	}
	return counts
}

// byReplica are the requests that were sent to each replica.
func (a *Analyzer) byReplica() [][]*request {
	counts := a.countByReplica()
	all := make([][]*request, len(counts))
	for n, count := range counts {
		all[n] = make([]*request, 0, count)
	}
	for _, r := range a.requests.all() {
		if r.replica != missing {
			all[r.replica] = append(all[r.replica], r)
		}
	}
	return all
}

// measureAhead finds for each request in the queue of a replica the work that started while it waited. Started requests
// are in the order in which they entered a batch.
func (a *Analyzer) measureAhead(b *replicaBuffers) {
	b.work.of(b.started, a.stats.ranks, a.stats.heavyTenant)
	for _, r := range b.queued {
		b.work.measure(r)
	}
}

// priorityRanks finds runStats.ranks.
func (a *Analyzer) priorityRanks() map[int32]int {
	priorities, known := map[int32]float64{}, make([]bool, len(a.names.list))
	for _, r := range a.requests.all() {
		if class := r.labels.class; !known[class] {
			known[class], priorities[class] = true, a.priority(r)
		}
	}
	ordered := slices.Compact(slices.Sorted(maps.Values(priorities)))
	ranks := map[int32]int{}
	for class, p := range priorities {
		ranks[class] = slices.Index(ordered, p)
	}
	return ranks
}

// startedWork are sums over the first k requests that entered a batch of one replica, for each k.
type startedWork struct {
	heavyTenant int32
	ranks       map[int32]int // of priorities, by class
	at          []stream.Micros
	work        []tokensAhead
	prompts     []int64   // uncached prompt tokens
	lower       [][]int64 // the work of requests of lower priority, by rank
	// The places of times of the last request that was measured.
	joined, begun, ended nearby
}

// sortByEntry sorts requests by when they entered a batch.
func sortByEntry(all []*request) {
	slices.SortFunc(all, func(x, y *request) int { return cmp.Compare(x.scheduled(), y.scheduled()) })
}

// of makes w the sums over other requests.
func (w *startedWork) of(started []*request, ranks map[int32]int, heavyTenant int32) {
	n := len(started) + 1
	*w = startedWork{heavyTenant: heavyTenant, ranks: ranks, at: slices.Grow(w.at[:0], n),
		work: append(slices.Grow(w.work[:0], n), tokensAhead{}), prompts: append(slices.Grow(w.prompts[:0], n), 0),
		lower: slices.Grow(w.lower[:0], len(ranks))[:len(ranks)]}
	for rank, lower := range w.lower {
		w.lower[rank] = append(slices.Grow(lower[:0], n), 0)[:n]
	}
	for k, r := range started {
		w.at = append(w.at, r.scheduled())
		sum, own := w.work[k], w.own(r)
		w.work = append(w.work, tokensAhead{total: sum.total + own.total,
			heavyTenant: sum.heavyTenant + own.heavyTenant, recomputed: sum.recomputed + own.recomputed})
		w.prompts = append(w.prompts, w.prompts[k]+r.ownPrompt())
		for rank, lower := range w.lower {
			lower[k+1] = lower[k]
			if ranks[r.labels.class] < rank {
				lower[k+1] += r.ownWork()
			}
		}
	}
}

// own is the work of r alone.
func (w *startedWork) own(r *request) tokensAhead {
	own := tokensAhead{total: r.ownWork(), recomputed: min(r.contention.recomputed, r.ownPrompt())}
	if r.labels.tenant == w.heavyTenant {
		own.heavyTenant = own.total
	}
	return own
}

// measure finds what started while r waited and what interfered with its decoding.
func (w *startedWork) measure(r *request) {
	until := r.firstTokenOrEnd()
	if until == never {
		return
	}
	// How many requests had entered a batch before r got its first token or ended, and before it joined the queue.
	to := w.begun.find(w.at, until)
	if r.firstToken() != never && r.ended() != never {
		end := w.ended.find(w.at, r.ended())
		r.contention.interfering = w.prompts[end] - w.prompts[to]
		r.contention.interferingRecomputed = w.work[end].recomputed - w.work[to].recomputed
	}
	if r.shared {
		return
	}
	from := w.joined.find(w.at, r.enqueued())
	begin, end, lower := &w.work[from], &w.work[to], w.lower[w.ranks[r.labels.class]]
	ahead := tokensAhead{total: end.total - begin.total, lowerPriority: lower[to] - lower[from],
		heavyTenant: end.heavyTenant - begin.heavyTenant, recomputed: end.recomputed - begin.recomputed}
	if s := r.scheduled(); s >= r.enqueued() && s != never && s < until { // r itself is in the sums
		own := w.own(r)
		ahead.total -= own.total
		ahead.recomputed -= own.recomputed
		ahead.heavyTenant -= own.heavyTenant
	}
	r.contention.ahead = ahead
}
