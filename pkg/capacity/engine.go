package capacity

import (
	"math"

	"blis/pkg/cluster"
	"blis/pkg/kv"
	"blis/pkg/latency"
)

// engine is a deployment's replicas, each with its data-parallel cores as one.
type engine struct {
	replicas int
	model    latency.Model
	caches   bool
	whole    int64 // slots of a call, where a prompt must be computed in one step; 0: no bound
	seats    float64
	budget   int64 // tokens of a step
	chunk    int64 // the most tokens of one sequence in a step
	block    int64
	blocks   int64     // of the cache that one sequence can have
	slots    float64   // of all caches, in tokens
	longest  int64     // input and output of a call; 0: no bound
	window   int64     // of the model's sliding-window layers; 0: none
	hold     kv.Window // what they hold
	lag      float64   // steps that a seat stays empty between two calls
}

func newEngine(d *cluster.Deployment) (*engine, error) {
	m, err := d.LatencyModel()
	if err != nil {
		return nil, err
	}
	c := &d.Engine
	cores := int64(c.DataParallelSize)
	e := &engine{replicas: d.Replicas, model: m, caches: c.EnablePrefixCaching,
		seats: float64(int64(c.MaxNumSeqs) * cores), budget: int64(c.MaxNumBatchedTokens) * cores, chunk: int64(c.MaxNumBatchedTokens),
		block: int64(c.BlockSize), blocks: int64(d.Blocks()), hold: d.Computed.Window.Hold(), longest: int64(c.MaxModelLen)}
	e.slots = float64(e.blocks * e.block * cores)
	if threshold := int64(max(c.LongPrefillTokenThreshold, c.ChunkSize)); threshold > 0 {
		e.chunk = min(e.chunk, threshold)
	}
	if w := d.Computed.Window; w != nil {
		e.window = int64(w.Tokens)
	}
	if !c.EnableChunkedPrefill {
		e.whole = int64(c.MaxNumBatchedTokens)
	}
	if c.AsyncScheduling {
		e.lag = 1
	}
	return e, nil
}

// holds reports whether the call can be served at all.
func (e *engine) holds(c lengths) bool {
	slots := int64(c.input) + int64(c.output) - 1
	blocks := (slots + e.block - 1) / e.block
	blocks += int64(e.hold.Extra) * min(blocks, int64(e.hold.Blocks))
	return (e.longest == 0 || slots < e.longest) && blocks <= e.blocks && (e.whole == 0 || slots <= e.whole)
}

// sums are over calls at the limit, as a mean of one call.
type sums struct {
	prefill, chunks, decode float64
	// stay is the steps that it stays in, held the slots that it holds summed over
	// them.
	stay, held float64
	// batch is what its steps have to look at, together: see latency.Batch.
	context, past, pairs                   float64
	windowContext, windowPast, windowPairs float64
}

// sum adds up the calls; chunk is how much of a prompt one step computes.
func (e *engine) sum(calls []lengths, cached bool, chunk float64) sums {
	var s sums
	for _, c := range calls {
		if e.holds(c) {
			e.add(&s, c, cached, chunk)
		}
	}
	return s
}

func (e *engine) add(s *sums, c lengths, cached bool, chunk float64) {
	found := 0.0
	if cached {
		found = float64(c.cached)
	}
	input, decode := float64(c.input), float64(c.output-1)
	fresh := input - found
	chunks := math.Ceil(fresh / chunk)
	s.prefill += fresh
	s.chunks += chunks
	s.decode += decode
	s.stay += chunks + decode + e.lag
	// A cached prefix is held once for all. A prompt's slots are taken chunk by
	// chunk, those of an answer token by token.
	s.held += float64(chunks*e.size((fresh+fresh/chunks)/2)) + float64(decode*e.size(fresh+decode/2))

	s.context += between(input, input+decode, 0)
	s.past += past(found, fresh, chunks, 0)
	s.pairs += between(found+1, input+1, 0)
	if e.window > 0 {
		w := float64(e.window)
		s.windowContext += between(input, input+decode, w)
		s.windowPast += past(found, fresh, chunks, w)
		s.windowPairs += between(found+1, input+1, w)
	}
}

// size is the slots that a sequence of so many tokens holds: its last block is
// half full in the mean.
func (e *engine) size(tokens float64) float64 {
	held := tokens + float64(e.block)/2
	if e.hold.Extra > 0 {
		held += float64(e.hold.Extra) * min(held, float64(int64(e.hold.Blocks)*e.block))
	}
	return held
}

// between is the sum of min(x, w) over the whole numbers from a up to b, without
// b; w 0 is no bound.
func between(a, b, w float64) float64 {
	if w == 0 || b <= w {
		return float64((b-a)*(a+b-1)) / 2
	}
	if a >= w {
		return float64((b - a) * w)
	}
	return between(a, w, 0) + float64((b-w)*w)
}

// past is the sum, over the equal chunks of a prompt, of what was computed before
// each of them: min(that, w).
func past(found, fresh, chunks, w float64) float64 {
	if w == 0 {
		return float64(chunks*found) + float64(fresh*(chunks-1)/2)
	}
	sum := 0.0
	for k := 0.0; k < chunks; k++ {
		sum += min(w, found+float64(fresh*k/chunks))
	}
	return sum
}

// The limits of a step.
const (
	seats  = "seats"
	budget = "budget"
	memory = "memory"
)

// capacity is how many calls like these all replicas serve in a second, and what
// bounds their steps.
func (e *engine) capacity(calls []lengths, cached bool) (perSecond float64, limit string) {
	n := 0.0
	for _, c := range calls {
		if e.holds(c) {
			n++
		}
	}
	if n == 0 {
		return 0, ""
	}
	// What a step has left for a prompt depends on how many sequences decode, and
	// that on how long prompts take: the two are found in turns, and settle, since
	// each time less of the difference is left.
	chunk := float64(e.chunk)
	var s sums
	var r float64
	for range 8 {
		s = e.sum(calls, cached, chunk)
		r, limit = e.finished(&s, n)
		chunk = min(float64(e.chunk), max(1, math.Floor(float64(e.budget)-float64(r*s.decode)/n)))
	}
	return float64(float64(e.replicas)*r) * 1e6 / e.step(&s, n, r), limit
}

// finished is how many calls the fullest step finishes, of n that are s.
func (e *engine) finished(s *sums, n float64) (r float64, limit string) {
	r, limit = e.seats*n/s.stay, seats
	if b := float64(e.budget) * n / (s.prefill + s.decode); b < r {
		r, limit = b, budget
	}
	if m := e.slots * n / s.held; m < r {
		r, limit = m, memory
	}
	return r, limit
}

// step is the mean time, in µs, of steps that finish r calls each.
func (e *engine) step(s *sums, n, r float64) float64 {
	per := r / n
	whole := func(x float64) int64 { return int64(math.Round(x)) }
	decode := latency.Batch{Decode: whole(per * s.decode), Context: whole(per * s.context), WindowContext: whole(per * s.windowContext)}
	// with is the share of the steps that have chunks.
	with := min(1, per*s.chunks)
	mixed := decode
	each := per / with
	mixed.Prefill, mixed.Chunks = max(1, whole(each*s.prefill)), max(1, whole(each*s.chunks))
	mixed.Past, mixed.Pairs = whole(each*s.past), whole(each*s.pairs)
	mixed.WindowPast, mixed.WindowPairs = whole(each*s.windowPast), whole(each*s.windowPairs)
	us := float64(with * float64(e.model.Step(mixed)))
	if with < 1 && decode.Decode > 0 {
		us += float64((1 - with) * float64(e.model.Step(decode)))
	}
	return us
}
