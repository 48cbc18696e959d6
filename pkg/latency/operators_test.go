package latency

import (
	"strings"
	"testing"

	"blis/pkg/des"

	"pgregory.net/rapid"
)

// kernels are small curves whose sums can be written out.
func kernels() Operators {
	return Operators{
		Tokens: Curve{[]int64{1, 8, 1024}, []float64{100, 100, 1116}}, Sequences: Curve{[]int64{1, 100}, []float64{10,
			109}},
		Decode:  Grid{[]int64{1, 10}, []int64{0, 1000}, []float64{5, 105, 50, 1050}},
		Prefill: ChunkAttention{Curve{[]int64{1, 100}, []float64{7, 106}}, 0.5},
		Host: Host{StepUS: 20, SequenceUS: 2, Captured: 16, PiecesUS: 130, EagerUS: 3000, EagerChunksUS: 3000,
			ChunkFactor: 2},
		Groups: 1, Ranks: 1,
	}
}

func newOperatorModel(t testing.TB, o Operators) Model {
	t.Helper()
	m, err := newOperators(Coefficients{Alpha: []float64{0, 0, 0}, Operators: &o})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOperators(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(*Operators)
		batch  Batch
		want   des.Time
	}{
		{"one sequence", nil, Batch{Decode: 1, Context: 500}, 100 + 10 + 55 + 22},
		{"padded to the graph of 16 tokens", nil, Batch{Decode: 9}, 108 + 18 + 45 + 20 + 18},
		{"no graph of 17 tokens: launching kernels takes longer", nil, Batch{Decode: 17}, 3000 + 20 + 34},
		{"beyond the grid the last interval goes on", nil, Batch{Decode: 10, Context: 20000}, 108 + 19 + 2050 + 40},
		{"a chunk in pieces of graphs, 142 · (1 + 8/512)", nil, Batch{Prefill: 8, Chunks: 1, Pairs: 36}, 166},
		{"launching the pieces takes longer", nil, Batch{Prefill: 1, Chunks: 1, Pairs: 1}, 130 + 22},
		{"a chunk without a graph, 306 · (1 + 24/512)", nil,
			Batch{Prefill: 24, Chunks: 1, Pairs: 300}, 320 + 22 + 3000},
		{"with a chunk launching kernels takes as long as without", func(o *Operators) { o.Host.EagerChunksUS = 100 },
			Batch{Prefill: 24, Chunks: 1, Pairs: 300}, 3000 + 22},
		{"a long chunk takes twice as long", nil,
			Batch{Prefill: 600, Chunks: 1, Pairs: 1000}, 2*(692+10+636+500) + 22 + 3000},
		{"but experts do not", func(o *Operators) { o.Experts = Curve{[]int64{1, 100}, []float64{10, 1000}} },
			Batch{Prefill: 600, Chunks: 1, Pairs: 1000}, 2*(692+10+636+500) + 6000 + 22 + 3000},
		{"decode in pieces of graphs", func(o *Operators) { o.Host.DecodeInPieces, o.Host.PiecesUS = true, 250 },
			Batch{Decode: 1, Context: 500}, 250 + 22},
		{"pieces with experts, padded to 8 tokens", func(o *Operators) { o.Host.ExpertPiecesUS = 512 },
			Batch{Prefill: 5, Chunks: 1}, 138 + 22},
		{"no more than with 512 tokens", func(o *Operators) {
			o.Host.ExpertPiecesUS, o.Host.Captured, o.Host.ChunkFactor = 512e3, 1024, 1
			o.Tokens = Curve{[]int64{1}, []float64{1}}
		}, Batch{Prefill: 600, Chunks: 1}, 130 + 512e3 + 22},
		{"no graphs of steps with chunks", func(o *Operators) { o.Host.ChunksEager = true },
			Batch{Prefill: 8, Chunks: 1, Pairs: 36}, 144 + 22 + 3000},
		{"one wave ends with the longest sequence: 1000 instead of 500 tokens", func(o *Operators) { o.Wave = 2 },
			Batch{Decode: 2, Context: 1000, LongestContext: 1000}, 100 + 11 + 10 + 200 + 24},
		{"of twice as many sequences half of the difference counts", func(o *Operators) { o.Wave = 2 },
			Batch{Decode: 4, Context: 2000, LongestContext: 1000}, 100 + 13 + 20 + 300 + 28},
		{"nothing without a longest context", func(o *Operators) { o.Wave = 2 },
			Batch{Decode: 2, Context: 1000}, 100 + 11 + 10 + 100 + 24},
		{"both: the floor of decode attention counts once, 148 · (1 + 7/512)", nil,
			Batch{Prefill: 7, Chunks: 1, Pairs: 28, Decode: 1,
				Context: 100},
			150 + 24},
		{"in proportion beyond the curve", nil, Batch{Decode: 2048},
			2232 + (109 * 2048 / 100) + (50 + 5*2038) + 20 + 4096},
		{"two ranks have half of the sequences", func(o *Operators) { o.Groups, o.Ranks = 2, 2 }, Batch{Decode: 8},
			100 + 13 + 20 + 28},
		{"experts see the tokens of both ranks", func(o *Operators) {
			o.Groups, o.Ranks, o.Experts = 2, 2, Curve{[]int64{1, 100}, []float64{10, 1000}}
		}, Batch{Decode: 8}, 100 + 80 + 13 + 20 + 28},
	} {
		o := kernels()
		if c.change != nil {
			c.change(&o)
		}
		if have := newOperatorModel(t, o).Step(c.batch); have != c.want {
			t.Errorf("%s: %d µs, want %d", c.why, have, c.want)
		}
	}
}

