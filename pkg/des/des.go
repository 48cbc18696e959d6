// Package des is a discrete-event clock: simulated time and the queue of pending events. It knows
// nothing about what is simulated.
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
	whole := Time(us)
	if us-float64(whole) >= 0.5 { // us + 0.5 would itself be rounded
		whole++
	}
	return whole
}

// Event is something that happens to the object numbered Slot. Events are ordered by time, then
// kind, then sequence number.
type Event struct {
	At    Time
	order uint64
	Slot  int32
}

// seqBits is the width of the sequence number within an event's order.
const seqBits = 56

// NewEvent makes an event. Events at the same time are ordered by kind, then by seq, which must be
// below 2^56.
func NewEvent(at Time, kind uint8, seq int64, slot int32) Event {
	return Event{At: at, order: uint64(kind)<<seqBits | uint64(seq), Slot: slot}
}

// Kind returns the kind given to NewEvent.
func (e Event) Kind() uint8 { return uint8(e.order >> seqBits) }

// Seq returns the sequence number given to NewEvent.
func (e Event) Seq() int64 { return int64(e.order & (1<<seqBits - 1)) }

// Less reports whether e happens before f.
func (e Event) Less(f Event) bool {
	return e.At < f.At || e.At == f.At && e.order < f.order
}

// Queue holds events and yields the earliest first. The zero Queue is empty
// and ready.
type Queue struct{ heap []Event }

// Len returns the number of pending events.
func (q *Queue) Len() int { return len(q.heap) }

// Next returns the time of the earliest event, math.MaxInt64 if there is none.
func (q *Queue) Next() Time {
	if len(q.heap) == 0 {
		return math.MaxInt64
	}
	return q.heap[0].At
}

// First returns the earliest event without removing it. The queue must not be empty.
func (q *Queue) First() Event { return q.heap[0] }

// All yields the pending events in an order that is unspecified but the same in every run.
func (q *Queue) All() iter.Seq[Event] { return slices.Values(q.heap) }

// Push adds an event.
func (q *Queue) Push(e Event) {
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.Less(h[parent]) {
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

// Clone returns an independent copy of the queue.
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

// sink places e at index i of the heap, or below while a child precedes it.
func (q *Queue) sink(i int, e Event) {
	h := q.heap
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].Less(h[child]) {
			child++
		}
		if !h[child].Less(e) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
}
