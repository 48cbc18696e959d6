package attribution

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPendingRequestsAreThoseOfAMap: requests that come and go in any order are found as in a map.
func TestPendingRequestsAreThoseOfAMap(t *testing.T) {
	a, want, random := New(header(1)), map[string]*request{}, rand.New(rand.NewPCG(1, 1))
	for i := range 200_000 {
		id := fmt.Sprint("r", random.IntN(1+i/200))
		if got := a.pending.get(id); got != want[id] {
			t.Fatalf("step %d: %s is %p, want %p", i, id, got, want[id])
		}
		switch {
		case random.IntN(2) == 0:
			if got := a.pending.take(id); got != want[id] {
				t.Fatalf("step %d: took %p as %s, want %p", i, got, id, want[id])
			}
			delete(want, id)
		case want[id] == nil:
			want[id] = &request{packed: a.pack(id, "", &noRouting)}
			a.pending.add(want[id])
		}
		if a.pending.used != len(want) || 2*len(want) > len(a.pending.slots) {
			t.Fatalf("step %d: %d of %d slots used, want %d", i, a.pending.used, len(a.pending.slots), len(want))
		}
	}
	for id, r := range want {
		if got := a.pending.get(id); got != r {
			t.Errorf("%s is %p, want %p", id, got, r)
		}
	}
	if len(want) < 100 {
		t.Errorf("only %d", len(want))
	}
}
