package capacity

import (
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"blis/pkg/cluster"
	_ "blis/pkg/internal/fixedseed"

	"pgregory.net/rapid"
)

// loadText loads a cluster file with this text.
func loadText(t testing.TB, text string) *cluster.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load(path, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// linearDeployment has steps of 1000 + 10·prefill + 20·decode µs.
const linearDeployment = `
version: 1
deployments:
  - id: a
    model: x
    replicas: 2
    latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1000, 10, 20]}
    engine: {max_num_seqs: 50, max_num_batched_tokens: 2000, max_model_len: 9000,
      num_gpu_blocks_override: 10000, block_size: 10}
`

// repeated yields n equal calls.
func repeated(c Call, n int) iter.Seq[Call] { return slices.Values(slices.Repeat([]Call{c}, n)) }

func TestCapacityByHand(t *testing.T) {
	for _, c := range []struct {
		name, engine string
		call         Call
		us           float64 // of a replica for one call, with prefixes found
		uncached     float64
		limit        string
	}{
		// 50 batch slots, and a call takes 1 + 99 steps: half a call per step, with its
		// prompt in every other step: (1000 + 20·49.5 + 10·100·0.5) / 0.5.
		{"slots", "", Call{Input: 100, Output: 100}, (1000 + 20*49.5 + 500) / 0.5, (1000 + 20*49.5 + 500) / 0.5,
			limitSeqs},
		// Cached tokens are not computed.
		{"cached", "", Call{Input: 100, Output: 100, Cached: 50},
			(1000 + 20*49.5 + 250) / 0.5, (1000 + 20*49.5 + 500) / 0.5, limitSeqs},
		{"no prefix caching", ", enable_prefix_caching: false", Call{Input: 100, Output: 100, Cached: 50},
			(1000 + 20*49.5 + 500) / 0.5, (1000 + 20*49.5 + 500) / 0.5, limitSeqs},
		// A fully cached prompt still computes its last token.
		{"fully cached", "", Call{Input: 100, Output: 100, Cached: 100},
			(1000 + 20*49.5 + 5) / 0.5, (1000 + 20*49.5 + 500) / 0.5, limitSeqs},
		// A step of 2000 tokens has four prompts of 500.
		{"tokens", "", Call{Input: 500, Output: 1}, (1000 + 20000) / 4., (1000 + 20000) / 4., limitTokens},
		// A batch slot stays empty for one step after each call: a call takes it for 101
		// steps, of which 99 decode.
		{"asynchronous scheduling", ", async_scheduling: true", Call{Input: 100, Output: 100},
			1000/(50/101.) + 20*99 + 1000, 1000/(50/101.) + 20*99 + 1000, limitSeqs},
		// Two chunks of 50: 101 steps with the output.
		{"chunks", ", chunk_size: 50", Call{Input: 100, Output: 100},
			1000/(50/101.) + 20*99 + 1000, 1000/(50/101.) + 20*99 + 1000, limitSeqs},
		// 120 tokens with one of two drafts accepted are 60 steps, each with two drafts, and a call takes 61 steps.
		// The drafter takes 2 x 7 us for each sequence, also for the prompt, and 2 x 3 us in each of the 61/50 steps.
		{"drafts", ", speculative_config: {method: ngram, num_speculative_tokens: 2, synthetic_acceptance_length: 2, " +
			"draft_pass_us: 3, draft_sequence_us: 7}", Call{Input: 100, Output: 121},
			(1000+2*3)*61/50. + 60*(20+2*10) + 61*2*7 + 1000, (1000+2*3)*61/50. + 60*(20+2*10) + 61*2*7 + 1000,
			limitSeqs},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := []byte(linearDeployment)
			text = slices.Concat(text[:len(text)-2], []byte(c.engine+"}\n"))
			l, err := Of(loadText(t, string(text)), repeated(c.call, 7), 1_000_000)
			if err != nil {
				t.Fatal(err)
			}
			m := l.Models[0]
			want, uncached := 7*c.us/2e6, 7*c.uncached/2e6
			if math.Abs(*l.Offered/want-1) > 1e-9 || math.Abs(*l.Uncached/uncached-1) > 1e-9 || m.Limit != c.limit {
				t.Errorf("%.6f and %.6f by %s, want %.6f and %.6f by %s", *l.Offered, *l.Uncached, m.Limit, want,
					uncached, c.limit)
			}
			if got := *l.Offered * m.Capacity; math.Abs(got-7) > 1e-9 {
				t.Errorf("load times capacity is %g calls per second, offered are 7", got)
			}
		})
	}
}

