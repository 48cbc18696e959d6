// Package des is a discrete-event clock: simulated time and the queue of what
// is still to happen. It knows no word of what is simulated.
package des

import (
	"iter"
	"math"
	"slices"
)

// Time is simulated time in µs since the origin.
type Time = int64

// Micros rounds a time in µs half up to a Time: the one place where computed
// time becomes simulated time. us must be a number between 0 and 2^63.
func Micros(us float64) Time {
	whole := math.Floor(us)
	if us-whole >= 0.5 { // us + 0.5 would round a sum of its own
		whole++
	}
	return Time(whole)
}

// Event is something that happens to the thing numbered Slot. Events are
// ordered by time, then kind, then sequence number.
type Event struct {
	At    Time
	order uint64
	Slot  int32
}

// seqBits is how much of an event's order is its sequence number.
const seqBits = 56

// NewEvent makes an event. Among events of one instant the lower kind comes
// first, among those of one kind the lower seq, which must be below 2^56.
func NewEvent(at Time, kind uint8, seq int64, slot int32) Event {
	return Event{At: at, order: uint64(kind)<<seqBits | uint64(seq), Slot: slot}
}

// Kind returns the kind that the event was made with.
func (e Event) Kind() uint8 { return uint8(e.order >> seqBits) }

// Seq returns the sequence number that the event was made with.
func (e Event) Seq() int64 { return int64(e.order & (1<<seqBits - 1)) }

// Before reports whether e happens before f.
func (e Event) Before(f Event) bool {
	return e.At < f.At || e.At == f.At && e.order < f.order
}

// Queue holds events and yields the earliest first. The zero Queue is empty
// and ready.
type Queue struct{ heap []Event }

// Len returns how many events are pending.
func (q *Queue) Len() int { return len(q.heap) }

// Next returns the time of the earliest event, math.MaxInt64 if there is none.
func (q *Queue) Next() Time {
	if len(q.heap) == 0 {
		return math.MaxInt64
	}
	return q.heap[0].At
}

// First returns the earliest event, which stays. The queue must not be empty.
func (q *Queue) First() Event { return q.heap[0] }

// All yields the pending events in no particular order, which is the same in
// every run.
func (q *Queue) All() iter.Seq[Event] { return slices.Values(q.heap) }

// Push adds an event.
func (q *Queue) Push(e Event) {
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.Before(h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// Pop removes the earliest event and returns it. The queue must not be empty.
func (q *Queue) Pop() Event {
	h := q.heap
	first, last := h[0], h[len(h)-1]
	q.heap = h[:len(h)-1]
	if len(q.heap) > 0 {
		q.sink(0, last)
	}
	return first
}

// Clone returns a queue of the same events.
func (q *Queue) Clone() Queue { return Queue{heap: slices.Clone(q.heap)} }

// Keep drops every event for which keep is false.
func (q *Queue) Keep(keep func(Event) bool) {
	kept := q.heap[:0]
	for _, e := range q.heap {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	q.heap = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		q.sink(i, kept[i])
	}
}

// sink puts e at place i or, as long as a child comes before it, below.
func (q *Queue) sink(i int, e Event) {
	h := q.heap
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].Before(h[child]) {
			child++
		}
		if !h[child].Before(e) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
}
