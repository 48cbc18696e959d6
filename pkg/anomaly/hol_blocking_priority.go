package anomaly

import "fmt"

// A request counts as blocked by lower priorities if a request of lower priority, which waited in the
// same queue while it did, completes while it still waits: the lower one was scheduled and ran to its
// end before it. Which of the two was enqueued first does not matter, unlike for an inversion, and
// requests that ran before the blocked one was enqueued do not count. Both the priority of the policy
// and that of the SLO class are compared.

// A replica has head-of-line blocking by lower priorities if blocked requests reach the minimum count
// and share of those that leave its queue in a window. The episode starts when the first of the lower
// requests completed. Severity is the share.
var lowerFirstRule = rule{minOccurrences: 10, minShare: 0.05, text: func(n totals) string {
	of := "of lower priority"
	switch byClass := n.occurrences - n.byPolicy; {
	case n.byPolicy == 0:
		of = "of a lower SLO class, but not of a lower priority,"
	case byClass > 0:
		of += fmt.Sprintf(" (for %d of them only of a lower SLO class)", byClass)
	}
	return fmt.Sprintf("%d of %d requests (%s) waited while a request %s from the same queue completed", n.occurrences,
		n.all, percent(n.occurrences, n.all), of)
}}

// holBlockingPriority finds, whenever a request completes, the waiting requests of higher priority
// that were enqueued before it was scheduled. Each is found once, so n requests cost n log n.
type holBlockingPriority struct {
	rankedQueues
	running []scheduled // by number of the request
}

// scheduled is a request in a batch: its replica, priorities, and when it was first scheduled. id
// is "" if the request of this number has not been scheduled.
type scheduled struct {
	id         string
	replica    int32
	at         int64
	priorities [2]float64
}

func newHOLBlockingPriority(emit func(*Episode)) Detector {
	d := &holBlockingPriority{rankedQueues: newRankedQueues(&lowerFirstRule, emit)}
	return d.observe
}

func (d *holBlockingPriority) observe(e *Event) {
	switch e.Kind {
	case Enqueued:
		d.add(e)
	case Admitted:
		d.remove(e)
		for int(e.Tag) >= len(d.running) {
			d.running = append(d.running, scheduled{})
		}
		d.running[e.Tag] = scheduled{e.Request.ID, e.Replica, e.At, e.Request.priorities()}
	case Dequeued:
		d.remove(e)
	case Finished:
		d.finished(e)
	case Closed:
		d.finish(e)
	}
}

func (d *holBlockingPriority) finished(e *Event) {
	if int(e.Tag) >= len(d.running) || d.running[e.Tag].id != e.Request.ID {
		return
	}
	r := d.running[e.Tag]
	d.running[e.Tag] = scheduled{}
	if !e.Request.Completed {
		return
	}
	for i, key := range r.priorities {
		q := d.queues[i].forReplica(r.replica)
		q.mark(len(q.all), key, r.at-1, e.At)
	}
}
