package anomaly

import "fmt"

// A request is blocked where it waits for blockedUS behind one request that holds up
// the queue of its replica, whose prompt is at least longerTimes as long as its own:
// the first of the queue, which does not fit into the cache where the blocked one
// would all that time, or one in the batch whose prompt takes what each step can
// compute. There are seats in the batch all the time. A replica has blocking where,
// of those that leave its queue in a window, at least blockingSigns and
// blockingShare have been blocked. It begins when the first of them was known to
// be; severity is their share.
const (
	blockedUS     = 2_000_000
	longerTimes   = 8
	blockingSigns = 10
	blockingShare = 0.35
)

const holBlockingDoc = "short requests waited behind a long one: 10 and 35 % of those that leave a queue in 30 s, or of the last 29, had for 2 s, behind a prompt 8 times as long"

var blockingRule = rule{signs: blockingSigns, share: blockingShare, text: func(n sums) string {
	return fmt.Sprintf("%d of %d requests (%s) waited 2 s or more behind one prompt 8 times as long", n.signs, n.all, percent(n.signs, n.all))
}}

type holBlocking struct {
	deaf
	queues queues
	holds  []hold // of replicas
	spells spells
}

// hold is that a request holds up a queue; by is "" if none does. most is the longest
// prompt that would fit all the time.
type hold struct {
	by    string
	since int64
	most  int64
}

func newHOLBlocking(tell func(*Episode)) Detector {
	return &holBlocking{spells: spells{rule: &blockingRule, tell: tell}}
}

func (d *holBlocking) Enqueued(at int64, replica, tag int32, r *Request) {
	d.queues.add(replica, waiter{tag: tag, at: at, key: -float64(r.Input), id: r.ID})
}

func (d *holBlocking) Held(at int64, replica int32, by *Request, room int64) {
	for int(replica) >= len(d.holds) {
		d.holds = append(d.holds, hold{})
	}
	h := &d.holds[replica]
	if h.by != "" && at-h.since >= blockedUS {
		q := d.queues.at(replica)
		q.mark(len(q.all), -float64(h.most)-0.5, at-blockedUS, at)
	}
	switch {
	case by == nil:
		*h = hold{}
	case by.ID == h.by:
		h.most = min(h.most, room)
	default:
		*h = hold{by.ID, at, min(room, by.Input/longerTimes)}
	}
}

func (d *holBlocking) Admitted(at int64, replica, tag int32, _ *Request) { d.Left(at, replica, tag) }

func (d *holBlocking) Left(at int64, replica, tag int32) {
	if w, ok := d.queues.remove(replica, tag); ok {
		d.spells.leave(at, replica, &w, w.marked, false)
	}
}

func (d *holBlocking) Close(at int64) {
	for i := range d.queues.of {
		for k := range d.queues.of[i].all {
			if w := &d.queues.of[i].all[k]; !w.left && w.marked != never {
				d.spells.leave(at, int32(i), w, w.marked, false)
			}
		}
	}
	d.spells.close()
}
