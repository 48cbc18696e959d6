package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/stream"
)

// Window is what happened in an interval of time.
type Window struct {
	// Arrived of the Offered requests arrived in it; Judged of these could have lost something,
	// Lost did.
	Arrived, Offered, Judged, Lost int64
	// RunJudged and RunLost are of the whole run, whose requests arrived over SpanUS.
	RunJudged, RunLost int64
	SpanUS             int64
	// Replicas are those that were sent requests in it, prefill replicas as well, those with the most losses first.
	Replicas []WindowReplica
	// Tenants and Classes are those of the requests that arrived in it, those whose share grew
	// most first.
	Tenants, Classes []WindowGroup
	// Patterns counts its losing requests by the pattern that explains them.
	Patterns  []PatternCount
	Anomalies []stream.Anomaly
}

// WindowReplica counts the requests sent to a replica in a window, and those of them that lost; LongestQueue is the
// longest that one of them found, -1 where queues are not known.
type WindowReplica struct {
	Replica                  string
	Sent, Lost, LongestQueue int64
}

// WindowGroup is a tenant or class: how many of its requests arrived in the window and in the run.
type WindowGroup struct {
	Name         string
	Arrived, All int64
}

// PatternCount is a number of requests that a pattern explains.
type PatternCount struct {
	Condition *Condition
	N         int64
}

// Window describes the time from one instant to before another. It is called after Find.
func (a *Analyzer) Window(f *Findings, from, until stream.Micros) *Window {
	a.measure()
	w := &Window{Replicas: a.windowReplicas(from, until)}
	tenants, classes := make([]WindowGroup, len(a.names.list)), make([]WindowGroup, len(a.names.list))
	byPattern := make([]int64, len(f.Patterns))
	first, last := never, never
	for _, r := range a.requests.all() {
		at := r.arrival()
		if first == never || at < first {
			first = at
		}
		last = max(last, at)
		judged, lost := int64(0), int64(0)
		if r.verdict.judged {
			judged = 1
		}
		if r.lost() {
			lost = 1
		}
		w.Offered++
		w.RunJudged += judged
		w.RunLost += lost
		tenants[r.labels.tenant].All++
		classes[r.labels.class].All++
		if at < from || at >= until {
			continue
		}
		w.Arrived++
		w.Judged += judged
		w.Lost += lost
		tenants[r.labels.tenant].Arrived++
		classes[r.labels.class].Arrived++
		if r.lost() && r.verdict.pattern >= 0 {
			byPattern[r.verdict.pattern]++
		}
	}
	w.SpanUS = int64(last - first)
	w.Tenants, w.Classes = a.sortByGrowth(tenants, w), a.sortByGrowth(classes, w)
	for i, n := range byPattern {
		if n > 0 {
			w.Patterns = append(w.Patterns, PatternCount{f.Patterns[i].Condition, n})
		}
	}
	for i := range a.episodes {
		if e := &a.episodes[i]; e.StartUS < until && e.EndUS >= from {
			w.Anomalies = append(w.Anomalies, *e)
		}
	}
	return w
}

// windowReplicas are the replicas that were sent requests from one instant to before another,
// those with the most losses first.
func (a *Analyzer) windowReplicas(from, until stream.Micros) (all []WindowReplica) {
	replicas := make([]WindowReplica, len(a.topology.replicas))
	for n := range replicas {
		replicas[n] = WindowReplica{Replica: a.Replica(int32(n)), LongestQueue: -1}
	}
	prefills := map[string]int{} // indices in replicas
	for _, r := range a.requests.all() {
		at := r.routed()
		if at == never || at < from || at >= until || r.replica == missing {
			continue
		}
		replicas[r.replica].add(r, r.contention.queue)
		if r.prefill == nil {
			continue
		}
		name := a.prefillReplica(r)
		n, known := prefills[name]
		if !known {
			n = len(replicas)
			prefills[name], replicas = n, append(replicas, WindowReplica{Replica: name, LongestQueue: -1})
		}
		replicas[n].add(r, r.prefill.queue)
	}
	all = slices.DeleteFunc(replicas, func(x WindowReplica) bool { return x.Sent == 0 })
	slices.SortStableFunc(all, func(x, y WindowReplica) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(y.LongestQueue, x.LongestQueue))
	})
	return all
}

// add counts r, which found this many requests in the queue.
func (x *WindowReplica) add(r *request, queue int32) {
	x.Sent++
	x.LongestQueue = max(x.LongestQueue, int64(queue))
	if r.lost() {
		x.Lost++
	}
}

// sortByGrowth are the groups with arrivals in the window, those first whose share of the window
// is furthest above their share of the run.
func (a *Analyzer) sortByGrowth(groups []WindowGroup, w *Window) (all []WindowGroup) {
	for n, name := range a.names.list {
		if g := groups[n]; name != "" && g.Arrived > 0 {
			all = append(all, WindowGroup{name, g.Arrived, g.All})
		}
	}
	slices.SortStableFunc(all, func(x, y WindowGroup) int {
		return cmp.Compare(y.Arrived*w.Offered-y.All*w.Arrived, x.Arrived*w.Offered-x.All*w.Arrived)
	})
	return all
}
