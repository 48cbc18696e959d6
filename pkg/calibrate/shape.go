package calibrate

import (
	"fmt"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/latency"
)

// shape is what the coefficients of a step multiply: sequences, their context and prompt tokens, or
// instead of these, where the kernels of the model are known, the kernels' time of prefill.
type shape struct {
	operators *latency.Operators // nil: unknown
	kernels   latency.Model      // of the operators
	id        string             // of the operators
}

// newShape returns the shape with the kernels of a deployment.
func newShape(o *latency.Operators) (s shape, err error) {
	unfitted := hardware.Latency{Model: "operators", AlphaUS: []float64{0, 0, 0}}
	s.operators, s.id = o, o.KernelsID()
	s.kernels, err = unfitted.Build(nil, o)
	return s, err
}

// latency is what files have of coefficients, with a table of steps instead of β where there is one.
func (s shape) latency(c coefficients, table *latency.Table) hardware.Latency {
	switch {
	case table != nil:
		return hardware.Latency{Model: "table", AlphaUS: c[:beta0], Table: table}
	case s.kernels != nil:
		return hardware.Latency{Model: "operators", AlphaUS: c[:beta0], Factors: &latency.Factors{StepUS: c[beta0],
			Prefill: c[beta1], SequenceUS: c[beta2], ContextUS: c[beta3], Kernels: s.id}}
	}
	return hardware.Latency{Model: "linear", AlphaUS: c[:beta0], BetaUS: c[beta0:]}
}

// model builds the latency model of coefficients.
func (s shape) model(c coefficients, table *latency.Table) (latency.Model, error) {
	l := s.latency(c, table)
	m, err := l.Build(nil, s.operators)
	if err != nil {
		return nil, fmt.Errorf("fitted coefficients: %w", err)
	}
	return m, nil
}

// perToken is the time of a prompt token at beta[1] = 1, in µs, as a mean over a prompt.
func (s shape) perToken(prompt float64) float64 {
	if s.kernels == nil {
		return 1
	}
	n := int64(max(2, prompt))
	b := latency.Batch{Prefill: n, Chunks: 1, Pairs: n * (n + 1) / 2}
	return latency.PrefillTime(s.kernels, b) / float64(n)
}

// decodeSlope is the kernels' time of another sequence, as a mean from a load to four times as many
// sequences, or the maximum of the engine.
func (s shape) decodeSlope(l load, maximum int) float64 {
	low := int64(max(1, l.sequences))
	high := max(low+1, min(4*low, int64(maximum)))
	at := func(n int64) float64 {
		return float64(s.kernels.Step(latency.Batch{Decode: n, Context: int64(float64(n) * l.context)}))
	}
	return (at(high) - at(low)) / float64(high-low)
}

// factorNames replaces the names of β by those of the factors.
var factorNames = strings.NewReplacer("beta[0]", "step_us", "beta[1]", "prefill", "beta[2]", "sequence_us",
	"beta[3]", "context_us")

// rename is a text with the names of the coefficients as files have them.
func (s shape) rename(text string) string {
	if s.kernels == nil {
		return text
	}
	return factorNames.Replace(text)
}
