package sim

import (
	"math"

	"blis/pkg/des"
	"blis/pkg/link"
)

// poolLink are the links between two pools. next is the time of the first of its pending events.
type poolLink struct {
	fair    *link.Fair
	next    des.Time
	pending int
	// due are transfers that may start their next pieces now, ready those whose last piece has started, so that their
	// requests may run.
	due, ready []int32
}

// schedule schedules the next change of l, which has the number i among those of this kind of event, unless an event
// before it is pending.
func (l *poolLink) schedule(q *des.Queue, kind uint8, i int) {
	l.scheduleAt(q, kind, i, l.fair.Next())
}

// scheduleAt schedules a change of l at a time, unless an event before it is pending.
func (l *poolLink) scheduleAt(q *des.Queue, kind uint8, i int, at des.Time) {
	if at < l.next {
		l.next = at
		l.pending++
		q.Push(des.NewEvent(at, kind, int64(i), int32(i)))
	}
}

// change returns the transfers that end at now, when a change of l is due.
func (l *poolLink) change(now des.Time) []int32 {
	l.pending--
	if l.next == now {
		l.next = math.MaxInt64
	}
	if l.fair.Next() != now {
		return nil
	}
	return l.fair.Advance(now)
}
