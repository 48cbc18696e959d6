package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/stream"
)

// load is what was true of the replicas when a request was routed, by the outcomes of
// all requests, and whose work it waited behind.
type load struct {
	// queue is how many were sent to its replica before it and were in no batch yet;
	// shortest is the least of that over the replicas that could serve it, at the
	// replica freest. -1: it was not routed.
	queue, shortest, freest int32
	// busy and idlest are the same of all that were sent there and had not ended.
	busy, idlest int32
	room
	// ahead are the tokens (prompts less what was cached, and answers) of the requests
	// that entered a batch of its replica while it waited for its first token: all, those
	// of classes of lower priority, those of the tenant that has most of all work, and
	// prompt tokens among them that had been computed before.
	ahead, aheadLower, aheadHeavy, aheadAgain int64
	// again are tokens of its own prompt that had been computed before.
	again int64
	// beside are prompt tokens, less what was cached, of the requests that entered a batch
	// of its replica between its first token and its last.
	beside int64
	// burst: its tenant sent ten or more in the last second, and three times as many as
	// in a second of the last minute.
	burst bool
}

// change is a request that enters a replica's queue, or leaves it for a batch or for
// good.
type change struct {
	at    stream.Micros
	row   int32
	enter bool
}

// queues reconstructs how long each queue was at each routing decision, and how many
// requests each replica had in all.
func (in *Analyzer) queues() {
	in.count((*row).left, func(r *row, own, least, at int32) { r.queue, r.shortest, r.freest = own, least, at })
	in.count(func(r *row) stream.Micros { return r.ended }, func(r *row, own, least, _ int32) { r.busy, r.idlest = own, least })
}

// count finds for each request that was routed how many of those that were sent to its
// replica before it had not left there, the least of that over the replicas that could
// serve it, and where that was; for others -1 and nowhere. What leaves at an instant has
// left before the decisions of that instant.
func (in *Analyzer) count(left func(*row) stream.Micros, found func(r *row, own, least, at int32)) {
	var all []change
	for i := range in.rows {
		r := in.rows[i]
		found(r, -1, -1, nowhere)
		if r.routed == never || r.replica == nowhere {
			continue
		}
		all = append(all, change{r.routed, int32(i), true})
		if at := left(r); at != never && at != r.routed {
			all = append(all, change{at, int32(i), false})
		}
	}
	slices.SortFunc(all, func(a, b change) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		if a.enter != b.enter {
			return compareTrue(b.enter, a.enter)
		}
		return cmp.Compare(a.row, b.row)
	})
	there := make([]int32, len(in.plan.replicas))
	for _, c := range all {
		r := in.rows[c.row]
		if !c.enter {
			there[r.replica]--
			continue
		}
		own := there[r.replica]
		least, at := own, r.replica
		for _, n := range in.plan.peers(in.names.list[r.model], r.replica) {
			if there[n] < least {
				least, at = there[n], n
			}
		}
		found(r, own, least, at)
		if left(r) != r.routed {
			there[r.replica]++
		}
	}
}

// left is when r left the queue of its replica, for a batch or for good.
func (r *row) left() stream.Micros {
	if r.scheduled != never {
		return r.scheduled
	}
	return r.ended
}

// work are the tokens that a request makes a replica compute.
func (r *row) work() int64 { return int64(r.input-r.cached) + int64(r.output) }

// heavy is the tenant with the most work, if that is at least 30 % of all, and 1.25 times
// an even part or twice its part of the requests; nowhere if there is none such.
func (in *Analyzer) heavy() int32 {
	work, sent, total := map[int32]int64{}, map[int32]int64{}, int64(0)
	for i := range in.rows {
		r := in.rows[i]
		work[r.tenant] += r.work()
		sent[r.tenant]++
		total += r.work()
	}
	at := nowhere
	for n := range in.names.list {
		if w := work[int32(n)]; w > 0 && (at == nowhere || w > work[at]) {
			at = int32(n)
		}
	}
	if at == nowhere || in.names.list[at] == "" || len(work) < 2 {
		return nowhere
	}
	part := float64(work[at]) / float64(total)
	if part < 0.3 || part < 1.25/float64(len(work)) && part < 2*float64(sent[at])/float64(len(in.rows)) {
		return nowhere
	}
	return at
}

