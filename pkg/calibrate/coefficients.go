package calibrate

import (
	"fmt"

	"blis/pkg/latency"
)

// Coefficients are those of the linear model: queueing = α0 + α1·input; α2 + α3·decode
// from a token to the client; step = β0 + β1·prefill + β2·decode + β3·context. α0, α2 and
// β0 are in µs, α3 and β2 in µs a sequence that decodes, the others in µs a token.
type Coefficients struct {
	Alpha [4]float64 `json:"alpha_us"`
	Beta  [4]float64 `json:"beta_us"`
}

// The names of coefficients, as tables of results and files have them.
var names = [...]string{"alpha[0]", "alpha[1]", "alpha[2]", "alpha[3]", "beta[0]", "beta[1]", "beta[2]", "beta[3]"}

// Their places in names.
const (
	alpha0 = iota
	alpha1
	alpha2
	alpha3
	beta0
	beta1
	beta2
	beta3
)

// list has the coefficients in the order of names.
func (c *Coefficients) list() []float64 {
	return append(append([]float64{}, c.Alpha[:]...), c.Beta[:]...)
}

// model builds the latency model.
func (c *Coefficients) model() (latency.Model, error) {
	build, err := latency.Models.Get("latency model", "linear")
	if err != nil {
		return nil, err
	}
	m, err := build(latency.Coefficients{Alpha: c.Alpha[:], Beta: c.Beta[:]})
	if err != nil {
		return nil, fmt.Errorf("fitted coefficients: %w", err)
	}
	return m, nil
}

// prior is what physics says of coefficients before any measurement: those of a
// line through a roofline's step times, and what reading a token's keys and values
// takes.
type prior struct{ Coefficients }

// priorOf takes a roofline's steps between half and twice a mean batch, at a mean
// context of its sequences. kvBytes is what keys and values of a token take on one
// GPU, bandwidth that of its memory in bytes/s.
func priorOf(roofline latency.Model, sequences, context, kvBytes, bandwidth float64) prior {
	step := func(prefill, decode int64) float64 {
		b := latency.Batch{Prefill: prefill, Decode: decode, Context: int64(context * float64(decode))}
		if prefill > 0 {
			b.Chunks, b.Pairs = 1, prefill*(prefill+1)/2
		}
		return float64(roofline.Step(b))
	}
	low := int64(max(1, sequences/2))
	high := max(low+1, int64(2*sequences))
	var p prior
	p.Beta[3] = kvBytes / bandwidth * 1e6
	each := (step(0, high) - step(0, low)) / float64(high-low)
	p.Beta[2] = max(0, each-p.Beta[3]*context)
	p.Beta[0] = max(0, step(0, low)-each*float64(low))
	p.Beta[1] = (step(1024, high) - step(1, high)) / 1023
	return p
}
