package recording

import (
	"math"
)

const (
	// longest is the longest period that is looked for, most how many pairs of
	// requests each is judged by.
	longest, most = 10_000, 20_000
	// fewest is by how many pairs a period is judged at least.
	fewest = 20
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
	best := 0
	for p := 1; p <= min(len(lengths)/2, longest) && len(lengths)-p >= fewest; p++ {
		share, pairs := recurring(lengths, p)
		shares = append(shares, share)
		sd := math.Sqrt(chance * (1 - chance) / float64(pairs))
		// Multiples of a period are as good as it is: only a much better one counts.
		if share >= 0.5 && share > chance+8*sd && share > shares[best]+0.02 {
			best = p
		}
	}
	if best == 0 {
		return 0, 0
	}
	between := 0.0
	for _, s := range shares[1:best] {
		between += s
	}
	if best == 1 || between/float64(best-1) > 0.3 {
		return 0, 0
	}
	return best, shares[best]
}

// recurring is which share of lengths are as long as the one p before, and of how
// many pairs.
func recurring(lengths []int64, p int) (share float64, pairs int) {
	pairs = min(len(lengths)-p, most)
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
