package anomaly

import "fmt"

// A replica has a storm where, in a window, at least stormSigns times a request loses
// its place in the batch, and these are at least stormShare of them and of the
// requests that enter the batch for the first time, together. Severity is that share.
const (
	stormSigns = 10
	stormShare = 0.3
)

const preemptionStormDoc = "a replica throws out who runs: 10 preemptions in 30 s, or in the last 34 of them and the first admissions, and 30 % of these"

var stormRule = rule{signs: stormSigns, share: stormShare, text: func(n sums) string {
	return fmt.Sprintf("%d preemptions while %d requests were scheduled for the first time", n.signs, n.all-n.signs)
}}

type preemptionStorm struct {
	deaf
	spells spells
}

func newPreemptionStorm(tell func(*Episode)) Detector {
	return &preemptionStorm{spells: spells{rule: &stormRule, tell: tell}}
}

func (d *preemptionStorm) Admitted(at int64, replica, _ int32, _ *Request) {
	d.spells.at(replica).add(sample{at: at, all: 1})
}

func (d *preemptionStorm) Preempted(at int64, replica int32, r *Request) {
	d.spells.at(replica).add(sample{at: at, from: at, bad: 1, all: 1, id: r.ID})
}

func (d *preemptionStorm) Close(int64) { d.spells.close() }
