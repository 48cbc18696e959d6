package capacity

import (
	"slices"
	"strings"
	"testing"

	"blis/pkg/kv"
	"blis/pkg/latency"
)

// TestTotalsByHand: of a prompt of 40 tokens, 10 are cached and 30 computed in two chunks of 15, and ten steps decode.
// The sums are over contexts of 40 to 49, over chunks that begin at 10 and 25, and over tokens with 11 to 40 pairs;
// with a window of 20 each is at most that. Blocks are half full, so that a chunk holds 22.5 + 5 tokens on average,
// and a decode step 35 + 5.
func TestTotalsByHand(t *testing.T) {
	e := &engine{blockSize: 10, asyncBubble: 1}
	call := lengths{input: 40, output: 11, cached: 10}
	want := totals{calls: 1, prefill: 30, chunks: 2, decode: 10, longest: 30, residency: 13, kv: 2*27.5 + 10*40,
		context: 445, priorContext: 35, pairs: 765}
	if got := e.total([]lengths{call}, true, 16); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	e.accepted = 1 // a draft in each step: half as many steps
	want.decode, want.residency, want.kv, want.context = 5, 8, 2*27.5+5*40, 222.5
	if got := e.total([]lengths{call}, true, 16); got != want {
		t.Errorf("with drafts: %+v, want %+v", got, want)
	}
	e.accepted = 0
	want.decode, want.residency, want.kv, want.context = 10, 13, 2*27.5+10*40, 445
	e.window = 20
	want.windowContext, want.windowPriorContext, want.windowPairs = 200, 30, 135+420
	if got := e.total([]lengths{call}, true, 16); got != want {
		t.Errorf("with a window: %+v, want %+v", got, want)
	}
	twice := e.total([]lengths{call, call}, true, 16)
	if twice.longest != 30 || twice.kv != 2*want.kv || twice.context != 890 || twice.residency != 26 ||
		twice.windowPairs != 2*want.windowPairs {
		t.Errorf("two calls: %+v", twice)
	}
	// Without prefixes the chunks are three of 40/3, and the last token of a cached prompt is computed.
	if got := e.total([]lengths{call}, false, 16); got.prefill != 40 || got.chunks != 3 || got.pairs != 820 {
		t.Errorf("uncached: %+v", got)
	}
	if got := e.total([]lengths{{input: 5, output: 1, cached: 9}}, true, 16); got.prefill != 1 || got.decode != 0 {
		t.Errorf("all cached: %+v", got)
	}
}

// TestAccepts: a call has its input and all but one of its output tokens in the cache.
func TestAccepts(t *testing.T) {
	for _, c := range []struct {
		maxLength, maxPrompt int64
		call                 lengths
		want                 bool
	}{
		{100, 0, lengths{input: 90, output: 10}, true}, {100, 0, lengths{input: 91, output: 10}, false},
		{100, 90, lengths{input: 80, output: 11}, true}, {100, 90, lengths{input: 81, output: 11}, false},
		{0, 0, lengths{input: 120, output: 1}, true}, {0, 0, lengths{input: 121, output: 1}, false},
	} {
		e := &engine{maxLength: c.maxLength, maxPrompt: c.maxPrompt, blocks: 12,
			needed: func(tokens int) int { return (tokens + 9) / 10 }}
		if got := e.accepts(c.call); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// spy is a model that keeps the last batch.
type spy struct {
	latency.Model
	last latency.Batch
}

func (s *spy) Step(b latency.Batch) int64 {
	s.last = b
	return 7
}

// TestStepHasMeanContexts: of ten decode steps and 30 prompt tokens, a step with two sequences has a fifth of the
// contexts, and one with six prompt tokens a fifth of the pairs, in at least one chunk.
func TestStepHasMeanContexts(t *testing.T) {
	s := &spy{}
	e := &engine{model: s}
	sums := &totals{prefill: 30, chunks: 2, decode: 10, context: 440, priorContext: 35, pairs: 780, windowContext: 200,
		windowPriorContext: 30, windowPairs: 570}
	for _, c := range []struct {
		decode, prefill float64
		want            latency.Batch
	}{
		{2, 0, latency.Batch{Decode: 2, Context: 88, WindowContext: 40}},
		{0, 6, latency.Batch{Prefill: 6, Chunks: 1, PriorContext: 7, Pairs: 156, WindowPriorContext: 6,
			WindowPairs: 114}},
		{0, 1, latency.Batch{Prefill: 1, Chunks: 1, PriorContext: 1, Pairs: 26, WindowPriorContext: 1,
			WindowPairs: 19}},
		{1, 0, latency.Batch{Decode: 1, Context: 44, WindowContext: 20}},
	} {
		if us := e.stepUS(sums, c.decode, c.prefill); us != 7 || s.last != c.want {
			t.Errorf("%+v, want %+v", s.last, c.want)
		}
	}
}

// TestInterpolate: between 2² and 3², a quarter of the way.
func TestInterpolate(t *testing.T) {
	square := func(x float64) float64 { return x * x }
	for x, want := range map[float64]float64{2: 4, 2.25: 5.25} {
		if got := interpolate(x, square); got != want {
			t.Errorf("at %v: %v, want %v", x, got, want)
		}
	}
	one, two := 1.0, 2.0
	if larger(nil, &one) != &one || larger(&two, &one) != &two || larger(&one, &two) != &two {
		t.Error("the larger of two loads is the other one")
	}
}

// TestLongPromptsNeedChunks: without chunked prefill a prompt must fit into a step, also without max_model_len.
func TestLongPromptsNeedChunks(t *testing.T) {
	calls := slices.Values([]Call{{Input: 2000, Output: 1}, {Input: 2001, Output: 1}})
	for settings, tooLong := range map[string]int64{"": 0, ", enable_chunked_prefill: false": 1} {
		text := strings.Replace(linearDeployment, ", max_model_len: 9000", settings, 1)
		l, err := Of(loadText(t, text), calls, 1_000_000)
		if err != nil || l.TooLong != tooLong {
			t.Errorf("%q: %v, %+v", settings, err, l)
		}
	}
}

// TestNoCalls: an engine that can serve none of the calls has no capacity for them.
func TestNoCalls(t *testing.T) {
	e := &engine{model: &spy{}, maxSeqs: 1, maxTokens: 1, maxChunk: 1, kvTokens: 1, replicas: 1}
	if perSecond, limit := e.capacity(nil, true); perSecond != 0 || limit != "" {
		t.Errorf("%v calls a second by %q", perSecond, limit)
	}
}

// TestGroupsByHand: a sequence of 100 tokens of which 10 are computed has 100 and half a block of 16 in layers of full
// attention, 64 − 1 + 10 and a block in those with a window of 64, and one block of 32, half as wide, of state.
func TestGroupsByHand(t *testing.T) {
	e := &engine{blockSize: 16, groups: []kv.Group{{Kind: kv.FullAttention, BlockSize: 16},
		{Kind: kv.SlidingWindow, BlockSize: 16, Window: 64}, kv.StateGroup(32)}}
	if got := e.allocated(100, 10); got != 108+89+16 {
		t.Errorf("%v tokens, want 213", got)
	}
	if got := e.allocated(20, 10); got != 28+28+16 {
		t.Errorf("%v tokens of a short sequence, want 72", got)
	}
}
