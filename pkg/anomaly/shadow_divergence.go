package anomaly

import "fmt"

// The router's prefix index diverges from the cache of a replica if, in a window, it was wrong for
// at least divergenceMinCount requests that enter a batch, and wrong by at least divergenceMinShare
// of the tokens. The tokens of a request are the larger of expected and cached; the error is their
// difference, in either direction. Severity is that share. The window is never longer than thirty
// seconds, because the index of a rarely used replica goes stale quickly.
const (
	divergenceMinCount = 20
	divergenceMinShare = 0.6
)

const shadowDivergenceDoc = "the router mispredicts a cache: for at least 20 requests scheduled in 30 s, and for " +
	"60 % of the tokens expected or cached"

var divergenceRule = rule{minOccurrences: divergenceMinCount, minShare: divergenceMinShare, windowOnly: true,
	text: func(n totals) string {
		return fmt.Sprintf("the router mispredicted the cached tokens of %d requests: %d of %d tokens (%s) were wrong",
			n.occurrences, n.bad, n.all, percent(n.bad, n.all))
	}}

type shadowDivergence struct {
	nopDetector
	builders episodeBuilders
}

func newShadowDivergence(emit func(*Episode)) Detector {
	return &shadowDivergence{builders: episodeBuilders{rule: &divergenceRule, emit: emit}}
}

func (d *shadowDivergence) Admitted(at int64, replica, _ int32, r *Request) {
	most := max(r.Expected, r.Cached)
	d.builders.forReplica(replica).add(sample{at: at, from: at, bad: most - min(r.Expected, r.Cached), all: most,
		id: r.ID})
}

func (d *shadowDivergence) Close(int64) { d.builders.close() }
