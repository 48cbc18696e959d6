package anomaly

import "fmt"

// A request is passed over where, after it has waited in the queue of a replica for
// passedOverUS, one enters a batch before it that came into the queue after it and is
// of lower priority: the policy gave it a lower one, or its class has. A replica has an
// inversion where, of those that leave the queue in a window, at least
// inversionSigns and inversionShare have been passed over. It begins when the
// first of them was; severity is their share.
//
// That first come is first served is no inversion, whoever comes first.
const (
	passedOverUS   = 100_000
	inversionSigns = 5
	inversionShare = 0.05
)

const priorityInversionDoc = "requests of lower priority, or of a lower SLO class, that came later were scheduled first: 5 and 5 % of those that leave a queue in 30 s, or of the last 100, had waited 100 ms by then"

var inversionRule = rule{signs: inversionSigns, share: inversionShare, text: func(n sums) string {
	of := "one of lower priority that came later was scheduled"
	switch byClass := n.signs - n.given; {
	case n.given == 0:
		of = "one of a lower SLO class, but of no lower priority, that came later was scheduled"
	case byClass > 0:
		of += fmt.Sprintf(" (for %d of them only of a lower SLO class)", byClass)
	}
	return fmt.Sprintf("%d of %d requests (%s) waited 100 ms or more when %s", n.signs, n.all, percent(n.signs, n.all), of)
}}

// priorityInversion asks, whenever a request is scheduled, who of those before it has a
// higher priority. Each is found once, so that n requests cost n log n.
type priorityInversion struct {
	deaf
	ranks  [2]queues // by the policy's priorities, and by the classes'
	spells spells
}

func newPriorityInversion(tell func(*Episode)) Detector {
	return &priorityInversion{spells: spells{rule: &inversionRule, tell: tell}}
}

func (d *priorityInversion) Enqueued(at int64, replica, tag int32, r *Request) {
	for i, key := range [...]float64{r.Priority, r.ClassPriority} {
		d.ranks[i].add(replica, waiter{tag: tag, at: at, key: key, id: r.ID})
	}
}

func (d *priorityInversion) Admitted(at int64, replica, tag int32, _ *Request) {
	for i := range d.ranks {
		ranks := &d.ranks[i]
		if w, place := ranks.find(replica, tag); w != nil {
			ranks.at(replica).mark(place, w.key, at-passedOverUS, at)
		}
	}
	d.Left(at, replica, tag)
}

func (d *priorityInversion) Left(at int64, replica, tag int32) {
	w, ok := d.ranks[0].remove(replica, tag)
	other, _ := d.ranks[1].remove(replica, tag)
	if !ok {
		return
	}
	for _, w := range [...]*waiter{&w, &other} {
		if w.marked == at { // they are scheduled together
			w.marked = never
		}
	}
	d.spells.leave(at, replica, &w, min(w.marked, other.marked), w.marked != never)
}

func (d *priorityInversion) Close(at int64) {
	for i := range d.ranks[0].of {
		for k := range d.ranks[0].of[i].all {
			w := &d.ranks[0].of[i].all[k]
			if since := min(w.marked, d.ranks[1].of[i].all[k].marked); !w.left && since != never {
				d.spells.leave(at, int32(i), w, since, w.marked != never)
			}
		}
	}
	d.spells.close()
}

// leave tells that a request has left its queue, which is a sign if it was marked: a
// given one if by the policy's own priorities.
func (s *spells) leave(at int64, replica int32, w *waiter, marked int64, given bool) {
	x := sample{at: at, from: marked, all: 1, id: w.id, given: given}
	if marked != never {
		x.bad = 1
	}
	s.at(replica).add(x)
}
