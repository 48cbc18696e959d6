package leastsq

import (
	"math"
	"slices"

	"blis/pkg/stat"

	"gonum.org/v1/gonum/floats"
	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// huberK is where Huber's function turns from a square to a line, in standard deviations:
// 95 % as efficient as squares where errors are normal.
const huberK = 1.345

// madToSigma is the standard deviation of a normal distribution over the median of its
// absolute values.
const madToSigma = 1.4826

// Scale is a robust standard deviation about zero: 1.4826 times MedianAbs.
func Scale(errors []float64) float64 { return madToSigma * MedianAbs(errors) }

// MedianAbs is the median of the absolute values; 0 of none. NaNs are left out.
func MedianAbs(errors []float64) float64 {
	size := make([]float64, 0, len(errors))
	for _, e := range errors {
		if !math.IsNaN(e) {
			size = append(size, math.Abs(e))
		}
	}
	if len(size) == 0 {
		return 0
	}
	slices.Sort(size)
	return size[len(size)/2]
}

// TQuantile is the half-width of an interval of the level in standard errors, estimated
// with the given degrees of freedom; infinite degrees are a normal distribution's.
func TQuantile(degrees, level float64) float64 {
	if math.IsInf(degrees, 1) {
		return distuv.UnitNormal.Quantile((1 + level) / 2)
	}
	return distuv.StudentsT{Sigma: 1, Nu: max(1, degrees)}.Quantile((1 + level) / 2)
}

// StandardError is that of a parameter, from jackknife influences: the root of the sum of
// their squares.
func StandardError(influences [][]float64, parameter int) float64 {
	var column []float64
	for _, m := range influences {
		column = append(column, m[parameter])
	}
	return floats.Norm(column, 2)
}

// minSlopePoints is the fewest points that Slope fits a line to.
const minSlopePoints = 50

// Slope is that of a line through points, by least squares without outliers: points whose y is more
// than three robust standard deviations from the median. ok is false if there are too few points, or
// all at one x.
func Slope(x, y []float64, level float64) (slope float64, ci stat.Interval, ok bool) {
	if len(x) < minSlopePoints {
		return 0, ci, false
	}
	errors, weights := slices.Clone(y), make([]float64, len(y))
	floats.AddConst(-slices.Sorted(slices.Values(y))[len(y)/2], errors)
	limit := 3 * Scale(errors)
	for i, e := range errors {
		if math.Abs(e) <= limit {
			weights[i] = 1
		}
	}
	xx, yy := gonum.Variance(x, weights), gonum.Variance(errors, weights)
	xy := gonum.Covariance(x, errors, weights)
	slope = xy / xx
	half := TQuantile(math.Inf(1), level) * math.Sqrt(max(0, yy-slope*xy)/(floats.Sum(weights)-2)/xx)
	return slope, stat.Interval{Lo: slope - half, Hi: slope + half, Level: level}, xx > 1e-6
}
