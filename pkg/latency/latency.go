// Package latency models a replica's times: before a request reaches its queue, for a step of a
// batch, and from a token to the client.
package latency

import (
	"fmt"

	"blis/pkg/des"
	"blis/pkg/registry"
)

// Batch holds the totals over a batch that determine a step's duration. A sequence takes part
// either with a chunk of prompt (or of recomputed tokens) or with its one newest token.
type Batch struct {
	// Prefill counts the tokens of all chunks, Decode the sequences that compute their newest token.
	// Context is the number of tokens that the latter had computed before, LongestContext that of the one with
	// most. If it is 0 they have equal contexts.
	Prefill, Decode, Context, LongestContext int64
	// Chunks counts the chunks. PriorContext is the number of tokens that their sequences had computed
	// before. Pairs is the sum, over the tokens of all chunks, of the tokens each attends to including
	// itself: n·c + n(n+1)/2 for a chunk of n tokens after c.
	Chunks, PriorContext, Pairs int64
	// The same for layers with a sliding window of W tokens: sums of min(c, W), and pairs with each
	// token attending to at most W. They are 0 if the model has no such layers.
	WindowContext, WindowPriorContext, WindowPairs int64
	// Drafts are tokens that speculative decoding verifies, besides the newest token of each sequence. Proposals is the
	// number of tokens that the drafter proposes for each sequence after the step.
	Drafts, Proposals int64
	// Adapters is the number of LoRA adapters that the sequences have.
	Adapters int64
	// In the batch of one data-parallel rank, RankTokens are the tokens that all ranks compute in this step, WidestRank
	// those of the rank with most, and RankChunks the chunks of all. They are 0 where the ranks are one engine.
	RankTokens, WidestRank, RankChunks int64
}

// Model is a latency model. All times are µs.
type Model interface {
	// Queueing is the time from the routing decision to the replica's queue.
	Queueing(inputTokens int64) des.Time
	// Step is the duration of a step, at least 1.
	Step(Batch) des.Time
	// Output is the time from the end of a step with the given number of decode sequences until clients
	// see its tokens. A replica's clients see the tokens of a step at least 1 µs after those of the
	// step before.
	Output(decode int64) des.Time
}

// Coefficients are the parameters of a latency model: α0, α2 and β0 in µs, α3 and β2 in µs per
// decoding sequence, the others in µs per token.
type Coefficients struct {
	Alpha []float64
	Beta  []float64
	// Replica is the input of the roofline model.
	Replica *Replica
	// Operators is the input of the operators model; Factors adjust it, nil does not.
	Operators *Operators
	Factors   *Factors
	// Table is the input of the table model.
	Table *Table
}

// Models are the latency models by name.
var Models = registry.Table[func(Coefficients) (Model, error)]{
	{Name: "linear", Value: newLinear,
		Doc: "queueing = α0 + α1·input; step = β0 + β1·prefill + β2·decode [+ β3·context]; output = α2 [+ α3·decode]"},
	{Name: "roofline", Value: newRoofline,
		Doc: "step from the FLOPs, bytes and collectives of the model on its GPUs; α as in linear"},
	{Name: "operators", Value: newAdjustedOperators,
		Doc: "step from measured kernels of the model's shapes on its GPUs, and a model of the host; α as in linear"},
	{Name: "table", Value: newTable,
		Doc: "step interpolated in a measured grid of prefill, decode and context; α as in linear"},
}

// check returns an error for the first invalid coefficient.
func (c Coefficients) check() error {
	if err := c.checkAlpha(); err != nil {
		return err
	}
	if len(c.Beta) != 3 && len(c.Beta) != 4 {
		return fmt.Errorf("beta_us must have 3 or 4 numbers, has %d", len(c.Beta))
	}
	return checkEach("beta_us", c.Beta)
}

// checkAlpha checks the coefficients that all models have.
func (c Coefficients) checkAlpha() error {
	if len(c.Alpha) != 3 && len(c.Alpha) != 4 {
		return fmt.Errorf("alpha_us must have 3 or 4 numbers, has %d", len(c.Alpha))
	}
	return checkEach("alpha_us", c.Alpha)
}

// overhead holds α, the times of a request outside of steps.
type overhead [4]float64

func newOverhead(alpha []float64) (o overhead) {
	copy(o[:], alpha)
	return o
}

// The float64 conversions, here and in all models, keep the compiler from fusing products into
// sums, which would give other bits on other processors.

func (o *overhead) Queueing(input int64) des.Time {
	return micros(o[0] + float64(o[1]*float64(input)))
}

// Output grows with the number of sequences where a server hands out a step's tokens one after the
// other, as vLLM's frontend does (vllm/v1/engine/output_processor.py, v0.15.1: one process, in
// batch order, in which a new request is last).
func (o *overhead) Output(decode int64) des.Time {
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

// maxCoefficient is 1000 s per token: far above any machine and far below what overflows a step.
const maxCoefficient = 1e9

// maxTime is the longest time that a model returns, about 30 years, so that sums of many fit a
// des.Time.
const maxTime = 1e15

func micros(us float64) des.Time { return des.Micros(min(us, maxTime)) }
