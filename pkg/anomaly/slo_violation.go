package anomaly

import "fmt"

// An SLO class is violated if, of its requests that finish in a window, at least violationMinCount
// and violationMinShare miss a target. A rejected or timed-out request misses all targets. A request
// that the horizon cuts counts if it has missed a target by then. Severity is the share.
const (
	violationMinCount = 20
	violationMinShare = 0.5
)

const sloViolationDoc = "a class misses its SLO targets: at least 20 requests and 50 % of those that finish in 30 s " +
	"(or of the last 40)"

var violationRule = rule{minOccurrences: violationMinCount, minShare: violationMinShare, text: func(n totals) string {
	return fmt.Sprintf("%d of %d requests (%s) missed targets of their class", n.occurrences, n.all,
		percent(n.occurrences, n.all))
}}

type sloViolation struct {
	nopDetector
	emit    func(*Episode)
	classes map[string]*episodeBuilder
	order   []*episodeBuilder // in order of first appearance
}

func newSLOViolation(emit func(*Episode)) Detector {
	return &sloViolation{emit: emit, classes: map[string]*episodeBuilder{}}
}

func (d *sloViolation) Finished(at int64, r *Request) {
	if !r.HasTargets {
		return
	}
	s := d.classes[r.Class]
	if s == nil {
		s = &episodeBuilder{rule: &violationRule, emit: d.emit, replica: NoReplica, class: r.Class}
		d.classes[r.Class] = s
		d.order = append(d.order, s)
	}
	x := sample{at: at, from: at, all: 1, id: r.ID}
	if !r.MetTargets {
		x.bad = 1
	}
	s.add(x)
}

func (d *sloViolation) Close(int64) {
	for _, s := range d.order {
		s.close()
	}
}
