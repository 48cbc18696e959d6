package calibrate

import (
	"math"
	"strings"
	"testing"

	"blis/pkg/stat"
)

// TestServerFacts: each quantity that intervals and priors rest on is known of several servers, and each line is one
// of these.
func TestServerFacts(t *testing.T) {
	known := []string{slopeOfKernels, prefillFactor, stepError, ttftError, tailError, lastError,
		names[alpha0], names[alpha3], names[beta0], names[beta1], names[beta2]}
	lines := 1 // the columns
	for _, quantity := range known {
		values := facts(quantity)
		if len(values) < 3 {
			t.Errorf("%s is of %d servers", quantity, len(values))
		}
		for _, v := range values {
			if !(v >= 0) {
				t.Errorf("%s: %g", quantity, v)
			}
		}
		lines += len(values)
	}
	if n := strings.Count(serverFacts, "\n"); n != lines {
		t.Errorf("%d of %d lines are used", lines, n)
	}
}

// TestWorkloadsWiden: an interval of ±3 and differences between workloads of ±4 are one of ±5, above 0.
func TestWorkloadsWiden(t *testing.T) {
	r := &report{}
	r.fit.value = coefficients{beta0: 100, beta1: 1}
	r.fit.uncertainty[beta0] = stat.Interval{Lo: 97, Hi: 103, Level: level}
	r.fit.uncertainty[beta1] = stat.Interval{Lo: 0.5, Hi: 1.5, Level: level}
	r.Scatter = &scatter{TPOT: 4 / (100 * spread(names[beta0])), TTFT: 10}
	r.addWorkloads()
	if i := r.fit.uncertainty[beta0]; math.Abs(i.Lo-95) > 1e-9 || math.Abs(i.Hi-105) > 1e-9 {
		t.Errorf("%+v", i)
	}
	if i := r.fit.uncertainty[beta1]; i.Lo != 0 || i.Hi < 2 {
		t.Errorf("%+v", i)
	}
	if i := r.fit.uncertainty[beta2]; i.Hi != 0 {
		t.Errorf("not fitted: %+v", i)
	}
}

// TestScatterByHand: the median of absolute residuals of a feature, as a standard deviation of a normal
// distribution; at least that of the best fits.
func TestScatterByHand(t *testing.T) {
	var residuals []float64
	for _, v := range []float64{-0.1, 0.1, -0.2, 0.2, 0.1} {
		residuals = append(residuals, 0.0001, 0, v, 0, 0, math.NaN())
	}
	if s := newScatter(residuals); s.TPOT != minScatter || math.Abs(s.TTFT-0.1483) > 1e-4 {
		t.Errorf("%+v", s)
	}
}

// TestRangesOfIndependentErrors: 3 below by shorter steps and 4 by another error are 5 below.
func TestRangesOfIndependentErrors(t *testing.T) {
	i := uncertaintyOf(100, 4, 0, [2]float64{97, 98}, [2]float64{100, 112})
	if i.Lo != 95 || i.Hi != 112 {
		t.Errorf("%+v", *i)
	}
}
