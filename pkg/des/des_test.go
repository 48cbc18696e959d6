package des

import (
	"cmp"
	"slices"
	"testing"

	_ "blis/pkg/internal/fixedseed"

	"pgregory.net/rapid"
)

// TestQueueOrder: whatever the order of pushes, events are popped by time, then kind, then sequence.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		var pending []Event
		before := func(a, b Event) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind(), b.Kind()), cmp.Compare(a.Seq(), b.Seq()))
		}
		for i := range rapid.IntRange(1, 200).Draw(t, "operations") {
			switch op := rapid.IntRange(0, 9).Draw(t, "operation"); {
			case op < 6:
				e := NewEvent(rapid.Int64Range(0, 20).Draw(t, "at"), uint8(rapid.IntRange(0, 5).Draw(t, "kind")),
					int64(i), int32(i))
				q.Push(e)
				pending = append(pending, e)
			case op < 9 && len(pending) > 0:
				slices.SortFunc(pending, before)
				if next := q.Next(); next != pending[0].At {
					t.Fatalf("next is at %d, want %d", next, pending[0].At)
				}
				if e := q.Pop(); e != pending[0] {
					t.Fatalf("popped %+v, want %+v", e, pending[0])
				}
				pending = pending[1:]
			case op == 9:
				keepOdd := func(e Event) bool { return e.Slot%2 == 1 }
				q.Keep(keepOdd)
				pending = slices.DeleteFunc(pending, func(e Event) bool { return !keepOdd(e) })
			}
			if q.Len() != len(pending) {
				t.Fatalf("%d events pending, want %d", q.Len(), len(pending))
			}
		}
	})
}

func TestEventReturnsItsParts(t *testing.T) {
	e := NewEvent(7, 5, 1<<seqBits-1, 3)
	if e.At != 7 || e.Kind() != 5 || e.Seq() != 1<<seqBits-1 || e.Slot != 3 {
		t.Fatalf("made %+v of kind %d, seq %d", e, e.Kind(), e.Seq())
	}
}

func TestMicrosRoundsHalfUp(t *testing.T) {
	for us, want := range map[float64]Time{0: 0, 0.49999999999999994: 0, 0.5: 1, 1.5: 2, 2.5: 3, 2.4999: 2,
		4503599627370497: 4503599627370497} {
		if got := Micros(us); got != want {
			t.Errorf("%v µs became %d, want %d", us, got, want)
		}
	}
}

func TestQueueDoesNotAllocate(t *testing.T) {
	var q Queue
	for i := range 100 {
		q.Push(NewEvent(int64(i*37%100), 1, int64(i), 0))
	}
	if n := testing.AllocsPerRun(100, func() { q.Push(q.Pop()) }); n != 0 {
		t.Errorf("%v allocations a push and pop", n)
	}
}

// TestFirstAndClone: the first event stays in the queue, and a copy keeps what is popped.
func TestFirstAndClone(t *testing.T) {
	var q Queue
	for _, at := range []Time{5, 3, 4} {
		q.Push(NewEvent(at, 0, at, 0))
	}
	c := q.Clone()
	if first := q.First(); first.At != 3 || q.Len() != 3 || q.Pop() != first || q.Next() != 4 || c.Next() != 3 {
		t.Errorf("first %+v, then at %d, in the copy %d", first, q.Next(), c.Next())
	}
	sum := Time(0)
	for e := range c.All() {
		sum += e.At
	}
	if sum != 12 {
		t.Errorf("all events of the copy are at %d in sum, want 12", sum)
	}
}
