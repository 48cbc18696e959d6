package attribution

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"blis/pkg/stream"
)

// The choice of a prefill replica, the second stage of routing in a disaggregated deployment.

var prefillImbalance = Condition{Name: "prefill_imbalance", Component: routingComponent, rank: rankMechanism,
	parts: anyPart,
	Doc: "at least half of the time to its first token, or of a lost request's time, was the queue of a prefill" +
		" replica with at least 4 requests more than that of another one, which had at most one",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("sent to a prefill replica with a queue of %s requests, shortest %s, and waited %s of %s ms"+
			" to the first token there (means)", p.mean(prefillQueue), p.mean(shortestPrefillQueue),
			p.mean(prefillWaitMS), p.mean(ttftMS))
	},
	Hint:   "choose prefill replicas by their queues (policies.prefill_routing)",
	change: choosePrefill("least-loaded"),
	others: []remedy{
		{"choose the prefill replica by prefixes, queues and KV usage (weighted)", choosePrefill("weighted")},
		{"add prefill replicas", (*proposal).morePrefill}},
	isAbsolute: true,
	holds:      func(a *Analyzer, r *request) bool { return r.prefillUneven() && r.takesHalf(r.prefillWaitUS()) }}

// idleQueue is the length of a queue at which a replica has room for another request at once, or nearly.
const idleQueue = 1

// prefillUneven reports whether the queue of the prefill replica of r was much longer than that of another one.
func (r *request) prefillUneven() bool {
	p := r.prefill
	return p != nil && p.shortest <= idleQueue && p.queue >= p.shortest+longerBy
}

func prefillQueue(r *request) float64 {
	if r.prefill == nil {
		return 0
	}
	return float64(r.prefill.queue)
}

func shortestPrefillQueue(r *request) float64 {
	if r.prefill == nil {
		return 0
	}
	return float64(r.prefill.shortest)
}

// choosePrefill proposes a policy that chooses prefill replicas.
func choosePrefill(name string) propose {
	return func(x *proposal) []Change {
		if x.topology.policy("prefill_routing") == name {
			return nil
		}
		return []Change{x.set("policies.prefill_routing", map[string]any{"type": name})}
	}
}

// countPrefillQueues finds how many requests were in the queue of each request's prefill replica when that was chosen,
// and in the shortest one of its pool. Pools with replicas that come and go are left out.
func (a *Analyzer) countPrefillQueues() {
	pools := map[string][]*request{}
	for _, r := range a.requests.all() {
		if p := r.prefill; p != nil && r.routed() != never && r.replica != missing {
			id := a.topology.replicas[r.replica].deployment
			pools[id] = append(pools[id], r)
		}
	}
	for i := range a.topology.Deployments {
		d := &a.topology.Deployments[i]
		changes := func(c stateChange) bool {
			return a.topology.replicas[c.replica].deployment == stream.PrefillPool(d.ID)
		}
		if d.Prefill != nil && d.Prefill.Replicas > 1 && !slices.ContainsFunc(a.fleet.changes, changes) {
			countPrefillQueues(pools[d.ID], d.Prefill.Replicas)
		}
	}
}

// countPrefillQueues is Analyzer.countPrefillQueues for the requests of a pool of n replicas.
func countPrefillQueues(routed []*request, n int) {
	left := func(r *request) stream.Micros {
		if at := r.orEnd(r.prefill.scheduled); at != never {
			return at
		}
		return math.MaxInt64
	}
	slices.SortStableFunc(routed, func(x, y *request) int { return cmp.Compare(x.routed(), y.routed()) })
	leaving := slices.Clone(routed)
	slices.SortStableFunc(leaving, func(x, y *request) int { return cmp.Compare(left(x), left(y)) })
	counts := make([]int32, n)
	for _, r := range routed {
		for ; len(leaving) > 0 && left(leaving[0]) < r.routed(); leaving = leaving[1:] {
			counts[leaving[0].prefill.replica]--
		}
		p := r.prefill
		p.queue, p.shortest = counts[p.replica], slices.Min(counts)
		counts[p.replica]++
	}
}
