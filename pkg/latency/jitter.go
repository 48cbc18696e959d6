package latency

import (
	"math"

	"blis/pkg/des"
	"blis/pkg/portable"
)

// Jitter returns a model that multiplies each step time of m by a lognormal factor of mean 1 and
// coefficient of variation cv. normal returns standard normal numbers. If cv is 0 it returns m.
func Jitter(m Model, cv float64, normal func() float64) Model {
	if cv == 0 {
		return m
	}
	variance := portable.Log1p(cv * cv)
	return &jitter{Model: m, sigma: math.Sqrt(variance), shift: variance / 2, normal: normal}
}

type jitter struct {
	Model
	// The factor is exp(sigma·z − shift).
	sigma, shift float64
	normal       func() float64
}

func (j *jitter) Step(b Batch) des.Time {
	factor := portable.Exp(float64(j.sigma*j.normal()) - j.shift)
	return max(1, micros(float64(j.Model.Step(b))*factor))
}
