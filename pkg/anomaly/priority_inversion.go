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
type priorityInversion struct{ rankedQueues }

func newPriorityInversion(emit func(*Episode)) Detector {
	d := &priorityInversion{newRankedQueues(&inversionRule, emit)}
	return d.observe
}

func (d *priorityInversion) observe(e *Event) {
	switch e.Kind {
	case Enqueued:
		d.add(e)
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
		d.finish(e)
	}
}
