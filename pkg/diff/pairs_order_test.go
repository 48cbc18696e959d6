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