// behind finds for each request whose work its replica took on while it waited.
func (in *Analyzer) behind(heavy int32) {
	at := make([][]int32, len(in.plan.replicas))
	for i := range in.rows {
		if r := in.rows[i]; r.replica != nowhere && r.scheduled != never {
			at[r.replica] = append(at[r.replica], int32(i))
		}
	}
	waits := make([][]int32, len(in.plan.replicas))
	for i := range in.rows {
		if r := in.rows[i]; r.replica != nowhere && r.enqueued != never {
			waits[r.replica] = append(waits[r.replica], int32(i))
		}
	}
	for n := range at {
		in.behindAt(at[n], waits[n], heavy)
	}
}

// behindAt is behind of one replica: scheduled are the requests that entered a batch of
// it, waited those that entered its queue.
func (in *Analyzer) behindAt(scheduled, waited []int32, heavy int32) {
	slices.SortFunc(scheduled, func(a, b int32) int {
		return cmp.Or(cmp.Compare(in.rows[a].scheduled, in.rows[b].scheduled), cmp.Compare(a, b))
	})
	// Sums before each place: of all, of the heavy tenant, of each priority.
	n := len(scheduled)
	all, theirs, again, prompts := make([]int64, n+1), make([]int64, n+1), make([]int64, n+1), make([]int64, n+1)
	priorities, byPriority := in.priorities(), map[float64][]int64{}
	for _, p := range priorities {
		byPriority[p] = make([]int64, n+1)
	}
	for k, i := range scheduled {
		r := in.rows[i]
		w := r.work()
		all[k+1], theirs[k+1], again[k+1], prompts[k+1] = all[k]+w, theirs[k], again[k]+r.again, prompts[k]+int64(r.input-r.cached)
		if r.tenant == heavy {
			theirs[k+1] += w
		}
		for _, p := range priorities {
			byPriority[p][k+1] = byPriority[p][k]
		}
		byPriority[in.priority(r)][k+1] += w
	}
	place := func(t stream.Micros) int {
		k, _ := slices.BinarySearchFunc(scheduled, t, func(i int32, t stream.Micros) int { return cmp.Compare(in.rows[i].scheduled, t) })
		return k
	}
	for _, i := range waited {
		r := in.rows[i]
		until := r.first
		if until == never {
			until = r.ended
		}
		if until == never {
			continue
		}
		if r.first != never && r.ended != never {
			r.beside = prompts[place(r.ended)] - prompts[place(r.first)]
		}
		from, to := place(r.enqueued), place(until)
		r.ahead, r.aheadHeavy, r.aheadAgain = all[to]-all[from], theirs[to]-theirs[from], again[to]-again[from]
		own := in.priority(r)
		for _, p := range priorities {
			if p < own {
				r.aheadLower += byPriority[p][to] - byPriority[p][from]
			}
		}
		if r.scheduled >= r.enqueued && r.scheduled != never && r.scheduled < until { // its own
			r.ahead -= r.work()
			r.aheadAgain -= r.again
			if r.tenant == heavy {
				r.aheadHeavy -= r.work()
			}
		}
	}
}

// priority is that of a request's class, whatever the policy gave it.
func (in *Analyzer) priority(r *row) float64 { return in.classes[in.names.list[r.class]].Priority }

// priorities are those of the classes that requests name, in ascending order.
func (in *Analyzer) priorities() []float64 {
	seen := map[int32]bool{}
	var all []float64
	for i := range in.rows {
		r := in.rows[i]
		if !seen[r.class] {
			seen[r.class] = true
			all = append(all, in.priority(r))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// bursts marks the requests that came in a burst of their tenant: the rate of the last
// second is above three times that of the last minute, and it is ten requests or more.
// That is the rule of the signal tenant.burst, but that the minute is as long as the run
// has lasted: one that is in its first three seconds has none.
func (in *Analyzer) bursts() {
	byTenant := map[int32][]int32{}
	begin := never
	for i, r := range in.rows {
		byTenant[r.tenant] = append(byTenant[r.tenant], int32(i))
		if begin == never || r.arrival < begin {
			begin = r.arrival
		}
	}
	for _, of := range byTenant {
		slices.SortFunc(of, func(a, b int32) int {
			return cmp.Or(cmp.Compare(in.rows[a].arrival, in.rows[b].arrival), cmp.Compare(a, b))
		})
		second, minute := 0, 0
		for k, i := range of {
			at := in.rows[i].arrival
			for in.rows[of[second]].arrival <= at-1e6 {
				second++
			}
			for in.rows[of[minute]].arrival <= at-60e6 {
				minute++
			}
			last, long := int64(k+1-second), int64(k+1-minute)
			in.rows[i].burst = last >= 10 && last*int64(min(60e6, at-begin)) > 3e6*long
		}
	}
}
