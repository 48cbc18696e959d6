package recording

import (
	"math"
	"slices"
)

const (
	// longestPeriod is the longest that is looked for.
	longestPeriod = 10_000
	// A period is judged by so many pairs of requests, at least and at most.
	fewestPairs, mostPairs = 20, 20_000
)

// Period says with which period prompts repeat, by the lengths of the run's
// requests in order of arrival, and which share of them are as long as the one a
// period before; 0 if they do not repeat.
//
// Lengths show a period if half of them at least recur, eight standard deviations
// more than of lengths that come independently, each as often as it does here.
// Lengths of which two at random are equal more often than one time in five (a
// constant length, a few in turn) show nothing: they may be a pattern of lengths
// without one of prompts. So do lengths that change slowly, where requests side
// by side are equal.
func (r *Run) Period() (period int, share float64) {
	var lengths []int64
	for i := range r.Outcomes {
		lengths = append(lengths, r.Outcomes[i].InputTokens)
	}
	chance := sameByChance(lengths)
	if chance > 0.2 {
		return 0, 0
	}
	shares := []float64{0}
	best, noise := 0, 0.0
	for p := 1; p <= min(len(lengths)/2, longestPeriod) && len(lengths)-p >= fewestPairs; p++ {
		share, pairs := recurring(lengths, p)
		if share < 0.5 || share < chance+8*math.Sqrt(chance*(1-chance)/float64(pairs)) {
			shares = append(shares, 0)
			continue
		}
		if shares = append(shares, share); share > shares[best] {
			best, noise = p, math.Sqrt(share*(1-share)/float64(pairs))
		}
	}
	if best == 0 {
		return 0, 0
	}
	// Multiples of the period are about as good as it is: the shortest counts.
	top := shares[best]
	best = slices.IndexFunc(shares, func(s float64) bool { return s > 0 && s >= top-max(0.02, 4*noise) })
	between := 0.0
	for p := 1; p < best; p++ {
		s, _ := recurring(lengths, p)
		between += s
	}
	if best == 1 || between > 0.3*float64(best-1) {
		return 0, 0
	}
	return best, shares[best]
}

// recurring is which share of lengths are as long as the one p before, and of how
// many pairs.
func recurring(lengths []int64, p int) (share float64, pairs int) {
	pairs = min(len(lengths)-p, mostPairs)
	same := 0
	for i := range pairs {
		if lengths[i] == lengths[i+p] {
			same++
		}
	}
	return float64(same) / float64(pairs), pairs
}

// sameByChance is how often two of the lengths, drawn at random, are equal.
func sameByChance(lengths []int64) float64 {
	counts := map[int64]int{}
	for _, l := range lengths {
		counts[l]++
	}
	pairs := 0 // whole numbers, so that the order of the map has no part in it
	for _, n := range counts {
		pairs += n * n
	}
	return float64(pairs) / float64(max(len(lengths)*len(lengths), 1))
}
