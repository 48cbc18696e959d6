package stat

import "math"

const (
	// maxSeriesLength is the number of points that are analyzed: a longer series is
	// averaged in groups of neighbors first. minSeriesLength is the minimum after that.
	maxSeriesLength, minSeriesLength = 1 << 16, 50
	// MinBlocks is the number of blocks that intervals need.
	MinBlocks = 10
)

// BlockLength returns the block length for a block bootstrap of the series, which is
// in order of time. It is 1 for independent values and at most a tenth of the series;
// enough is false if the correlation needs longer blocks than that.
//
// It is the rule of Politis and White (Econometric Reviews 23, 2004; corrected by
// Patton, Politis and White, 28, 2009) for the mean, with the constant for blocks that
// do not overlap (Lahiri, Annals of Statistics 27, 1999): (2·G²/D · n)^(1/3) where G
// is the sum of λ·|k|·R(k) over all lags k, D is 2·(the sum of λ·R(k))², R the
// autocovariance and λ a flat-top window that ends where correlations are no longer
// significant. The variation of single requests hides slow changes that many requests
// share, such as the load of a replica. So the rule is also applied to the means of 4,
// 16, 64, … neighbors, and the longest block is returned.
func BlockLength(series []float64) (length int, enough bool) {
	length = 1
	long := func(groupSize int) bool { return groupSize == 1 || len(series)/groupSize >= minSeriesLength }
	groupSize := (len(series) + maxSeriesLength - 1) / maxSeriesLength
	for ; groupSize > 0 && long(groupSize); groupSize *= 4 {
		length = max(length, groupSize*ruleLength(centeredMeans(series, groupSize)))
	}
	limit := max(1, len(series)/MinBlocks)
	return min(length, limit), length <= limit
}

// ruleLength returns the block length by the rule for a centered series; 0 if the rule
// gives none.
func ruleLength(x []float64) int {
	n := len(x)
	r := []float64{autocovariance(x, 0)}
	if n < 4 || r[0] == 0 {
		return 0
	}
	last := lastLag(x, &r)
	if last == 0 {
		return 0
	}
	g, d := 0.0, r[0]
	for k := 1; k <= last; k++ {
		lambda := min(1, 2*(1-float64(k)/float64(last+1)))
		g += float64(2 * lambda * float64(k) * r[k])
		d += float64(2 * lambda * r[k])
	}
	if g <= 0 || d <= 0 { // neighbors are anticorrelated: longer blocks are not needed
		return 0
	}
	return int(math.Ceil(math.Cbrt(g * g / (d * d) * float64(n))))
}

// lastLag returns twice the last lag before several consecutive insignificant
// correlations, 0 if the first lag is insignificant. It appends to r the
// autocovariances up to the returned lag.
func lastLag(x []float64, r *[]float64) int {
	n := float64(len(x))
	consecutive := max(5, int(math.Ceil(math.Sqrt(math.Log10(n)))))
	maxLag := min(int(math.Ceil(math.Sqrt(n)))+consecutive, len(x)-1)
	bound := 2 * math.Sqrt(math.Log10(n)/n)
	last, small := maxLag, 0
	for k := 1; k <= maxLag && small < consecutive; k++ {
		*r = append(*r, autocovariance(x, k))
		small++
		if math.Abs((*r)[k]/(*r)[0]) >= bound {
			small = 0
		}
		last = k - small
	}
	last = min(2*last, len(x)-1)
	for k := len(*r); k <= last; k++ {
		*r = append(*r, autocovariance(x, k))
	}
	return last
}

// centeredMeans returns the means of groups of neighbors, minus their overall mean.
func centeredMeans(series []float64, groupSize int) []float64 {
	var x []float64
	for i := 0; i+groupSize <= len(series); i += groupSize {
		x = append(x, Mean(series[i:i+groupSize]))
	}
	if len(x) == 0 {
		return nil
	}
	mean := Mean(x)
	for i := range x {
		x[i] -= mean
	}
	return x
}

// autocovariance returns the autocovariance of a centered series at lag k.
func autocovariance(x []float64, k int) float64 {
	sum := 0.0
	for i := range max(len(x)-k, 0) {
		sum += float64(x[i] * x[i+k])
	}
	return sum / float64(max(len(x), 1))
}
