package capacity

import (
	"math"

	"blis/pkg/cluster"
	"blis/pkg/kv"
	"blis/pkg/latency"
)

// engine describes the replicas of a deployment. The data-parallel engine cores of a
// replica count as one.
type engine struct {
	replicas  int
	model     latency.Model
	caching   bool
	maxPrompt int64   // tokens of a prompt without chunked prefill; 0: no limit
	maxSeqs   float64 // batch slots
	maxTokens int64   // tokens of a step
	maxChunk  int64   // tokens of one sequence in a step
	maxLength int64   // input plus output tokens of a call; 0: no limit

	blockSize, blocks int64   // of the KV cache that one sequence can use
	kvTokens          float64 // capacity of all KV caches of a replica

	window int64                // of the model's sliding-window layers; 0: none
	groups []kv.Group           // of the KV cache, nil if there is one of full attention only
	needed func(tokens int) int // blocks for a lone call
	// A decode step of a sequence verifies drafts and gives 1 + accepted tokens on average; 0 without speculation.
	drafts, accepted float64
	asyncBubble      float64 // steps for which a batch slot stays empty between two calls
}

func newEngine(d *cluster.Deployment) (*engine, error) {
	m, err := d.LatencyModel()
	if err != nil {
		return nil, err
	}
	c := &d.Engine
	cores := int64(c.DataParallelSize)
	e := &engine{
		replicas: d.Replicas, model: m, caching: c.EnablePrefixCaching,
		maxSeqs: float64(int64(c.ActiveSeqs()) * cores), maxTokens: int64(c.MaxNumBatchedTokens) * cores,
		maxChunk: int64(c.MaxNumBatchedTokens), maxLength: int64(c.MaxModelLen),
		blockSize: int64(c.BlockSize), blocks: int64(d.UsableBlocks()), window: int64(d.Computed.WindowTokens),
		groups: d.KVGroups(), needed: d.SequenceBlocks(),
	}
	if s := c.SpeculativeConfig; s != nil {
		e.drafts, e.accepted = float64(s.NumSpeculativeTokens), s.MeanAcceptanceLength()-1
	}
	e.kvTokens = float64(e.blocks * e.blockSize * cores)
	if threshold := int64(max(c.LongPrefillTokenThreshold, c.ChunkSize)); threshold > 0 {
		e.maxChunk = min(e.maxChunk, threshold)
	}
	if !c.EnableChunkedPrefill {
		e.maxPrompt = int64(c.MaxNumBatchedTokens)
	}
	if c.AsyncScheduling {
		e.asyncBubble = 1
	}
	return e, nil
}

// accepts reports whether the engine can serve a call of these lengths.
func (e *engine) accepts(c lengths) bool {
	tokens := int64(c.input) + int64(c.output) - 1
	return (e.maxLength == 0 || tokens < e.maxLength) && int64(e.needed(int(tokens))) <= e.blocks &&
		(e.maxPrompt == 0 || tokens <= e.maxPrompt)
}

// totals sums over calls what they need at saturation.
type totals struct {
	calls                   float64
	prefill, chunks, decode float64
	// longest is the most tokens of a prompt that are not cached.
	longest float64
	// residency is the number of steps that calls spend in the batch, kv the KV tokens
	// that they hold summed over these steps.
	residency, kv float64
	// The others are the fields of latency.Batch, summed over all steps.
	context, priorContext, pairs                   float64
	windowContext, windowPriorContext, windowPairs float64
}

// total adds up the calls; chunk is how many tokens of a prompt one step computes.
func (e *engine) total(calls []lengths, cached bool, chunk float64) totals {
	var t totals
	for _, c := range calls {
		e.add(&t, c, cached, chunk)
	}
	return t
}

func (e *engine) add(t *totals, c lengths, cached bool, chunk float64) {
	hit := 0.0
	if cached {
		hit = float64(min(c.cached, c.input-1)) // the last token is always computed
	}
	input, decode := float64(c.input), float64(c.output-1)
	missed, steps := input-hit, decode/(1+e.accepted)
	chunks := math.Ceil(missed / chunk)
	t.calls++
	t.prefill += missed
	t.longest = max(t.longest, missed)
	t.chunks += chunks
	t.decode += steps
	t.residency += chunks + steps + e.asyncBubble
	// A cached prefix is stored once for all calls. A prompt's blocks are allocated
	// chunk by chunk, those of an output token by token.
	t.kv += float64(chunks*e.allocated((missed+missed/chunks)/2, missed/chunks)) +
		float64(steps*e.allocated(missed+float64(decode/2), 1))

	t.context += between(input, input+decode, 0) / (1 + e.accepted)
	t.priorContext += priorContext(hit, missed, chunks, 0)
	t.pairs += between(hit+1, input+1, 0)
	if e.window > 0 {
		w := float64(e.window)
		t.windowContext += between(input, input+decode, w) / (1 + e.accepted)
		t.windowPriorContext += priorContext(hit, missed, chunks, w)
		t.windowPairs += between(hit+1, input+1, w)
	}
}

// allocated is the KV capacity, in tokens, that a sequence of n tokens takes while chunk
// of them are computed: on average its last block is half full. Layers with a window hold
// it and the chunk, and on average half a block before the window.
func (e *engine) allocated(n, chunk float64) float64 {
	if e.groups == nil {
		return n + float64(float64(e.blockSize)/2)
	}
	return e.allocatedGroups(n, chunk)
}

