package leastsq

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
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
