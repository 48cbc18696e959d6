package anomaly

import "fmt"

// Prefill/decode backpressure is an anomaly if the requests that it held back for 100 ms or longer reach the minimum
// count and the minimum share of those routed. Severity is that share. The pool that is short is the one where, when
// most of these requests began to wait, most requests on their way to the decode replicas were: the prefill pool if
// their prompts were not computed yet, else the decode pool.
var backpressureRule = rule{minOccurrences: 10, minShare: 0.2, text: func(n totals) string {
	pool := "decode"
	if 2*n.byPrefill > n.occurrences {
		pool = "prefill"
	}
	return fmt.Sprintf("backpressure held back %d of %d requests (%s) for 100 ms or longer: the %s pool is short",
		n.occurrences, n.all, percent(n.occurrences, n.all), pool)
}}

// heldBackUS is how long backpressure must hold back a request.
const heldBackUS = 100_000

func newBackpressure(emit func(*Episode)) Detector {
	builder := episodeBuilder{rule: &backpressureRule, emit: emit, replica: NoReplica}
	return func(e *Event) {
		switch e.Kind {
		case Routed:
			x := sample{at: e.At, from: e.At - e.HeldUS, all: 1, id: e.Request.ID}
			if e.HeldUS >= heldBackUS {
				x.bad, x.byPrefill = 1, e.ByPrefill
			}
			builder.add(x)
		case Closed:
			builder.close()
		}
	}
}