func (e *engine) allocatedGroups(n, chunk float64) float64 {
	sum := 0.0
	for _, g := range e.groups {
		size := float64(g.BlockSize)
		tokens := n
		switch g.Kind {
		case kv.FullAttention:
		case kv.RecurrentState:
			tokens = size / 2 // one block
		default:
			tokens = min(n, float64(g.Window)-1+chunk+float64(size/2))
		}
		sum += float64((tokens + float64(size/2)) * (float64(e.blockSize) / size))
	}
	return sum
}

// between is the sum of min(x, w) over the integers in [a, b); w = 0 means no limit.
func between(a, b, w float64) float64 {
	if w == 0 || b <= w {
		return float64((b-a)*(a+b-1)) / 2
	}
	if a >= w {
		return float64((b - a) * w)
	}
	return between(a, w, 0) + float64((b-w)*w)
}

// priorContext is the sum, over equal chunks of a prompt, of min(tokens before the
// chunk, w); w = 0 means no limit.
func priorContext(hit, missed, chunks, w float64) float64 {
	if w == 0 {
		return float64(chunks*hit) + float64(missed*(chunks-1)/2)
	}
	sum := 0.0
	for k := 0.0; k < chunks; k++ {
		sum += min(w, hit+float64(missed*k/chunks))
	}
	return sum
}

// What limits a step.
const (
	limitSeqs   = "max_num_seqs"
	limitTokens = "max_num_batched_tokens"
	limitKV     = "kv_cache"
)

// capacity is how many calls like these, which the engine accepts, all replicas serve
// per second, and what limits their steps.
func (e *engine) capacity(calls []lengths, cached bool) (perSecond float64, limit string) {
	// The tokens that a step has left for a prompt depend on how many sequences decode,
	// and that number depends on how long prompts take. The iteration converges because
	// each round leaves a smaller difference.
	chunk := float64(e.maxChunk)
	var t totals
	var r float64
	for range 8 {
		if t = e.total(calls, cached, chunk); t.calls == 0 {
			return 0, ""
		}
		r, limit = e.finishedPerStep(&t)
		left := float64(e.maxTokens) - float64(r*t.decode*(1+e.drafts))/t.calls
		next := min(float64(e.maxChunk), max(1, math.Floor(left)))
		if next == chunk || min(next, chunk) >= t.longest { // prompts are one chunk with both
			break
		}
		chunk = next
	}
	return float64(float64(e.replicas)*r) * 1e6 / e.meanStep(&t, r), limit
}

// finishedPerStep is how many calls a saturated step finishes.
func (e *engine) finishedPerStep(t *totals) (r float64, limit string) {
	r, limit = e.maxSeqs*t.calls/t.residency, limitSeqs
	if x := float64(e.maxTokens) * t.calls / (t.prefill + float64(t.decode*(1+e.drafts))); x < r {
		r, limit = x, limitTokens
	}
	if x := e.kvTokens * t.calls / t.kv; x < r {
		r, limit = x, limitKV
	}
	return r, limit
}

// meanStep is the mean time, in µs, of steps that finish r calls each. The mean batch
// has fractions of tokens and sequences: times between whole batches are interpolated.
func (e *engine) meanStep(t *totals, r float64) float64 {
	perCall := r / t.calls
	decode := float64(perCall * t.decode)
	mixedShare := min(1, perCall*t.chunks) // of steps with prompt chunks
	prefill := max(1, perCall/mixedShare*t.prefill)
	us := float64(mixedShare * interpolate(decode, func(d float64) float64 {
		return interpolate(prefill, func(p float64) float64 { return e.stepUS(t, d, p) })
	}))
	if mixedShare < 1 && decode > 0 {
		us += float64((1 - mixedShare) * interpolate(decode, func(d float64) float64 { return e.stepUS(t, d, 0) }))
	}
	return us
}

// interpolate is f at x, linear between the integers.
func interpolate(x float64, f func(float64) float64) float64 {
	low := math.Floor(x)
	if low == x {
		return f(x)
	}
	return float64((low+1-x)*f(low)) + float64((x-low)*f(low+1))
}

// stepUS is the time, in µs, of a step with integer numbers of decoding sequences and
// prompt tokens, whose contexts are the mean ones.
func (e *engine) stepUS(t *totals, decode, prefill float64) float64 {
	b := latency.Batch{Decode: int64(decode), Prefill: int64(prefill), Drafts: int64(decode * e.drafts),
		Proposals: int64(e.drafts)}
	part := func(total, share float64) int64 { return int64(math.Round(total * share)) }
	if decode > 0 {
		share := decode / t.decode
		b.Context, b.WindowContext = part(t.context, share), part(t.windowContext, share)
	}
	if prefill > 0 {
		share := prefill / t.prefill
		b.Chunks = max(1, part(t.chunks, share))
		b.PriorContext, b.Pairs = part(t.priorContext, share), part(t.pairs, share)
		b.WindowPriorContext, b.WindowPairs = part(t.windowPriorContext, share), part(t.windowPairs, share)
	}
	return float64(e.model.Step(b))
}
