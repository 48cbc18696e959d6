package anomaly

import "fmt"

// What the router expects to be cached diverges at a replica where, in a window, at
// least divergenceSigns requests enter a batch for which it was wrong, and the tokens by
// which it was, too many or too few, are at least divergenceShare of the tokens
// that it expected or that were there, for each request the more of the two.
// Severity is that share. Of a replica to which little is sent whoever remembers it is
// wrong soon: only thirty seconds count.
const (
	divergenceSigns = 20
	divergenceShare = 0.6
)

const shadowDivergenceDoc = "the router is wrong about a cache: for 20 requests scheduled in 30 s, and by 60 % of the tokens expected or there"

var divergenceRule = rule{signs: divergenceSigns, share: divergenceShare, recent: true, text: func(n sums) string {
	return fmt.Sprintf("%d requests for which %d of %d cached tokens (%s) were expected and not there, or there and not expected", n.signs, n.bad, n.all, percent(n.bad, n.all))
}}

type shadowDivergence struct {
	deaf
	spells spells
}

func newShadowDivergence(tell func(*Episode)) Detector {
	return &shadowDivergence{spells: spells{rule: &divergenceRule, tell: tell}}
}

func (d *shadowDivergence) Admitted(at int64, replica, _ int32, r *Request) {
	most := max(r.Expected, r.Cached)
	d.spells.at(replica).add(sample{at: at, from: at, bad: most - min(r.Expected, r.Cached), all: most, id: r.ID})
}

func (d *shadowDivergence) Close(int64) { d.spells.close() }
