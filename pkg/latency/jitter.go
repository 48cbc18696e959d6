package latency

import (
	"math"

	"blis/pkg/des"
)

// Jitter multiplies the time of each step of m by a lognormal of mean 1 with
// the coefficient of variation cv, drawn with normal, which returns standard
// normal numbers. Without jitter, cv 0, it is m itself and draws nothing.
func Jitter(m Model, cv float64, normal func() float64) Model {
	if cv == 0 {
		return m
	}
	variance := math.Log1p(cv * cv)
	return &jitter{Model: m, sigma: math.Sqrt(variance), shift: variance / 2, normal: normal}
}

type jitter struct {
	Model
	// A factor is exp(sigma·z − shift).
	sigma, shift float64
	normal       func() float64
}

func (j *jitter) Step(b Batch) des.Time {
	factor := math.Exp(float64(j.sigma*j.normal()) - j.shift)
	return max(1, micros(float64(j.Model.Step(b))*factor))
}
