package anomaly

import (
	"testing"

	"pgregory.net/rapid"
)

// A window has the samples of a plain list, except for what does not count of those that are no occurrences.
func TestWindowEqualsList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		var plain []sample
		for at := range rapid.Int64Range(0, 200).Draw(t, "events") {
			if len(plain) > 0 && rapid.IntRange(0, 2).Draw(t, "drops") == 0 {
				w.drop()
				plain = plain[1:]
			} else {
				x := sample{at: at, from: at - 1, all: rapid.OneOf(rapid.Just[int64](1), rapid.Int64()).Draw(t, "all"),
					bad: rapid.Int64Range(0, 1).Draw(t, "bad"), id: "r", byPolicy: rapid.Bool().Draw(t, "policy")}
				w.add(x)
				plain = append(plain, x)
			}
			if w.len() != len(plain) {
				t.Fatalf("%d samples, want %d", w.len(), len(plain))
			}
			for i, want := range plain {
				got := w.at(i)
				if want.bad == 0 && !want.byPolicy {
					want.from, want.id, got.from, got.id = 0, "", 0, ""
				}
				if got != want {
					t.Fatalf("sample %d is %+v, want %+v", i, got, want)
				}
			}
			if n := len(plain); n > 0 && (w.from() != plain[0].at || w.until() != plain[n-1].at) {
				t.Fatalf("from %d to %d, want %d to %d", w.from(), w.until(), plain[0].at, plain[n-1].at)
			}
		}
	})
}
