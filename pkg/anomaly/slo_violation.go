package anomaly

import "fmt"

// An SLO class is violated where, of its requests that end in a window, at least
// violationSigns and violationShare miss a target of theirs; one that is rejected or
// times out misses all. What the horizon cuts counts if it has missed a target by then.
// Severity is their share.
const (
	violationSigns = 20
	violationShare = 0.5
)

const sloViolationDoc = "a class misses its targets: 20 and 50 % of its requests that end in 30 s, or of the last 40"

var violationRule = rule{signs: violationSigns, share: violationShare, text: func(n sums) string {
	return fmt.Sprintf("%d of %d requests (%s) missed targets of their class", n.signs, n.all, percent(n.signs, n.all))
}}

type sloViolation struct {
	deaf
	tell    func(*Episode)
	classes map[string]*spell
	order   []*spell // as they came
}

func newSLOViolation(tell func(*Episode)) Detector {
	return &sloViolation{tell: tell, classes: map[string]*spell{}}
}

func (d *sloViolation) Final(at int64, r *Request) {
	if !r.Promised {
		return
	}
	s := d.classes[r.Class]
	if s == nil {
		s = &spell{rule: &violationRule, tell: d.tell, replica: Nowhere, class: r.Class}
		d.classes[r.Class] = s
		d.order = append(d.order, s)
	}
	x := sample{at: at, from: at, all: 1, id: r.ID}
	if !r.Met {
		x.bad = 1
	}
	s.add(x)
}

func (d *sloViolation) Close(int64) {
	for _, s := range d.order {
		s.close()
	}
}
