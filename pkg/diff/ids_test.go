package diff

import (
	"fmt"
	"strings"
	"testing"
)

// Ids have the numbers that a map gives them, across texts and growth, also long ids
// and the empty one.
func TestIDsAreNumberedInOrderOfAppearance(t *testing.T) {
	var got ids
	want := intern[string]{}
	if n, ok := got.find("none"); n != 0 || ok {
		t.Errorf("an empty table has %d, %v", n, ok)
	}
	for i := range 50_000 {
		id := fmt.Sprintf("tenant/%d/turn-%d", i*7919%20_000, i%3)
		switch i % 1000 {
		case 1:
			id = strings.Repeat(id, 10_000)
		case 2:
			id = ""
		}
		if n, m := got.number(id), want.number(id); n != m {
			t.Fatalf("%.20q has number %d, want %d", id, n, m)
		}
	}
	for n, id := range want.all {
		if found, ok := got.find(id); got.name(int32(n)) != id || !ok || int(found) != n {
			t.Fatalf("%.20q has number %d, want %d", id, found, n)
		}
	}
	if _, ok := got.find("none"); ok || int(got.len()) != len(want.all) {
		t.Errorf("%d ids, want %d", got.len(), len(want.all))
	}
}

// TestNumberNear: an id has its number wherever it is expected, and a new one the next.
func TestNumberNear(t *testing.T) {
	var all ids
	for i, id := range []string{"a", "b", "c"} {
		if n := all.numberNear(id, int32(i)); n != int32(i) {
			t.Errorf("%s is %d", id, n)
		}
	}
	for _, probably := range []int32{noIndex, 0, 1, 2, 3, 9} {
		for i, id := range []string{"a", "b", "c"} {
			if n := all.numberNear(id, probably); n != int32(i) {
				t.Errorf("%s is %d, probably %d", id, n, probably)
			}
		}
	}
	if n := all.numberNear("d", 1); n != 3 {
		t.Errorf("d is %d", n)
	}
}
