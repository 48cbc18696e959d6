package anomaly

import "fmt"

// A request counts as passed over if, after it has waited passedOverUS in the queue of a replica, a
// request that was enqueued later and has a lower priority enters a batch first. Both the priority
// of the policy and that of the SLO class are compared. First come, first served is never an
// inversion, whatever the priorities.
const passedOverUS = 100_000

// A replica has a priority inversion if requests that were passed over reach the minimum count and
// share of those that leave its queue in a window. The episode starts when the first request was
// passed over. Severity is the share.
var inversionRule = rule{minOccurrences: 5, minShare: 0.05, text: func(n totals) string {
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
	episodeBuilders
	queues [2]queues // by policy priority and by class priority
}

func newPriorityInversion(emit func(*Episode)) Detector {
	d := &priorityInversion{episodeBuilders: episodeBuilders{rule: &inversionRule, emit: emit}}
	return d.observe
}

func (d *priorityInversion) observe(e *Event) {
	switch e.Kind {
	case Enqueued:
		for i, key := range [...]float64{e.Request.Priority, e.Request.ClassPriority} {
			d.queues[i].add(e.Replica, waiter{tag: e.Tag, at: e.At, key: key, id: e.Request.ID})
		}
	case Admitted:
		for i := range d.queues {
			ranks := &d.queues[i]
			if w, place := ranks.find(e.Replica, e.Tag); w != nil {
				ranks.forReplica(e.Replica).mark(place, w.key, e.At-passedOverUS, e.At)
			}
		}
		d.remove(e)
	case Dequeued:
		d.remove(e)
	case Closed:
		for i := range d.queues[0].byReplica {
			for k := range d.queues[0].byReplica[i].all {
				w := &d.queues[0].byReplica[i].all[k]
				if since := min(w.marked, d.queues[1].byReplica[i].all[k].marked); !w.dequeued && since != never {
					d.dequeued(e.At, int32(i), w, since, w.marked != never)
				}
			}
		}
		d.close()
	}
}

func (d *priorityInversion) remove(e *Event) {
	w, ok := d.queues[0].remove(e.Replica, e.Tag)
	other, _ := d.queues[1].remove(e.Replica, e.Tag)
	if !ok {
		return
	}
	for _, w := range [...]*waiter{&w, &other} {
		if w.marked == e.At { // both are scheduled in the same batch
			w.marked = never
		}
	}
	d.dequeued(e.At, e.Replica, &w, min(w.marked, other.marked), w.marked != never)
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
