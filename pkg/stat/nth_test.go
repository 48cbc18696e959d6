package stat

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The nth element is that of the sorted list, which keeps its elements.
func TestNth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		list := make([]int, 1+rng.IntN(60))
		for i := range list {
			list[i] = rng.IntN(1 + rng.IntN(80))
		}
		if rng.IntN(3) == 0 {
			slices.Sort(list)
		}
		sorted := slices.Sorted(slices.Values(list))
		n := rng.IntN(len(list))
		if got := Nth(list, n); got != sorted[n] || !slices.Equal(slices.Sorted(slices.Values(list)), sorted) {
			t.Fatalf("element %d of %v is %d", n, sorted, got)
		}
	}
}
