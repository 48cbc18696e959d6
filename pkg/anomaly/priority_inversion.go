package anomaly

import "fmt"

// A request counts as passed over if, after it has waited passedOverUS in the queue of a replica, a
// request that was enqueued later and has a lower priority enters a batch first. Both the priority
// of the policy and that of the SLO class are compared. A replica has a priority inversion if, of
// the requests that leave its queue in a window, at least inversionMinCount and inversionMinShare
// were passed over. The episode starts when the first request was passed over. Severity is the
// share.
//
// First come, first served is never an inversion, whatever the priorities.
const (
	passedOverUS      = 100_000
	inversionMinCount = 5
	inversionMinShare = 0.05
)

const priorityInversionDoc = "later requests of lower priority or of a lower SLO class are scheduled first: at " +
	"least 5 " +
	"and 5 % of the requests that leave a queue in 30 s (or of the last 100) are passed over " +
	"after waiting 100 ms"

var inversionRule = rule{minOccurrences: inversionMinCount, minShare: inversionMinShare, text: func(n totals) string {
	of := "a later request of lower priority was scheduled"
	switch byClass := n.occurrences - n.byPolicy; {
	case n.byPolicy == 0:
		of = "a later request of a lower SLO class, but not of a lower priority, was scheduled"
	case byClass > 0:
		of += fmt.Sprintf(" (for %d of them only of a lower SLO class)", byClass)
	}
	return fmt.Sprintf("%d of %d requests (%s) had waited 100 ms or more when %s", n.occurrences, n.all,
		percent(n.occurrences, n.all), of)
}}

// priorityInversion finds, whenever a request is scheduled, the earlier requests of higher priority.
// Each is found once, so n requests cost n log n.
type priorityInversion struct {
	nopDetector
	queues   [2]queues // by policy priority and by class priority
	builders episodeBuilders
}

func newPriorityInversion(emit func(*Episode)) Detector {
	return &priorityInversion{builders: episodeBuilders{rule: &inversionRule, emit: emit}}
}

func (d *priorityInversion) Enqueued(at int64, replica, tag int32, r *Request) {
	for i, key := range [...]float64{r.Priority, r.ClassPriority} {
		d.queues[i].add(replica, waiter{tag: tag, at: at, key: key, id: r.ID})
	}
}

func (d *priorityInversion) Admitted(at int64, replica, tag int32, _ *Request) {
	for i := range d.queues {
		ranks := &d.queues[i]
		if w, place := ranks.find(replica, tag); w != nil {
			ranks.forReplica(replica).mark(place, w.key, at-passedOverUS, at)
		}
	}
	d.Dequeued(at, replica, tag)
}

func (d *priorityInversion) Dequeued(at int64, replica, tag int32) {
	w, ok := d.queues[0].remove(replica, tag)
	other, _ := d.queues[1].remove(replica, tag)
	if !ok {
		return
	}
	for _, w := range [...]*waiter{&w, &other} {
		if w.marked == at { // both are scheduled in the same batch
			w.marked = never
		}
	}
	d.builders.dequeued(at, replica, &w, min(w.marked, other.marked), w.marked != never)
}

func (d *priorityInversion) Close(at int64) {
	for i := range d.queues[0].byReplica {
		for k := range d.queues[0].byReplica[i].all {
			w := &d.queues[0].byReplica[i].all[k]
			if since := min(w.marked, d.queues[1].byReplica[i].all[k].marked); !w.dequeued && since != never {
				d.builders.dequeued(at, int32(i), w, since, w.marked != never)
			}
		}
	}
	d.builders.close()
}

// dequeued records that a request left its queue. It is an occurrence if the request was marked;
// byPolicy says that the policy's own priority was violated.
func (s *episodeBuilders) dequeued(at int64, replica int32, w *waiter, marked int64, byPolicy bool) {
	x := sample{at: at, from: marked, all: 1, id: w.id, byPolicy: byPolicy}
	if marked != never {
		x.bad = 1
	}
	s.forReplica(replica).add(x)
}
