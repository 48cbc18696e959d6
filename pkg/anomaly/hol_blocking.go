package anomaly

import "fmt"

// A request counts as blocked after it has waited blockedUS behind one request that blocks the queue
// of its replica and whose prompt is at least lengthRatio times as long. The blocking request is
// either the head of the queue, which does not fit into the KV cache although the blocked one would
// have fitted all that time, or a running request whose prompt uses the whole token budget of each
// step. Batch slots are free all the time.
const (
	blockedUS   = 2_000_000
	lengthRatio = 8
)

// A replica has head-of-line blocking if blocked requests reach the minimum count and share of those
// that leave its queue in a window. The episode starts when the first request counted as blocked.
// Severity is the share.
var blockingRule = rule{minOccurrences: 10, minShare: 0.35, text: func(n totals) string {
	return fmt.Sprintf("%d of %d requests (%s) waited 2 s or more behind one prompt 8 times as long", n.occurrences,
		n.all, percent(n.occurrences, n.all))
}}

type holBlocking struct {
	episodeBuilders
	queues queues
	heads  []headOfLine // by replica
}

// headOfLine is the request that currently blocks a queue; id is "" if none does. maxInput is the
// longest prompt that would have fitted throughout.
type headOfLine struct {
	id       string
	since    int64
	maxInput int64
}

func newHOLBlocking(emit func(*Episode)) Detector {
	d := &holBlocking{episodeBuilders: episodeBuilders{rule: &blockingRule, emit: emit}}
	return d.observe
}

func (d *holBlocking) observe(e *Event) {
	switch e.Kind {
	case Enqueued:
		d.queues.add(e.Replica, waiter{tag: e.Tag, at: e.At, key: -float64(e.Request.Input), id: e.Request.ID})
	case HeadOfLineBlocked:
		d.blocked(e)
	case Admitted, Dequeued:
		if w, ok := d.queues.remove(e.Replica, e.Tag); ok {
			d.dequeued(e.At, e.Replica, &w, w.marked, false)
		}
	case Closed:
		for i := range d.queues.byReplica {
			for k := range d.queues.byReplica[i].all {
				if w := &d.queues.byReplica[i].all[k]; !w.dequeued && w.marked != never {
					d.dequeued(e.At, int32(i), w, w.marked, false)
				}
			}
		}
		d.close()
	}
}

func (d *holBlocking) blocked(e *Event) {
	for int(e.Replica) >= len(d.heads) {
		d.heads = append(d.heads, headOfLine{})
	}
	h := &d.heads[e.Replica]
	if h.id != "" && e.At-h.since >= blockedUS {
		q := d.queues.forReplica(e.Replica)
		q.mark(len(q.all), -float64(h.maxInput)-0.5, e.At-blockedUS, e.At)
	}
	switch by := e.Request; {
	case by == nil:
		*h = headOfLine{}
	case by.ID == h.id:
		h.maxInput = min(h.maxInput, e.Room)
	default:
		*h = headOfLine{by.ID, e.At, min(e.Room, by.Input/lengthRatio)}
	}
}
