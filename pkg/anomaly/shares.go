package anomaly

import "fmt"

// A replica has a preemption storm if preemptions reach the minimum count, and the minimum share of
// preemptions and first admissions together. Severity is that share.
var stormRule = rule{minOccurrences: 10, minShare: 0.3, text: func(n totals) string {
	return fmt.Sprintf("%d preemptions while %d requests were scheduled for the first time", n.occurrences,
		n.all-n.occurrences)
}}

func newPreemptionStorm(emit func(*Episode)) Detector {
	episodes := episodeBuilders{rule: &stormRule, emit: emit}
	return func(e *Event) {
		switch e.Kind {
		case Admitted:
			episodes.forReplica(e.Replica).add(sample{at: e.At, all: 1})
		case Preempted:
			episodes.forReplica(e.Replica).add(sample{at: e.At, from: e.At, bad: 1, all: 1, id: e.Request.ID})
		case Closed:
			episodes.close()
		}
	}
}

// The router's prefix index diverges from the cache of a replica if the requests for which it was
// wrong reach the minimum count of those that enter a batch, and its errors the minimum share of the
// tokens. The tokens of a request are the larger of expected and cached; the error is their
// difference, in either direction. Severity is that share. The window is never longer than thirty
// seconds, because the index of a rarely used replica goes stale quickly.
var divergenceRule = rule{minOccurrences: 20, minShare: 0.6, windowOnly: true, text: func(n totals) string {
	return fmt.Sprintf("the router mispredicted the cached tokens of %d requests: %d of %d tokens (%s) were wrong",
		n.occurrences, n.bad, n.all, percent(n.bad, n.all))
}}

func newShadowDivergence(emit func(*Episode)) Detector {
	episodes := episodeBuilders{rule: &divergenceRule, emit: emit}
	return func(e *Event) {
		switch r := e.Request; e.Kind {
		case Admitted:
			most := max(r.Expected, r.Cached)
			episodes.forReplica(e.Replica).add(sample{at: e.At, from: e.At, bad: most - min(r.Expected, r.Cached),
				all: most, id: r.ID})
		case Closed:
			episodes.close()
		}
	}
}

// An SLO class is violated if requests that miss a target reach the minimum count and share of its
// requests that finish in a window. A rejected or timed-out request misses all targets. A request that the horizon
// cuts counts if it has missed a target by then. Severity is the share.
var violationRule = rule{minOccurrences: 20, minShare: 0.5, text: func(n totals) string {
	return fmt.Sprintf("%d of %d requests (%s) missed targets of their class", n.occurrences, n.all,
		percent(n.occurrences, n.all))
}}

func newSLOViolation(emit func(*Episode)) Detector {
	classes := map[string]*episodeBuilder{}
	var order []*episodeBuilder // in order of first appearance
	return func(e *Event) {
		switch r := e.Request; {
		case e.Kind == Finished && r.HasTargets:
			s := classes[r.Class]
			if s == nil {
				s = &episodeBuilder{rule: &violationRule, emit: emit, replica: NoReplica, class: r.Class}
				classes[r.Class] = s
				order = append(order, s)
			}
			x := sample{at: e.At, from: e.At, all: 1, id: r.ID}
			if !r.MetTargets {
				x.bad = 1
			}
			s.add(x)
		case e.Kind == Closed:
			for _, s := range order {
				s.close()
			}
		}
	}
}
