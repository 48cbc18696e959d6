package calibrate

import (
	"fmt"
	"math"

	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/leastsq"
)

// coefficients are those of the linear model: queueing = α0 + α1·input; α2 + α3·decode from a
// token to the client; step = β0 + β1·prefill + β2·decode + β3·context. α0, α2 and β0 are in
// µs, α3 and β2 in µs per decoding sequence, the others in µs per token.
type coefficients struct {
	Alpha, Beta [4]float64
}

// names are those of the coefficients in tables of results and in files.
var names = [...]string{"alpha[0]", "alpha[1]", "alpha[2]", "alpha[3]", "beta[0]", "beta[1]", "beta[2]", "beta[3]"}

// Indices of names.
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

// level is that of all confidence intervals.
const level = 0.90

// zLevel is the half-width of a normal distribution's interval of the level: 1.645 σ.
var zLevel = leastsq.TQuantile(math.Inf(1), level)

// list has the coefficients in the order of names.
func (c *coefficients) list() []float64 {
	return append(append([]float64{}, c.Alpha[:]...), c.Beta[:]...)
}

// model builds the latency model, with a table of steps instead of β where there is one.
func (c *coefficients) model(table *latency.Table) (latency.Model, error) {
	of := hardware.Latency{Model: "linear", AlphaUS: c.Alpha[:], BetaUS: c.Beta[:]}
	if table != nil {
		of = hardware.Latency{Model: "table", AlphaUS: c.Alpha[:], Table: table}
	}
	m, err := of.Build(nil)
	if err != nil {
		return nil, fmt.Errorf("fitted coefficients: %w", err)
	}
	return m, nil
}

// prior is what physics predicts at a load, before any measurement: a line through a
// roofline's step times between half and twice the mean batch, at its mean context, and the
// time to read a token's keys and values.
func (s *setup) prior(l load) coefficients {
	roofline := s.deployment.Computed.Roofline
	w, m := &roofline.Work, &roofline.Machine
	kvBytes := float64(w.KVBytes) / math.Min(float64(m.TensorParallel), float64(max(1, w.KVHeads)))
	step := func(prefill, decode int64) float64 {
		b := latency.Batch{Prefill: prefill, Decode: decode, Context: int64(l.context * float64(decode))}
		if prefill > 0 {
			b.Chunks, b.Pairs = 1, prefill*(prefill+1)/2
		}
		return float64(s.roofline.Step(b))
	}
	low := int64(max(1, l.sequences/2))
	high := max(low+1, int64(2*l.sequences))
	var p coefficients
	p.Beta[3] = kvBytes / m.Bandwidth * 1e6
	slope := (step(0, high) - step(0, low)) / float64(high-low)
	p.Beta[2] = max(0, slope-p.Beta[3]*l.context)
	p.Beta[0] = max(0, step(0, low)-slope*float64(low))
	p.Beta[1] = (step(1024, high) - step(1, high)) / 1023
	return p
}
