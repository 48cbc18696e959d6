package attribution

import (
	"math/rand/v2"
	"slices"
	"testing"

	"blis/pkg/stream"
)

// A place is that of a binary search, wherever the last one was.
func TestNearby(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		times := make([]stream.Micros, rng.IntN(40))
		for i := range times {
			times[i] = stream.Micros(rng.IntN(30))
		}
		slices.Sort(times)
		var place nearby
		for range 20 {
			at := stream.Micros(rng.IntN(34) - 2)
			want, _ := slices.BinarySearch(times, at)
			if got := place.find(times, at); got != want || int(place) != want {
				t.Fatalf("%d in %v is at %d, want %d", at, times, got, want)
			}
		}
	}
}
