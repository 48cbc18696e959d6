package anomaly

import "fmt"

// A replica has a preemption storm if a window contains at least stormMinCount preemptions and they
// are at least stormMinShare of the preemptions and first admissions together. Severity is that
// share.
const (
	stormMinCount = 10
	stormMinShare = 0.3
)

const preemptionStormDoc = "a replica preempts running requests repeatedly: at least 10 preemptions and 30 % of " +
	"preemptions plus first admissions, in 30 s (or of the last 34)"

var stormRule = rule{minOccurrences: stormMinCount, minShare: stormMinShare, text: func(n totals) string {
	return fmt.Sprintf("%d preemptions while %d requests were scheduled for the first time", n.occurrences,
		n.all-n.occurrences)
}}

type preemptionStorm struct {
	nopDetector
	builders episodeBuilders
}

func newPreemptionStorm(emit func(*Episode)) Detector {
	return &preemptionStorm{builders: episodeBuilders{rule: &stormRule, emit: emit}}
}

func (d *preemptionStorm) Admitted(at int64, replica, _ int32, _ *Request) {
	d.builders.forReplica(replica).add(sample{at: at, all: 1})
}

func (d *preemptionStorm) Preempted(at int64, replica int32, r *Request) {
	d.builders.forReplica(replica).add(sample{at: at, from: at, bad: 1, all: 1, id: r.ID})
}

func (d *preemptionStorm) Close(int64) { d.builders.close() }
