package reference

import "slices"

// Batch holds the sums over the sequences of a step that determine its time. A sequence either
// decodes or computes a chunk: of its prompt, or of tokens that a preemption discarded.
type Batch struct {
	// Prefill is the number of tokens in chunks, Decode the number of decoding sequences, and
	// Context the tokens that these had computed before. LongestContext is the most tokens that one of
	// them had computed.
	Prefill, Decode, Context, LongestContext int64
	// Chunks is the number of chunks. PriorContext sums the tokens that their sequences had computed
	// before. Pairs sums, over the tokens of chunks, the tokens that each attends to: all before it
	// and itself.
	Chunks, PriorContext, Pairs int64
	// The same sums with context and attention limited to Config.Window tokens.
	WindowContext, WindowPriorContext, WindowPairs int64
	// Drafts are verified tokens, Proposals the drafts for each sequence after the step.
	Drafts, Proposals int64
	// Adapters is the number of adapters of its requests.
	Adapters int64
	// In the batch of a data-parallel rank: the tokens of all ranks, of the one with most, and the chunks of all.
	RankTokens, WidestRank, RankChunks int64
}

// decode adds a sequence that decodes one token after context computed ones.
func (b *Batch) decode(context, window int) {
	b.Decode++
	b.Context += int64(context)
	b.LongestContext = max(b.LongestContext, int64(context))
	b.WindowContext += int64(min(context, window))
}

// chunk adds n tokens of a sequence that has past tokens computed.
func (b *Batch) chunk(n, past, window int) {
	b.Chunks++
	b.PriorContext += int64(past)
	b.WindowPriorContext += int64(min(past, window))
	for position := past; position < past+n; position++ {
		b.Prefill++
		b.Pairs += int64(position + 1)
		b.WindowPairs += int64(min(position+1, window))
	}
}

// weighted returns a step-time function: a constant plus a weighted sum of the fields of a batch, in
// their order.
func weighted(weights [11]int64) func(Batch) int64 {
	return func(b Batch) int64 {
		time := weights[0] + weights[1]*b.Drafts + weights[2]*b.Proposals
		for i, sum := range []int64{
			b.Prefill, b.Decode, b.Context, b.LongestContext, b.Chunks, b.PriorContext, b.Pairs,
			b.WindowContext, b.WindowPriorContext, b.WindowPairs,
		} {
			time += weights[1+i] * sum
		}
		return time
	}
}

// stepTime is the duration of a step. Products are rounded before they are added, so every machine
// computes the same.
func (c *Config) stepTime(b Batch) int64 {
	if c.StepTime != nil {
		return max(1, c.StepTime(b))
	}
	t := c.Beta[0] + float64(c.Beta[1]*float64(b.Prefill+b.Drafts))
	t += float64(c.Beta[2] * float64(b.Decode))
	if len(c.Beta) == 4 {
		t += float64(c.Beta[3] * float64(b.Context))
	}
	us := max(1, roundHalfUp(t))
	if b.Adapters > 0 {
		us = roundHalfUp(float64(float64(us)*c.LoRA.Factor) + float64(c.LoRA.EachUS*float64(b.Adapters)))
	}
	if s := c.Speculation; s != nil && b.Proposals > 0 {
		requests := float64(b.Decode + b.Chunks)
		us += roundHalfUp(float64(float64(b.Proposals) * (s.DraftUS[0] + float64(s.DraftUS[1]*requests))))
	}
	return us
}

// batch is what one step computes.
type batch struct {
	Step
	entries []entry
	budget  int // tokens left
	// encodes are the items that it encodes, with encoderTokens.
	encodes       []encodedItem
	encoderTokens int
	// notBefore is when the step starts at the earliest. stores begin when it ends.
	notBefore int64
	stores    []*transfer
	// stages has when each stage of a Pipeline begins and ends to compute it.
	stages [][2]int64
	// storesLeft: stores of requests that have left begin with it.
	storesLeft bool
	// usesDrafts: a request in it may use the drafts after it. noPadding: the budget lacks room for padding.
	usesDrafts, noPadding bool
	// deferred: its masks are filled when the step before has ended. They are filled at masksAt.
	deferred bool
	masksAt  int64
}

// entry is the work of a step for one request.
type entry struct {
	request *request
	tokens  int
	// isDecode: the entry decodes, after computed tokens.
	isDecode bool
	computed int
	// emitsToken: the request gets one more output token when the step ends.
	emitsToken bool
	// drafts are the last of its tokens. stale: the request was preempted while the step was in progress. admitted: it
	// did not run before. wasInPrompt: the last step of it had left tokens to compute.
	drafts                               int
	padded, stale, admitted, wasInPrompt bool
	// follows: the step before gives the request a token.
	follows bool
}

// contains reports whether the batch computes something of a request; a nil batch does not.
func (b *batch) contains(q *request) bool {
	return b != nil && slices.ContainsFunc(b.entries, func(p entry) bool { return p.request == q })
}