// The KV cache limits a step if its sequences need more tokens than the cache has.
func TestKVCacheLimit(t *testing.T) {
	c := loadText(t, linearDeployment)
	call := Call{Input: 3000, Output: 1001}
	l, err := Of(c, repeated(call, 1), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	// A call holds 3505 tokens on average in its thousand decode steps and 2255 in its
	// two chunks of 1500; each number includes half a block.
	need := totals{calls: 1, residency: 1002, prefill: 3000, decode: 1000, kv: 1000*3505. + 2*2255}
	e := &engine{maxSeqs: 50, maxTokens: 2000, kvTokens: 100_000, blockSize: 10}
	if r, limit := e.finishedPerStep(&need); limit != limitKV || math.Abs(r-100_000/need.kv) > 1e-12 {
		t.Errorf("%g calls a step by %s", r, limit)
	}
	if l.Models[0].Limit != limitKV {
		t.Errorf("limit is %s", l.Models[0].Limit)
	}
	// One prefix for all calls: only outputs are stored separately.
	call.Cached = 2990
	if l, err = Of(c, repeated(call, 1), 1_000_000); err != nil || l.Models[0].Limit != limitSeqs {
		t.Errorf("%v, limit %s", err, l.Models[0].Limit)
	}
}

func TestSeveralModelsAndDeployments(t *testing.T) {
	c := loadText(t, linearDeployment+`
  - id: b
    model: x
    replicas: 3
    latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1000, 10, 20]}
    engine: {max_num_seqs: 50, max_num_batched_tokens: 2000, num_gpu_blocks_override: 10000, block_size: 10}
  - id: c
    model: y
    latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1000, 10, 20]}
    engine: {enable_chunked_prefill: false, num_gpu_blocks_override: 100}
`)
	one := Call{Input: 100, Output: 100}
	toY := Call{Model: "y", Input: 100, Output: 100}
	calls := slices.Values(
		[]Call{one, one, {Model: "x", Input: 100, Output: 100}, toY, {Model: "z", Input: 1, Output: 1},
			{Model: "y", Input: 1500,
				Output: 102}, {Model: "x", Input: 99_000, Output: 10}, {Model: "x", Input: 99_999, Output: 3}},
	)
	l, err := Of(c, calls, 2_000_000)
	if err != nil {
		t.Fatal(err)
	}
	if l.Unserved != 1 || l.TooLong != 2 || len(l.Models) != 2 || l.OfferedS != 2 {
		t.Fatalf("%+v", l)
	}
	x, y := l.Models[0], l.Models[1]
	if x.Replicas != 5 || x.Calls != 4 || y.Calls != 1 || *l.Offered != max(*x.Offered, *y.Offered) {
		t.Errorf("%+v", l.Models)
	}
	// Without time there is no load, but there is a capacity.
	if l, err = Of(c, slices.Values([]Call{one}), 0); err != nil || l.Offered != nil || l.Uncached != nil ||
		l.Models[0].Capacity <= 0 {
		t.Errorf("%v %+v", err, l)
	}
	if l, err = Of(c, slices.Values([]Call(nil)), 5); err != nil || l.Offered != nil || len(l.Models) != 0 {
		t.Errorf("%v %+v", err, l)
	}
}

// The closed forms equal sums over single tokens and chunks.
func TestClosedForms(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := func(name string, low, high int) float64 { return float64(rapid.IntRange(low, high).Draw(rt, name)) }
		a, length, w := n("a", 0, 300), n("length", 0, 300), n("window", 0, 400)
		sum := 0.0
		for x := a; x < a+length; x++ {
			if w == 0 {
				sum += x
			} else {
				sum += min(x, w)
			}
		}
		if got := between(a, a+length, w); got != sum {
			rt.Fatalf("between(%g, %g, %g) = %g, want %g", a, a+length, w, got, sum)
		}
		chunks, each, found := n("chunks", 1, 20), n("each", 1, 50), n("found", 0, 100)
		sum = 0
		for k := range int(chunks) {
			before := found + float64(k)*each
			if w > 0 {
				before = min(before, w)
			}
			sum += before
		}
		if got := priorContext(found, chunks*each, chunks, w); math.Abs(got-sum) > 1e-6 {
			rt.Fatalf("priorContext(%g, %g, %g, %g) = %g, want %g", found, chunks*each, chunks, w, got, sum)
		}
	})
}

// Load does not grow when prefixes are found, and is proportional to calls and rate.
func TestLoadLaws(t *testing.T) {
	c := loadText(t, linearDeployment)
	rapid.Check(t, func(rt *rapid.T) {
		calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Call {
			in := rapid.Int64Range(1, 4000).Draw(t, "input")
			return Call{Input: in, Output: rapid.Int64Range(1, 1000).Draw(t, "output"),
				Cached: rapid.Int64Range(0, in-1).Draw(t, "cached")}
		}), 1, 20).Draw(rt, "calls")
		load := func(calls []Call, us int64) *Load {
			l, err := Of(c, slices.Values(calls), us)
			if err != nil {
				rt.Fatal(err)
			}
			return l
		}
		l := load(calls, 1_000_000)
		if *l.Offered > *l.Uncached*1.001 { // step times are whole µs
			rt.Fatalf("load %g with prefixes found, %g without", *l.Offered, *l.Uncached)
		}
		twice := load(slices.Concat(calls, calls), 1_000_000)
		if math.Abs(*twice.Offered / *l.Offered - 2) > 1e-6 {
			rt.Fatalf("load %g, of all twice %g", *l.Offered, *twice.Offered)
		}
		if slow := load(calls, 4_000_000); math.Abs(*l.Offered / *slow.Offered - 4) > 1e-6 {
			rt.Fatalf("load %g, in four times the time %g", *l.Offered, *slow.Offered)
		}
	})
}
