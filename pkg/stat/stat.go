// Package stat computes statistics of samples: quantiles, means, fairness,
// bootstrap intervals, correlations of ranks.
//
// A quantile is the linear interpolation at p·(n−1) of the sorted samples,
// counted from 0. p is a whole percentage, so that the place between two
// samples is found in integers, exactly, and a quantile of integers is rounded
// once, when it becomes a float64.
package stat

// Quantile returns the percent-th percentile of sorted, which is in ascending
// order and not empty, in units of unit: 1000 makes ms of µs. percent is from
// 0 to 100. The result is rounded once as long as 100 times the samples stays
// below 2^53, and the samples must stay below 2^56.
func Quantile[T int64 | uint64](sorted []T, percent, unit int64) float64 {
	lo, hi, part := place(int64(len(sorted)), percent)
	return between(sorted[lo], sorted[hi], part, unit)
}

// QuantileFloat returns the percent-th percentile of sorted, which is in
// ascending order and not empty. It never leaves the range of the two samples
// that it lies between.
func QuantileFloat(sorted []float64, percent int64) float64 {
	lo, hi, part := place(int64(len(sorted)), percent)
	return betweenFloats(sorted[lo], sorted[hi], part)
}

// place returns the samples of n that the percentile lies between and how many
// hundredths of the way from lo to hi.
func place(n, percent int64) (lo, hi, part int64) {
	lo, part = percent*(n-1)/100, percent*(n-1)%100
	hi = lo
	if part > 0 {
		hi++
	}
	return lo, hi, part
}

// between returns the value part hundredths of the way from a to b.
func between[T int64 | uint64](a, b T, part, unit int64) float64 {
	return float64(a*T(100-part)+b*T(part)) / float64(100*unit)
}

// betweenFloats is between of numbers that are not whole, and never beyond b.
func betweenFloats(a, b float64, part int64) float64 {
	if part == 0 || a == b {
		return a
	}
	return min(a+float64((b-a)*float64(part))/100, b)
}

// Mean returns the mean of sorted, which is not empty. It adds in the order
// given: to be the same whatever the order of arrival, sort first; ascending
// order also loses least.
func Mean(sorted []float64) float64 {
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	return sum / float64(len(sorted))
}

// Jain returns the fairness index of Jain, Chiu and Hawe (1984) of the shares
// that each of several parties got: 1 if all are equal, 1/n if one has all. It
// is undefined, not ok, if nobody got anything. It adds in the order given.
func Jain(shares []float64) (index float64, ok bool) {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += float64(x * x)
	}
	if squares == 0 {
		return 0, false
	}
	return sum * sum / (float64(len(shares)) * squares), true
}
