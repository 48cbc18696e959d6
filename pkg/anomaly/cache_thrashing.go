package anomaly

import "fmt"

// The cache of a replica thrashes if blocks are loaded from the tier below it that were stored there shortly before, or
// whose requests have left when the load ends, and such blocks reach the minimum number and the minimum share of the
// loaded ones. Severity is that share.
var thrashingRule = rule{minOccurrences: 1, minBad: 100, minShare: 0.2, windowOnly: true, text: func(n totals) string {
	return fmt.Sprintf("%d of %d blocks loaded from the memory of the host (%s) were stored there at most 10 s before"+
		", or their request had left", n.bad, n.all, percent(n.bad, n.all))
}}

func newCacheThrashing(emit func(*Episode)) Detector {
	episodes := episodeBuilders{rule: &thrashingRule, emit: emit}
	return func(e *Event) {
		switch e.Kind {
		case Loaded:
			x := sample{at: e.At, all: e.Blocks, id: e.Request.ID}
			if e.Again > 0 {
				x.from, x.bad = e.At, e.Again
			}
			episodes.forReplica(e.Replica).add(x)
		case Closed:
			episodes.close()
		}
	}
}
