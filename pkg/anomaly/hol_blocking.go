package anomaly

import "fmt"

// A request counts as blocked after it has waited blockedUS behind one request that blocks the queue
// of its replica and whose prompt is at least lengthRatio times as long. The blocking request is
// either the head of the queue, which does not fit into the KV cache although the blocked one would
// have fitted all that time, or a running request whose prompt uses the whole token budget of each
// step. Batch slots are free all the time. A replica has head-of-line blocking if, of the requests
// that leave its queue in a window, at least blockingMinCount and blockingMinShare were blocked. The
// episode starts when the first request counted as blocked. Severity is the share.
const (
	blockedUS        = 2_000_000
	lengthRatio      = 8
	blockingMinCount = 10
	blockingMinShare = 0.35
)

const holBlockingDoc = "short requests wait behind a long one: at least 10 requests and 35 % of those that leave a " +
	"queue in 30 s (or of the last 29) waited 2 s behind a prompt 8 times as long"

var blockingRule = rule{minOccurrences: blockingMinCount, minShare: blockingMinShare, text: func(n totals) string {
	return fmt.Sprintf("%d of %d requests (%s) waited 2 s or more behind one prompt 8 times as long", n.occurrences,
		n.all, percent(n.occurrences, n.all))
}}

type holBlocking struct {
	nopDetector
	queues   queues
	heads    []headOfLine // by replica
	builders episodeBuilders
}

// headOfLine is the request that currently blocks a queue; id is "" if none does. maxInput is the
// longest prompt that would have fitted throughout.
type headOfLine struct {
	id       string
	since    int64
	maxInput int64
}

func newHOLBlocking(emit func(*Episode)) Detector {
	return &holBlocking{builders: episodeBuilders{rule: &blockingRule, emit: emit}}
}

func (d *holBlocking) Enqueued(at int64, replica, tag int32, r *Request) {
	d.queues.add(replica, waiter{tag: tag, at: at, key: -float64(r.Input), id: r.ID})
}

func (d *holBlocking) HeadOfLineBlocked(at int64, replica int32, by *Request, room int64) {
	for int(replica) >= len(d.heads) {
		d.heads = append(d.heads, headOfLine{})
	}
	h := &d.heads[replica]
	if h.id != "" && at-h.since >= blockedUS {
		q := d.queues.forReplica(replica)
		q.mark(len(q.all), -float64(h.maxInput)-0.5, at-blockedUS, at)
	}
	switch {
	case by == nil:
		*h = headOfLine{}
	case by.ID == h.id:
		h.maxInput = min(h.maxInput, room)
	default:
		*h = headOfLine{by.ID, at, min(room, by.Input/lengthRatio)}
	}
}

func (d *holBlocking) Admitted(at int64, replica, tag int32, _ *Request) {
	d.Dequeued(at, replica, tag)
}

func (d *holBlocking) Dequeued(at int64, replica, tag int32) {
	if w, ok := d.queues.remove(replica, tag); ok {
		d.builders.dequeued(at, replica, &w, w.marked, false)
	}
}

func (d *holBlocking) Close(at int64) {
	for i := range d.queues.byReplica {
		for k := range d.queues.byReplica[i].all {
			if w := &d.queues.byReplica[i].all[k]; !w.dequeued && w.marked != never {
				d.builders.dequeued(at, int32(i), w, w.marked, false)
			}
		}
	}
	d.builders.close()
}
