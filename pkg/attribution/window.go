package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/stream"
)

// Window is what happened from one time to another.
type Window struct {
	// Arrived of the Offered requests arrived then; Judged of those could lose, Lost did.
	Arrived, Offered, Judged, Lost int64
	// AllJudged and AllLost are of the whole run, which offered requests for SpanUS.
	AllJudged, AllLost int64
	SpanUS             int64
	// Replicas are those that were sent something then, those with the most losses first.
	Replicas []WindowReplica
	// Tenants and Classes are what parts of the requests that arrived, and of all, they
	// have; those that grew most first.
	Tenants, Classes []WindowPart
	// Patterns is how many of those that lost each pattern of the run explains.
	Patterns  []Count
	Anomalies []stream.Anomaly
}

// WindowReplica is a replica during a window: how many requests were sent there, how
// many of those lost, and the longest queue that one of them found.
type WindowReplica struct {
	Replica             string
	Sent, Lost, Longest int64
}

// WindowPart is a tenant or class: how many of its requests arrived in the window, and
// in all.
type WindowPart struct {
	Name    string
	Arrived int64
	All     int64
}

// Window looks at the time from one instant to before another. It is called after Find.
func (in *Analyzer) Window(f *Findings, from, until stream.Micros) *Window {
	w := &Window{Offered: int64(len(in.rows)), Replicas: in.replicasWithin(from, until)}
	tenants, classes := map[int32]*WindowPart{}, map[int32]*WindowPart{}
	counts := make([]int64, len(f.Patterns))
	first, last := never, never
	for i := range in.rows {
		r := in.rows[i]
		within := r.arrival >= from && r.arrival < until
		if first == never || r.arrival < first {
			first = r.arrival
		}
		last = max(last, r.arrival)
		in.part(tenants, r.tenant, within)
		in.part(classes, r.class, within)
		if r.judged {
			w.AllJudged++
		}
		if r.loss > 0 {
			w.AllLost++
		}
		if !within {
			continue
		}
		w.Arrived++
		if r.judged {
			w.Judged++
		}
		if r.loss > 0 {
			w.Lost++
			if in.by[i] >= 0 {
				counts[in.by[i]]++
			}
		}
	}
	w.SpanUS = int64(last - first)
	w.Tenants, w.Classes = in.grown(tenants, w), in.grown(classes, w)
	for n, c := range counts {
		if c > 0 {
			w.Patterns = append(w.Patterns, Count{f.Patterns[n].Condition, c})
		}
	}
	for i := range in.episodes {
		if e := &in.episodes[i]; e.StartUS < until && e.EndUS >= from {
			w.Anomalies = append(w.Anomalies, *e)
		}
	}
	return w
}

// replicasWithin are those that were sent something from one instant to before another,
// those with the most losses first.
func (in *Analyzer) replicasWithin(from, until stream.Micros) (all []WindowReplica) {
	replicas := make([]WindowReplica, len(in.plan.replicas))
	for i := range in.rows {
		r := in.rows[i]
		if r.routed == never || r.routed < from || r.routed >= until || r.replica == nowhere {
			continue
		}
		at := &replicas[r.replica]
		at.Sent++
		at.Longest = max(at.Longest, int64(r.queue))
		if r.loss > 0 {
			at.Lost++
		}
	}
	for n := range replicas {
		if replicas[n].Sent > 0 {
			replicas[n].Replica = in.Replica(int32(n))
			all = append(all, replicas[n])
		}
	}
	slices.SortStableFunc(all, func(a, b WindowReplica) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Longest, a.Longest))
	})
	return all
}

func (in *Analyzer) part(of map[int32]*WindowPart, n int32, within bool) {
	if in.names.list[n] == "" {
		return
	}
	if of[n] == nil {
		of[n] = &WindowPart{Name: in.names.list[n]}
	}
	of[n].All++
	if within {
		of[n].Arrived++
	}
}

// grown are the parts of which a request arrived in the window, first those whose share
// of the window is most above their share of the run.
func (in *Analyzer) grown(of map[int32]*WindowPart, w *Window) (all []WindowPart) {
	for n := range in.names.list {
		if p := of[int32(n)]; p != nil && p.Arrived > 0 {
			all = append(all, *p)
		}
	}
	slices.SortStableFunc(all, func(a, b WindowPart) int {
		return cmp.Compare(b.Arrived*w.Offered-b.All*w.Arrived, a.Arrived*w.Offered-a.All*w.Arrived)
	})
	return all
}