// TestOperatorsDoNotFall: more tokens, more context, or more sequences with the same context each never
// take less time.
func TestOperatorsDoNotFall(t *testing.T) {
	o := kernels()
	o.Host.Captured, o.Host.ExpertPiecesUS, o.Host.EagerChunksUS, o.Wave = 256, 900, 500, 40
	m := newOperatorModel(t, o)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 300)
		each := n.Draw(t, "context")
		b := Batch{Decode: n.Draw(t, "decode"), Prefill: n.Draw(t, "prefill"), Pairs: 5 * n.Draw(t, "pairs")}
		b.Context, b.Chunks = each*b.Decode, min(1, b.Prefill)
		if b.Decode > 0 {
			b.LongestContext = each + n.Draw(t, "longer")
		}
		more := b
		switch rapid.IntRange(0, 3).Draw(t, "more") {
		case 0:
			more.Decode++
			more.Context += each
		case 1:
			more.Prefill, more.Chunks = more.Prefill+1, 1
		case 2:
			if b.Decode > 0 {
				more.Context += 10
				more.LongestContext = max(b.LongestContext, (more.Context+b.Decode-1)/b.Decode)
			}
		case 3:
			if b.Decode > 0 {
				more.Context += 10
				more.LongestContext += 10
			}
		}
		if a, z := m.Step(b), m.Step(more); z < a {
			t.Fatalf("%+v takes %d µs, %+v %d", b, a, more, z)
		}
	})
}

func TestInvalidOperators(t *testing.T) {
	for _, c := range []struct {
		change func(*Operators)
		want   string
	}{
		{func(o *Operators) { o.Tokens.US = nil }, "operators.tokens: must have as many sizes as times, has 3 and 0"},
		{func(o *Operators) { o.Tokens.US[2] = 5 }, "operators.tokens: times must not fall"},
		{func(o *Operators) { o.Tokens.At[1] = 1 }, "operators.tokens: sizes must ascend"},
		{func(o *Operators) { o.Sequences.US[0] = -1 }, "operators.sequences: times must be between 0 and"},
		{func(o *Operators) { o.Decode.US = o.Decode.US[1:] },
			"operators.decode: must have a time for each of 2 numbers"},
		{func(o *Operators) { o.Decode.US[2] = 1 }, "operators.decode: times must not fall"},
		{func(o *Operators) { o.Decode.Context[1] = 0 }, "operators.decode: sequences and contexts must ascend"},
		{func(o *Operators) { o.Host.EagerUS = -1 }, "operators.host[3] must be between 0 and"},
		{func(o *Operators) { o.Groups = 3; o.Ranks = 2 }, "3 groups cannot be divided over 2 ranks"},
		{func(o *Operators) { o.Tokens = Curve{make([]int64, 300), make([]float64, 300)} },
			"operators.tokens: sizes must ascend"},
	} {
		o := kernels()
		c.change(&o)
		_, err := newOperators(Coefficients{Alpha: []float64{0, 0, 0}, Operators: &o})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if _, err := newOperators(Coefficients{Alpha: []float64{0, 0, 0}}); err == nil {
		t.Error("operators without curves are accepted")
	}
}

func TestOperatorsAllocateNothing(t *testing.T) {
	m := newOperatorModel(t, kernels())
	b := Batch{Prefill: 100, Chunks: 1, Pairs: 5050, Decode: 30, Context: 9000}
	if n := testing.AllocsPerRun(100, func() { m.Step(b) }); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}

// BenchmarkOperators is compared with BenchmarkRoofline.
func BenchmarkOperators(b *testing.B) {
	m := newOperatorModel(b, kernels())
	batch := Batch{Prefill: 100, Chunks: 1, Pairs: 5050, Decode: 30, Context: 9000}
	for b.Loop() {
		m.Step(batch)
	}
}
