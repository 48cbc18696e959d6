// Package stat computes statistics of samples: quantiles, means, fairness,
// bootstrap intervals, correlations of ranks.
//
// A quantile is the linear interpolation at p·(n−1) of the sorted samples,
// counted from 0. p is an integer percentage, so that the position between two
// samples is exact, and a quantile of integers is rounded once, when it becomes a
// float64.
package stat

// Quantile returns the percent-th percentile of sorted, which is in ascending
// order and not empty, in units of unit: 1000 makes ms of µs. percent is from
// 0 to 100. The result is rounded only once if 100 times the samples is below 2^53.
// The samples must be below 2^56.
func Quantile[T int64 | uint64](sorted []T, percent, unit int64) float64 {
	return QuantileAt(int64(len(sorted)), percent, unit, func(i int64) T { return sorted[i] })
}

// QuantileAt is Quantile of n samples, which at returns by their index in ascending order.
func QuantileAt[T int64 | uint64](n, percent, unit int64, at func(i int64) T) float64 {
	lo, hi, hundredths := quantilePosition(n, percent)
	return interpolate(at(lo), at(hi), hundredths, unit)
}

// QuantileIndices returns the indices of the samples that the percentile of n samples depends on.
func QuantileIndices(n, percent int64) (lo, hi int64) {
	lo, hi, _ = quantilePosition(n, percent)
	return lo, hi
}

// QuantileFloat returns the percent-th percentile of sorted, which is in
// ascending order and not empty. It never leaves the range of its two neighbors.
func QuantileFloat(sorted []float64, percent int64) float64 {
	lo, hi, hundredths := quantilePosition(int64(len(sorted)), percent)
	return interpolateFloats(sorted[lo], sorted[hi], hundredths)
}

// QuantileAmong returns a percentile of n values of which the smallest are known: at returns them by their
// index in ascending order. ok is false if the percentile depends on others.
func QuantileAmong(n, percent, known int64, at func(i int64) float64) (x float64, ok bool) {
	lo, hi, hundredths := quantilePosition(n, percent)
	if hi >= known {
		return 0, false
	}
	return interpolateFloats(at(lo), at(hi), hundredths), true
}

// quantilePosition returns the indices of the two samples that the percentile of n
// samples lies between, and its position from lo to hi in hundredths.
func quantilePosition(n, percent int64) (lo, hi, hundredths int64) {
	lo, hundredths = percent*(n-1)/100, percent*(n-1)%100
	hi = lo
	if hundredths > 0 {
		hi++
	}
	return lo, hi, hundredths
}

// interpolate returns the value at the given hundredths of the way from a to b.
func interpolate[T int64 | uint64](a, b T, hundredths, unit int64) float64 {
	return float64(a*T(100-hundredths)+b*T(hundredths)) / float64(100*unit)
}

// interpolateFloats is interpolate for floats; the result is never beyond b.
func interpolateFloats(a, b float64, hundredths int64) float64 {
	if hundredths == 0 || a == b {
		return a
	}
	return min(a+float64((b-a)*float64(hundredths))/100, b)
}

// Mean returns the mean of x, NaN if it is empty. It adds in the given order. Callers whose order
// depends on arrivals sort first, ascending for the smallest rounding error.
func Mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Jain returns the fairness index of Jain, Chiu and Hawe (1984): 1 if all shares are
// equal, 1/n if one party has everything. It is undefined, not ok, if all shares are 0.
// It adds in the given order.
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
