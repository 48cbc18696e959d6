package reference

import "slices"

// Batch is what the time of a step depends on: sums over the sequences that it
// computes. A sequence decodes, or it computes a chunk of its prompt or of what
// a preemption made it compute again.
type Batch struct {
	// Prefill counts the tokens of all chunks, Decode the sequences that decode,
	// Context sums the tokens that those had computed before.
	Prefill, Decode, Context int64
	// Chunks counts the chunks, Past sums the tokens that their sequences had
	// computed before, and Pairs the tokens that each of their tokens looks at:
	// all before it and itself.
	Chunks, Past, Pairs int64
	// The same sums, where no sequence has and no token looks at more than
	// Config.Window tokens.
	WindowContext, WindowPast, WindowPairs int64
}

// decode adds a sequence that has context tokens computed and decodes one.
func (b *Batch) decode(context, window int) {
	b.Decode++
	b.Context += int64(context)
	b.WindowContext += int64(min(context, window))
}

// chunk adds n tokens of a sequence that has past tokens computed.
func (b *Batch) chunk(n, past, window int) {
	b.Chunks++
	b.Past += int64(past)
	b.WindowPast += int64(min(past, window))
	for position := past; position < past+n; position++ {
		b.Prefill++
		b.Pairs += int64(position + 1)
		b.WindowPairs += int64(min(position+1, window))
	}
}

// Weighted is a step time: a constant, then so much for each of the sums of a
// batch, in the order of its fields.
func Weighted(weights [10]int64) func(Batch) int64 {
	return func(b Batch) int64 {
		time := weights[0]
		for i, sum := range []int64{
			b.Prefill, b.Decode, b.Context, b.Chunks, b.Past, b.Pairs,
			b.WindowContext, b.WindowPast, b.WindowPairs,
		} {
			time += weights[1+i] * sum
		}
		return time
	}
}

// stepTime is how long a step takes. Products are rounded before they are
// added, on every machine.
func (c *Config) stepTime(b Batch) int64 {
	if c.StepTime != nil {
		return max(1, c.StepTime(b))
	}
	t := c.Beta[0] + float64(c.Beta[1]*float64(b.Prefill))
	t += float64(c.Beta[2] * float64(b.Decode))
	if len(c.Beta) == 4 {
		t += float64(c.Beta[3] * float64(b.Context))
	}
	return max(1, roundHalfUp(t))
}

// batch is what one step computes.
type batch struct {
	Step
	parts  []part
	budget int // tokens that it may still take
}

// part is what a step computes of one request.
type part struct {
	request *request
	tokens  int
	// decodes is a part that decodes, after past tokens.
	decodes bool
	past    int
	// yields is a part whose end gives the request one more token.
	yields bool
}

// has reports whether a batch computes something of a request; one that is not
// there does not.
func (b *batch) has(q *request) bool {
	return b != nil && slices.ContainsFunc(b.parts, func(p part) bool { return p.request == q })
}
