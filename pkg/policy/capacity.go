package policy

// Engine is what an auto-scaling policy knows of a replica of a deployment.
type Engine struct {
	// Stage is the part of a request that it computes.
	Stage EngineStage
	// MaxBatchedTokens is the maximum number of tokens of a step, MaxSeqs that of sequences in one, KVTokens the number
	// of tokens for which it has KV blocks.
	MaxBatchedTokens, MaxSeqs, KVTokens int64
	// StepUS estimates the duration of a step in µs, at least 1. It computes prefill tokens of a prompt without cached
	// ones, and the next tokens of decode sequences that have context tokens each.
	StepUS func(prefill, decode, context int64) int64
}

// EngineStage is a part of a request.
type EngineStage uint8

// The parts: a whole request or, in a disaggregated deployment, its prompt or its output.
const (
	WholeRequest EngineStage = iota
	PrefillStage
	DecodeStage
)

// maxBatchSizes is the number of batch sizes that are tried.
const maxBatchSizes = 128

// shape is that of a mean request: tokens of its prompt, those of them that are not cached, and output tokens, all at
// least 1.
type shape struct{ input, uncached, output int64 }

// latencyTargets are in µs.
type latencyTargets struct{ ttft, tpot float64 }

// capacity is the rate that a replica sustains, in requests per second, 0 if no batch fits, and whether it is within
// the targets.
type capacity struct {
	rate   float64
	inTime bool
}

// capacity is the highest rate over batch sizes within the targets or, if there is none, over all. In a batch of n
// sequences each is at the middle of its output, and as many prompt tokens are computed in each step as n sequences
// need that end one after the other.
//
// The rule is that of Dynamo's planner (planner/core/perf_model/engine_query.py, find_engine_capacity_rps, of ai-dynamo
// 1.6.1).
func (e *Engine) capacity(of shape, t latencyTargets) (best capacity) {
	most := e.maxBatch(of)
	for k := range min(most, maxBatchSizes) {
		n := k + 1
		if most > maxBatchSizes {
			n = 1 + k*(most-1)/(maxBatchSizes-1)
		}
		c := e.batchCapacity(of, t, n)
		if c.inTime && !best.inTime || c.inTime == best.inTime && c.rate > best.rate {
			best = c
		}
	}
	return best
}

// maxBatch is the maximum number of requests that are computed together, 0 if none fits.
func (e *Engine) maxBatch(of shape) int64 {
	if e.Stage == PrefillStage {
		return min(e.MaxSeqs, max(1, e.MaxBatchedTokens/of.uncached))
	}
	decode := min(e.MaxSeqs, e.KVTokens/of.context())
	if e.Stage == WholeRequest {
		return min(decode, e.MaxBatchedTokens-1)
	}
	return decode
}

// context is the number of tokens of a sequence in the middle of its output.
func (s shape) context() int64 { return s.input + s.output/2 }

// batchCapacity is that of a batch size; the rate is 0 if the prompts do not fit into its steps.
func (e *Engine) batchCapacity(of shape, t latencyTargets, n int64) capacity {
	rate := func(us float64) float64 { return float64(n) * 1e6 / us }
	switch e.Stage {
	case PrefillStage:
		us := e.prefillUS(of.uncached*n, 0, 0)
		return capacity{rate(us), us <= t.ttft}
	case DecodeStage:
		us := float64(e.StepUS(0, n, of.context()))
		return capacity{rate(us * float64(of.output)), us <= t.tpot}
	}
	prefill := (n*of.uncached + of.output - 1) / of.output // for each step
	if prefill > e.MaxBatchedTokens-n {
		return capacity{}
	}
	us := float64(e.StepUS(prefill, n, of.context()))
	first := e.prefillUS(prefill+of.uncached, n, of.context())
	return capacity{rate(us * float64(of.output)), first <= t.ttft && us <= t.tpot}
}

// prefillUS is the time in µs to compute prompt tokens while n sequences decode.
func (e *Engine) prefillUS(tokens, n, context int64) (us float64) {
	if full := tokens / e.MaxBatchedTokens; full > 0 {
		us = float64(float64(full) * float64(e.StepUS(e.MaxBatchedTokens, n, context)))
	}
	if rest := tokens % e.MaxBatchedTokens; rest > 0 {
		us += float64(e.StepUS(rest, n, context))
	}
	return us
}
