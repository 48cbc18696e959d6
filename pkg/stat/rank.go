package stat

import (
	"cmp"
	"math"
	"slices"
)

// Pearson returns the correlation of x and y, which have the same length; not ok if
// one of them does not vary.
func Pearson(x, y []float64) (r float64, ok bool) {
	if len(x) == 0 {
		return 0, false
	}
	a, b := Mean(x), Mean(y)
	var xx, yy, xy float64
	for i := range x {
		u, v := x[i]-a, y[i]-b
		xx += float64(u * u)
		yy += float64(v * v)
		xy += float64(u * v)
	}
	if xx == 0 || yy == 0 {
		return 0, false
	}
	return max(-1, min(1, xy/math.Sqrt(xx*yy))), true
}

// Spearman returns the rank correlation of x and y; equal values share the mean of
// their ranks.
func Spearman(x, y []float64) (rho float64, ok bool) { return Pearson(ranks(x), ranks(y)) }

// ranks returns the ranks of the values, from 1.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	of := make([]float64, len(x))
	for i := 0; i < len(order); {
		k := i
		for k < len(order) && x[order[k]] == x[order[i]] {
			k++
		}
		for _, at := range order[i:k] {
			of[at] = float64(i+1+k) / 2
		}
		i = k
	}
	return of
}

// PairOrder counts the pairs of observations that x and y order alike.
type PairOrder struct {
	// Pairs is the number of pairs that differ in y. Concordant of them have the same
	// order in x, Discordant the reverse order; the rest are equal in x.
	Pairs, Concordant, Discordant int
	differX                       int // the number of pairs that differ in x
}

// ComparePairs compares all pairs of x and y, which have the same length, in quadratic
// time.
func ComparePairs(x, y []float64) PairOrder {
	var o PairOrder
	for i := range x {
		for j := range i {
			a, b := cmp.Compare(x[i], x[j]), cmp.Compare(y[i], y[j])
			switch {
			case a*b > 0:
				o.Concordant++
			case a*b < 0:
				o.Discordant++
			}
			if a != 0 {
				o.differX++
			}
			if b != 0 {
				o.Pairs++
			}
		}
	}
	return o
}

// Kendall returns Kendall's tau-b; not ok if x or y does not vary.
func (o PairOrder) Kendall() (tau float64, ok bool) {
	if o.differX == 0 || o.Pairs == 0 {
		return 0, false
	}
	return float64(o.Concordant-o.Discordant) / math.Sqrt(float64(o.differX)*float64(o.Pairs)), true
}

// KolmogorovSmirnov returns the largest difference between the cumulative distribution
// functions of two samples, which are in ascending order and not empty.
func KolmogorovSmirnov(a, b []float64) float64 {
	var i, j int
	largest := 0.0
	for i < len(a) && j < len(b) {
		x := min(a[i], b[j])
		for i < len(a) && a[i] == x {
			i++
		}
		for j < len(b) && b[j] == x {
			j++
		}
		largest = max(largest, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return largest
}
