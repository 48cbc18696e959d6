package attribution

import (
	"fmt"
	"strings"
	"testing"
)

// Kept strings stay as they were when later ones are added, whatever their length.
func TestTextStore(t *testing.T) {
	var store textStore
	var kept []string
	want := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", i%7*(i%501)%3000)) }
	for i := range 5000 {
		kept = append(kept, store.keep([]byte(want(i))))
	}
	long := []byte(strings.Repeat("y", 2*textPiece))
	kept = append(kept, store.keep(nil), store.keep(long), store.keep([]byte("end")))
	for i, s := range kept[:5000] {
		if s != want(i) {
			t.Fatalf("string %d is %q", i, s)
		}
	}
	if kept[5000] != "" || len(kept[5001]) != 2*textPiece || kept[5002] != "end" {
		t.Errorf("the last strings have %d, %d and %d bytes", len(kept[5000]), len(kept[5001]), len(kept[5002]))
	}
}
