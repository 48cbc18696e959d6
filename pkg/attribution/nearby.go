package attribution

import (
	"slices"

	"blis/pkg/stream"
)

// nearby is the last place that was found in an ascending list of times. Finding one near it takes a few steps only.
type nearby int

// find is the index of the first of the times that is not before at.
func (n *nearby) find(times []stream.Micros, at stream.Micros) int {
	from, to := min(int(*n), len(times)), len(times)
	if from < to && times[from] < at {
		for step := 1; from+step < to; step *= 2 {
			if times[from+step] >= at {
				to = from + step
			} else {
				from += step
			}
		}
	} else {
		to = from
		for step := 1; from > 0 && times[from-1] >= at; step *= 2 {
			to, from = from-1, max(0, from-1-step)
		}
	}
	k, _ := slices.BinarySearch(times[from:to], at)
	*n = nearby(from + k)
	return from + k
}
