// Package latency says how long a replica takes: before a request reaches its
// queue, for a step of a batch, and from a token to the client.
package latency

import (
	"fmt"
	"math"

	"blis/pkg/des"
	"blis/pkg/registry"
)

// Batch is what a step's duration depends on: sums over the batch, never its
// members. A sequence takes part either with a chunk of prompt (or of what it
// recomputes) or with its one newest token.
type Batch struct {
	// Prefill counts the tokens of all chunks, Decode the sequences that compute
	// their newest token, Context is the sum of the tokens those had computed
	// before.
	Prefill, Decode, Context int64
	// Chunks counts the chunks. Past is the sum of the tokens that their
	// sequences had computed before; Pairs counts, over the tokens of all chunks,
	// the tokens that each attends to, itself included: n·c + n(n+1)/2 for a
	// chunk of n after c.
	Chunks, Past, Pairs int64
	// The same for layers that see only a window of W tokens: the sums of
	// min(c, W), and each token attending to at most W. They are 0 where the
	// model has no such layers.
	WindowContext, WindowPast, WindowPairs int64
}

// Model is a latency model. All times are µs.
type Model interface {
	// Queueing is the time from the routing decision to the replica's queue.
	Queueing(inputTokens int64) des.Time
	// Step is the duration of one step, at least 1.
	Step(Batch) des.Time
	// Output is the time from a step's end until clients see its tokens, of a step
	// with so many decode sequences. Of one replica each step's tokens are seen at least 1
	// after those of the step before.
	Output(decode int64) des.Time
}

// Coefficients are the parameters of a latency model: α0, α2 and β0 in µs, α3 and β2 in
// µs a sequence that decodes, the others in µs a token.
type Coefficients struct {
	Alpha []float64
	Beta  []float64
	// Replica is what a roofline is computed from.
	Replica *Replica
	// Table is what a table is made of.
	Table *Table
}

// Models are the latency models by name.
var Models = registry.Table[func(Coefficients) (Model, error)]{
	{Name: "linear", Doc: "queueing = α0 + α1·input; step = β0 + β1·prefill + β2·decode [+ β3·context]; α2 [+ α3·decode] from a token to the client", Value: newLinear},
	{Name: "roofline", Doc: "step = the FLOPs, the bytes and the exchanges that the model's architecture asks of its GPUs; α as in linear", Value: newRoofline},
	{Name: "table", Doc: "step = a measured grid over prefill, decode and context, linear between its points; α as in linear", Value: newTable},
}

// check reports the first coefficient that no machine can have.
func (c Coefficients) check() error {
	if err := c.checkAlpha(); err != nil {
		return err
	}
	if len(c.Beta) != 3 && len(c.Beta) != 4 {
		return fmt.Errorf("beta_us must have 3 or 4 numbers, has %d", len(c.Beta))
	}
	return checkEach("beta_us", c.Beta)
}

// checkAlpha is check for what all models have.
func (c Coefficients) checkAlpha() error {
	if len(c.Alpha) != 3 && len(c.Alpha) != 4 {
		return fmt.Errorf("alpha_us must have 3 or 4 numbers, has %d", len(c.Alpha))
	}
	return checkEach("alpha_us", c.Alpha)
}

// outside is what a request waits for outside of steps: α.
type outside [4]float64

func newOutside(alpha []float64) (o outside) {
	copy(o[:], alpha)
	return o
}

// The conversions keep the compiler from fusing a product with the sum around
// it, which would give other bits on other processors; so in all models.

func (o *outside) Queueing(input int64) des.Time {
	return micros(o[0] + float64(o[1]*float64(input)))
}

// Output grows with the step's sequences where a server hands out a step's tokens one
// after the other, as vLLM's frontend does (vllm/v1/engine/output_processor.py,
// v0.15.1: one process, in the order of the batch, in which a new request is last).
func (o *outside) Output(decode int64) des.Time {
	return micros(o[2] + float64(o[3]*float64(decode)))
}

func checkEach(name string, values []float64) error {
	for i, v := range values {
		if !(v >= 0) || v > maxCoefficient {
			return fmt.Errorf("%s[%d] must be between 0 and %g, is %g", name, i, maxCoefficient, v)
		}
	}
	return nil
}

// maxCoefficient is a thousand seconds a token, far above any machine and far
// below what overflows a step.
const maxCoefficient = 1e9

// maxTime is the longest time a model yields, about 30 years: a sum of many
// of them still fits a des.Time.
const maxTime = 1e15

func micros(us float64) des.Time { return des.Micros(math.Min(us, maxTime)) }
