package recording

import (
	"math"
	"slices"
)

const (
	// maxPeriod is the longest period considered.
	maxPeriod = 10_000
	// minPairs and maxPairs bound the pairs of requests by which a period is tested.
	minPairs, maxPairs = 20, 20_000
)

// Period returns the period with which prompts repeat, judged by the lengths of the requests in
// order of arrival, and the share of requests as long as the one a period before; 0 if there is no
// period.
//
// Lengths show a period if at least half of them recur, and eight standard deviations more than
// independent lengths of the same distribution. If two random lengths are equal more often than one
// time in five (a constant length, a few in turn), there is no evidence that the prompts are the
// same. The same is true of lengths that change slowly, so that adjacent requests are equal.
func (r *Run) Period() (period int, share float64) {
	var lengths []int64
	for i := range r.Outcomes {
		lengths = append(lengths, r.Outcomes[i].InputTokens)
	}
	chance := chanceOfEqual(lengths)
	if chance > 0.2 {
		return 0, 0
	}
	shares := []float64{0}
	best, noise := 0, 0.0
	for p := 1; p <= min(len(lengths)/2, maxPeriod) && len(lengths)-p >= minPairs; p++ {
		share, pairs := recurrence(lengths, p)
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
	// Multiples of the period are about as good: take the shortest.
	top := shares[best]
	best = slices.IndexFunc(shares, func(s float64) bool { return s > 0 && s >= top-max(0.02, 4*noise) })
	between := 0.0
	for p := 1; p < best; p++ {
		s, _ := recurrence(lengths, p)
		between += s
	}
	if best == 1 || between > 0.3*float64(best-1) {
		return 0, 0
	}
	return best, shares[best]
}

// recurrence returns the share of lengths that equal the one p before, and the number of pairs.
func recurrence(lengths []int64, p int) (share float64, pairs int) {
	pairs = min(len(lengths)-p, maxPairs)
	same := 0
	for i := range pairs {
		if lengths[i] == lengths[i+p] {
			same++
		}
	}
	return float64(same) / float64(pairs), pairs
}

// chanceOfEqual is the probability that two random lengths are equal.
func chanceOfEqual(lengths []int64) float64 {
	counts := map[int64]int{}
	for _, l := range lengths {
		counts[l]++
	}
	pairs := 0 // integers, so that map order has no effect
	for _, n := range counts {
		pairs += n * n
	}
	return float64(pairs) / float64(max(len(lengths)*len(lengths), 1))
}
