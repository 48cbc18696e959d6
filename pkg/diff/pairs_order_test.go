package diff

import (
	"slices"
	"testing"

	"blis/pkg/stream"
)

// TestPairInOrder: requests keep their places, but two that overtook each other get their partners by length.
func TestPairInOrder(t *testing.T) {
	outcomes := func(lengths ...int64) (all []stream.Outcome) {
		for _, n := range lengths {
			all = append(all, stream.Outcome{InputTokens: n})
		}
		return all
	}
	for _, c := range []struct{ recorded, theirs, want []int64 }{
		{[]int64{5, 5, 5}, []int64{5, 5, 5}, []int64{0, 1, 2}},
		{[]int64{1, 3, 2, 4}, []int64{1, 2, 3, 4}, []int64{0, 2, 1, 3}},
		// 9 gets what is left.
		{[]int64{1, 9, 2}, []int64{1, 2, 8}, []int64{0, 2, 1}},
		// 7 is six places away, and gets what is left.
		{[]int64{7, 1, 2, 3, 4, 5, 6}, []int64{1, 2, 3, 4, 5, 6, 7}, []int64{6, 0, 1, 2, 3, 4, 5}},
	} {
		var want []int
		for _, n := range c.want {
			want = append(want, int(n))
		}
		if got := pairInOrder(outcomes(c.recorded...), outcomes(c.theirs...)); !slices.Equal(got, want) {
			t.Errorf("%v and %v: %v, want %v", c.recorded, c.theirs, got, want)
		}
	}
}

// TestAlignByLength: a lost request shifts those after it, of either list; the others keep their partners.
func TestAlignByLength(t *testing.T) {
	const n, gone = 40, 17
	var all []stream.Outcome
	for i := range n {
		all = append(all, stream.Outcome{ID: string(rune('A' + i)), InputTokens: int64(100 + i*i%23)})
	}
	lossy := slices.Delete(slices.Clone(all), gone, gone+1)
	for _, c := range []struct{ recorded, theirs []stream.Outcome }{{lossy, all}, {all, lossy}} {
		recorded := slices.Clone(c.recorded)
		for i := range recorded {
			recorded[i].ID = "own"
		}
		if !alignByLength(recorded, c.theirs) {
			t.Fatal("not aligned")
		}
		for i := range recorded {
			want := c.recorded[i].ID
			if len(recorded) == n && i == gone {
				want = "own"
			}
			if recorded[i].ID != want {
				t.Errorf("%d of %d: %s, want %s", i, len(recorded), recorded[i].ID, want)
			}
		}
	}
	others := slices.Clone(lossy)
	for i := range others[:8] {
		others[i].InputTokens = 1
	}
	if alignByLength(others, all) || alignByLength(slices.Clone(all[:30]), all) || others[9].ID != "J" {
		t.Error("lists of other requests are aligned")
	}
}
