package stat

import "math"

const (
	// longSeries is how many points of a series are looked at: of a longer one the
	// means of neighbours. shortSeries is how many there must be.
	longSeries, shortSeries = 1 << 16, 50
	// FewestBlocks is how many blocks intervals need.
	FewestBlocks = 10
)

// BlockLength returns how long the blocks of a block bootstrap of the series, which
// is in order of time, should be for what its neighbours have in common: 1 for
// independent ones, at most a tenth of the series. enough is false where that is
// less than it takes.
//
// It is the rule of Politis and White (Econometric Reviews 23, 2004; corrected by
// Patton, Politis and White, 28, 2009) for the mean, with the constant of blocks that
// do not overlap (Lahiri, Annals of Statistics 27, 1999): (2·G²/D · n)^(1/3) where G
// is the sum of λ·|k|·R(k) over all lags k, D is 2·(the sum of λ·R(k))², R the
// autocovariance and λ a flat top that ends where correlations are no longer told
// from none. What single requests differ in drowns what many have in common for long,
// such as the load of a replica: the rule is applied to the means of 4, 16, 64, …
// neighbours too, and the longest block counts.
func BlockLength(series []float64) (length int, enough bool) {
	length = 1
	for each := (len(series) + longSeries - 1) / longSeries; each > 0 && (len(series)/each >= shortSeries || each == 1); each *= 4 {
		length = max(length, each*rule(centered(series, each)))
	}
	most := max(1, len(series)/FewestBlocks)
	return min(length, most), length <= most
}

// rule is how long blocks should be of a centered series; 0 where it says nothing.
func rule(x []float64) int {
	n := len(x)
	r := []float64{autocovariance(x, 0)}
	if n < 4 || r[0] == 0 {
		return 0
	}
	var g, d float64
	last := lastLag(x, &r)
	if last == 0 {
		return 0
	}
	for k := 0; k <= last; k++ {
		lambda := min(1, 2*(1-float64(k)/float64(last+1)))
		twice := 2.0
		if k == 0 {
			twice = 1
		}
		g += twice * lambda * float64(k) * r[k]
		d += twice * lambda * r[k]
	}
	if g <= 0 || d <= 0 { // they alternate: a mean of neighbours varies less, not more
		return 0
	}
	return int(math.Ceil(math.Cbrt(g * g / (d * d) * float64(n))))
}

// lastLag returns twice the lag from which on some lags in a row are not told from
// none, 0 if it is the first, and appends to r the autocovariances up to there.
func lastLag(x []float64, r *[]float64) int {
	n := float64(len(x))
	inARow := max(5, int(math.Ceil(math.Sqrt(math.Log10(n)))))
	most := min(int(math.Ceil(math.Sqrt(n)))+inARow, len(x)-1)
	bound := 2 * math.Sqrt(math.Log10(n)/n)
	last, small := most, 0
	for k := 1; k <= most && small < inARow; k++ {
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

// centered returns the means of each neighbours, less the mean of all.
func centered(series []float64, each int) []float64 {
	var x []float64
	for i := 0; i+each <= len(series); i += each {
		x = append(x, Mean(series[i:i+each]))
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

// autocovariance of a centered series at lag k.
func autocovariance(x []float64, k int) float64 {
	sum := 0.0
	for i := range max(len(x)-k, 0) {
		sum += float64(x[i] * x[i+k])
	}
	return sum / float64(max(len(x), 1))
}
