package latency

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/model"
)

// unitMachine has numbers that make the examples easy to compute: 1 MFLOP and 1 MB per µs, all
// fractions 1 and no overheads.
func unitMachine() Machine {
	return Machine{
		FLOPS: 1e12, AttentionFLOPS: 1e12, Bandwidth: 1e12, Link: 1e12,
		TensorParallel: 1, PipelineParallel: 1, DataParallel: 1,
		Efficiency: Efficiency{Compute: 1, Attention: 1, Memory: 1, Link: 1, PriorContext: 1, Mixed: 1},
	}
}

// tinyModel has negligible attention: it takes 300 µs to read on a unitMachine, and 2 µs to compute
// a token.
func tinyModel() model.Work {
	return model.Work{
		Layers: 10, Reduces: 20, Hidden: 1000, KVHeads: 1,
		Dense: model.Weights{Params: 1e6, Bytes: 300e6},
	}
}

func newRooflineModel(t testing.TB, w model.Work, g Machine) Model {
	t.Helper()
	m, err := newRoofline(Coefficients{Alpha: []float64{0, 0, 0}, Replica: &Replica{Work: w, Machine: g}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRoofline(t *testing.T) {
	type change = func(*model.Work, *Machine)
	for _, c := range []struct {
		name   string
		change change
		batch  Batch
		want   int64
	}{
		{"weights are read once and computed for each token", func(*model.Work, *Machine) {},
			Batch{Prefill: 150, Chunks: 1, Pairs: 1, Decode: 50}, 500}, // √(300² + (2·200)²)
		{"fractions of the peaks", func(_ *model.Work, g *Machine) {
			g.Efficiency.Compute, g.Efficiency.Memory = 0.5, 0.25
		}, Batch{Decode: 400}, 2000}, // √(1200² + 1600²)
		{"the head counts a token for each sequence", func(w *model.Work, _ *Machine) {
			w.Head = model.Weights{Params: 10e6, Bytes: 60e6}
		}, Batch{Prefill: 196, Chunks: 2, Decode: 2, Pairs: 1}, 597}, // √(300² + 396²) = 496.8, head √(60² + 80²)
		{"decode reads its context and itself", func(w *model.Work, _ *Machine) {
			w.KVBytes, w.DecodePairFLOPs = 4e6, 3e6
		}, Batch{Decode: 2, Context: 98}, 800}, // dense √(300² + 4²) = 300.03, √(400² + 300²)
		{"decode reads slower with chunks in the step", func(w *model.Work, g *Machine) {
			w.KVBytes, g.Efficiency.Mixed = 1e6, 0.25
		}, Batch{Decode: 10, Context: 90, Prefill: 1, Chunks: 1}, 702}, // 300.8 + 400, and 1 for the chunk's own token
		{"a chunk computes pairs and reads its prior context", func(w *model.Work, _ *Machine) {
			w.KVBytes, w.PairFLOPs = 1e6, 1e6
		}, Batch{Prefill: 4, Chunks: 1, PriorContext: 296, Pairs: 400}, 800}, // √(300² + 8²) = 300.1, √(300² + 400²)
		{"a chunk reads its prior context slower", func(w *model.Work, g *Machine) {
			w.KVBytes, g.Efficiency.PriorContext = 1e6, 0.1
		}, Batch{Prefill: 1, Chunks: 1, PriorContext: 99}, 1291}, // 300 + 99·10 + 1
		{"decode has pairs of its own", func(w *model.Work, _ *Machine) {
			w.PairFLOPs, w.DecodePairFLOPs = 1e6, 4e6
		}, Batch{Prefill: 1, Chunks: 1, Pairs: 100, Decode: 1, Context: 99}, 800}, // 300 + 100·1 + 100·4
		{"windows count separately", func(w *model.Work, _ *Machine) {
			w.KVBytes, w.WindowKVBytes = 1e6, 3e6
		}, Batch{Decode: 1, Context: 99, WindowContext: 9}, 430}, // 300 + 100 + 30
		{"experts activated: 8·(1 − 0.75²) = 3.5", func(w *model.Work, _ *Machine) {
			w.ExpertLayers, w.Experts, w.ExpertsPerToken = 10, 8, 2
			w.Expert = model.Weights{Params: 1, Bytes: 10e6}
		}, Batch{Decode: 2}, 650}, // 300 + 10·3.5·10
		{"experts computed: k for each token", func(w *model.Work, _ *Machine) {
			w.ExpertLayers, w.Experts, w.ExpertsPerToken = 5, 8, 2
			w.Expert = model.Weights{Params: 1e6, Bytes: 1}
		}, Batch{Decode: 10}, 501}, // √(300² + 20²) + 5·2·2·10
		{"overheads", func(_ *model.Work, g *Machine) {
			g.Efficiency.StepUS, g.Efficiency.LayerUS, g.Efficiency.SequenceUS = 1000, 7, 100
		}, Batch{Decode: 2, Prefill: 1, Chunks: 1}, 1670}, // 300.06 + 1000 + 10·7 + 3·100
		{"no faster than its launches", func(_ *model.Work, g *Machine) {
			g.Efficiency.LaunchUS, g.Efficiency.StepUS = 40, 5
		}, Batch{Decode: 1}, 405},
		{"tensor parallel: weights divided, two all-reduces a layer", func(_ *model.Work, g *Machine) {
			g.TensorParallel, g.Link, g.Efficiency.CollectiveUS = 4, 1e9, 3
		}, Batch{Decode: 50}, 3139}, // √(75² + 25²) + 20·(3 + 2·3/4·50·2000/1000)
		{"tensor parallel: GPUs share one path", func(_ *model.Work, g *Machine) {
			g.TensorParallel, g.Link, g.SharedLink = 4, 1e9, true
		}, Batch{Decode: 50}, 6079}, // √(75² + 25²) + 20·2·3/4·50·2·2000/1000
		{"tensor parallel: KV divided by at most the KV heads", func(w *model.Work, g *Machine) {
			w.KVHeads, w.KVBytes, w.DecodePairFLOPs = 2, 1e6, 8e6
			g.TensorParallel, g.Link = 4, 1e15
		}, Batch{Decode: 1, Context: 599}, 1312}, // 75 + √(300² + 1200²), and 1e-3 of all-reduce
		{"pipeline: a batch is not divided, and transfers are no part of it", func(_ *model.Work, g *Machine) {
			g.PipelineParallel, g.Link, g.Efficiency.CollectiveUS = 2, 1e9, 5
		}, Batch{Decode: 400}, 854}, // √(300² + 800²)
		{"pipeline: one sequence passes through all stages", func(w *model.Work, g *Machine) {
			w.KVBytes, g.PipelineParallel = 1e6, 4
		}, Batch{Decode: 1, Context: 99}, 400},
		{"pipeline: one chunk passes through all stages", func(_ *model.Work, g *Machine) { g.PipelineParallel = 2 },
			Batch{Prefill: 200, Chunks: 1}, 500}, // √(300² + 400²)
		{"drafts of one sequence attend to what it reads once", func(w *model.Work, _ *Machine) {
			w.KVBytes, w.DecodePairFLOPs = 5e6, 3e6
		}, Batch{Decode: 1, Drafts: 3, Context: 99}, 1600}, // √(300² + 8²) + √(500² + (3·100·4)²)
		{"data parallel: ranks share sequences", func(w *model.Work, g *Machine) {
			w.KVBytes, g.DataParallel = 1e6, 4
		}, Batch{Decode: 4, Context: 396}, 400},
		{"data parallel: ranks hold slices of experts for all", func(w *model.Work, g *Machine) {
			w.ExpertLayers, w.Experts, w.ExpertsPerToken = 10, 2, 1
			w.Expert = model.Weights{Params: 1, Bytes: 40e6}
			g.DataParallel, g.Link, g.Efficiency.CollectiveUS = 2, 1e9, 1
		}, Batch{Decode: 2}, 650}, // 300 + 10·40·1.5/2 + 10·(1 + 2·1/2·2·2000/1000)
		{"expert parallel: tokens go to their experts and back", func(w *model.Work, g *Machine) {
			w.ExpertLayers, w.Experts, w.ExpertsPerToken = 10, 2, 1
			w.Expert = model.Weights{Params: 1, Bytes: 40e6}
			g.DataParallel, g.Link, g.Efficiency.CollectiveUS = 2, 1e9, 1
			g.ExpertParallel = true
		}, Batch{Decode: 2}, 640}, // 300 + 10·40·1.5/2 + 10·2·(1 + 1·1/2·1·2000/1000)
		{"at least a µs", func(w *model.Work, _ *Machine) { w.Dense = model.Weights{Params: 1, Bytes: 1} },
			Batch{Decode: 1}, 1},
		{"bounded", func(*model.Work, *Machine) {}, Batch{Prefill: 1 << 61, Chunks: 1, Decode: 1 << 61}, 1e15},
	} {
		w, g := tinyModel(), unitMachine()
		c.change(&w, &g)
		if got := newRooflineModel(t, w, g).Step(c.batch); got != c.want {
			t.Errorf("%s: %d µs, want %d", c.name, got, c.want)
		}
	}
	m, err := newRoofline(
		Coefficients{Alpha: []float64{2000, 0.5, 30.5}, Replica: &Replica{Work: tinyModel(), Machine: unitMachine()}})
	if err != nil {
		t.Fatal(err)
	}
	if q, o := m.Queueing(3), m.Output(1); q != 2002 || o != 31 {
		t.Errorf("queueing %d, output %d; want 2002 and 31", q, o)
	}
}

// llama8B is Llama-3.1-8B in 16 bits.
func llama8B() model.Work {
	return model.Work{
		Layers: 32, Reduces: 64, Hidden: 4096,
		Dense:     model.Weights{Params: 6979588096, Bytes: 2 * 6979588096},
		Head:      model.Weights{Params: 525336576, Bytes: 2 * 525336576},
		PairFLOPs: 4 * 32 * 128 * 32, DecodePairFLOPs: 4 * 32 * 128 * 32, KVBytes: 2 * 2 * 8 * 128 * 32, KVHeads: 8,
	}
}

// moeModel has every feature that a model may have.
func moeModel() model.Work {
	w := llama8B()
	w.ExpertLayers, w.Experts, w.ExpertsPerToken = 30, 64, 6
	w.Expert = model.Weights{Params: 5e6, Bytes: 1e7}
	w.WindowPairFLOPs, w.WindowKVBytes, w.Window = w.PairFLOPs, w.KVBytes, 1024
	return w
}

func h100() Machine {
	return Machine{
		FLOPS: 989e12, AttentionFLOPS: 989e12, Bandwidth: 3350e9, Link: 450e9,
		TensorParallel: 1, PipelineParallel: 1, DataParallel: 1,
		Efficiency: Efficiency{Compute: 0.7, Attention: 0.5, Memory: 0.8, Link: 0.5, PriorContext: 0.2, Mixed: 0.5,
			StepUS: 1000, SequenceUS: 10, LayerUS: 5, CollectiveUS: 10},
	}
}

func drawBatch(t *rapid.T) Batch {
	tokens := rapid.Int64Range(0, 1<<20)
	b := Batch{Prefill: tokens.Draw(t, "prefill"), Decode: rapid.Int64Range(0, 4096).Draw(t, "decode")}
	if b.Prefill > 0 {
		b.Chunks = rapid.Int64Range(1, min(b.Prefill, 256)).Draw(t, "chunks")
		b.PriorContext = tokens.Draw(t, "prior context")
		b.Pairs = b.Prefill + rapid.Int64Range(0, 1<<30).Draw(t, "pairs")
		b.WindowPriorContext, b.WindowPairs = b.PriorContext/2, b.Pairs/2
	}
	if b.Decode > 0 {
		b.Context = tokens.Draw(t, "context")
		b.WindowContext = b.Context / 2
	}
	return b
}

// TestRooflineIsMonotone raises one total of a random batch: the step never gets faster. With
// DP that excludes the number of sequences.
func TestRooflineIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := h100()
		g.TensorParallel = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "tp")
		g.ExpertParallel = rapid.Bool().Draw(t, "ep")
		groups := rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(t, "groups")
		if rapid.Bool().Draw(t, "data") {
			g.DataParallel = groups
		} else {
			g.PipelineParallel = groups
		}
		m := compile(moeModel(), g)
		b := drawBatch(t)
		before := m.Step(b)
		if before < 1 {
			t.Fatalf("%+v takes %d µs", b, before)
		}
		more := b
		sums := []*int64{&more.Prefill, &more.Context, &more.PriorContext, &more.Pairs, &more.WindowContext,
			&more.WindowPriorContext, &more.WindowPairs}
		if g.DataParallel == 1 {
			sums = append(sums, &more.Decode, &more.Chunks)
		}
		n := rapid.Int64Range(1, 1<<16).Draw(t, "n")
		*rapid.SampledFrom(sums).Draw(t, "sum") += n
		if after := m.Step(more); after < before {
			t.Fatalf("%d µs after %d: %+v, and then %+v", after, before, b, more)
		}
	})
}

// TestHalvingAResourceSlowsAtMostTwofold halves one of a machine's rates: the step is never faster,
// and at most twice as long.
func TestHalvingAResourceSlowsAtMostTwofold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := h100()
		g.TensorParallel = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "tp")
		g.PipelineParallel = rapid.IntRange(1, 4).Draw(t, "pp")
		g.DataParallel = rapid.IntRange(1, 4).Draw(t, "dp")
		g.ExpertParallel = rapid.Bool().Draw(t, "ep")
		half := g
		power := rapid.SampledFrom([]*float64{&half.FLOPS, &half.AttentionFLOPS, &half.Bandwidth, &half.Link,
			&half.Efficiency.Compute, &half.Efficiency.Memory, &half.Efficiency.Link, &half.Efficiency.PriorContext,
			&half.Efficiency.Mixed}).Draw(t, "power")
		*power /= 2
		b := drawBatch(t)
		whole, less := compile(moeModel(), g).Step(b), compile(moeModel(), half).Step(b)
		if less < whole || less > 2*whole+1 {
			t.Fatalf("%d µs after halving one rate, %d before: %+v", less, whole, b)
		}
	})
}

// TestMoreGPUsSpeedUpALargeStep compares a large step on more GPUs.
func TestMoreGPUsSpeedUpALargeStep(t *testing.T) {
	b := Batch{Decode: 64, Context: 64 * 2000}
	before := newRooflineModel(t, moeModel(), h100()).Step(b)
	for _, c := range []struct {
		name     string
		change   func(*Machine)
		min, max float64
	}{
		{"TP 2", func(g *Machine) { g.TensorParallel = 2 }, 0.5, 0.75},
		{"TP 8", func(g *Machine) { g.TensorParallel = 8 }, 0.125, 0.45},
		{"DP 2", func(g *Machine) { g.DataParallel = 2 }, 0.5, 0.75},
		{"DP 2 with whole experts", func(g *Machine) { g.DataParallel, g.ExpertParallel = 2, true }, 0.5, 0.75},
		// a batch passes through the stages one after the other
		{"PP 2", func(g *Machine) { g.PipelineParallel = 2 }, 1, 1},
	} {
		g := h100()
		c.change(&g)
		after := newRooflineModel(t, moeModel(), g).Step(b)
		if ratio := float64(after) / float64(before); ratio < c.min || ratio > c.max {
			t.Errorf("%s: %d µs instead of %d, a ratio of %.2f, want %.2f to %.2f", c.name, after, before, ratio,
				c.min, c.max)
		}
	}
}

// TestChunkedPrefillComputesTheSamePairs compares a chunked prompt with the whole prompt in one
// step. The pairs are equal; only weights and prior context are read again.
func TestChunkedPrefillComputesTheSamePairs(t *testing.T) {
	w, g := llama8B(), h100()
	g.Efficiency.StepUS, g.Efficiency.LayerUS, g.Efficiency.SequenceUS = 0, 0, 0
	g.Bandwidth = 1e20 // reads take no time
	m := compile(w, g)
	const prompt, size = 8192, 512
	whole := m.Step(Batch{Prefill: prompt, Chunks: 1, Pairs: prompt * (prompt + 1) / 2})
	var chunked int64
	for prior := int64(0); prior < prompt; prior += size {
		chunked += m.Step(Batch{Prefill: size, Chunks: 1, PriorContext: prior, Pairs: prior*size + size*(size+1)/2})
	}
	if math.Abs(float64(chunked-whole)) > 100 { // rounding, and the head for 15 more tokens
		t.Errorf("%d µs in chunks, %d at once", chunked, whole)
	}
}

func TestPower(t *testing.T) {
	for _, c := range []struct {
		x float64
		n int64
	}{{0.5, 0}, {0, 0}, {0, 3}, {1, 1 << 40}, {0.75, 1}, {0.96875, 37}, {0.99, 5000}, {0.5, 1 << 50}} {
		if got, want := power(c.x, c.n), math.Pow(c.x, float64(c.n)); math.Abs(got-want) > 1e-12 {
			t.Errorf("%g to the %d is %g, want %g", c.x, c.n, got, want)
		}
	}
}

func TestRooflineIsChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Coefficients)
		want   string
	}{
		{func(c *Coefficients) { c.Alpha = nil }, "alpha_us must have 3"},
		{func(c *Coefficients) { c.Replica = nil }, "architecture"},
		{func(c *Coefficients) { c.Replica.Machine.Bandwidth = math.NaN() }, "memory bandwidth"},
		{func(c *Coefficients) { c.Replica.Machine.TensorParallel, c.Replica.Machine.Link = 2, 0 }, "link bandwidth"},
		{func(c *Coefficients) { c.Replica.Machine.DataParallel = 0 }, "data_parallel"},
		{func(c *Coefficients) { c.Replica.Machine.Efficiency.Mixed = 0 }, "efficiency mixed"},
		{func(c *Coefficients) { c.Replica.Machine.Efficiency.Memory = 1.1 }, "efficiency memory"},
		{func(c *Coefficients) { c.Replica.Machine.Efficiency.LaunchUS = -1 }, "efficiency launch_us"},
		{func(c *Coefficients) { c.Replica.Work.Hidden = 0 }, "hidden size"},
		{func(c *Coefficients) { c.Replica.Work.ExpertLayers = 1 }, "experts"},
	} {
		ok := Coefficients{Alpha: []float64{0, 0, 0}, Replica: &Replica{Work: tinyModel(), Machine: unitMachine()}}
		c.change(&ok)
		if _, err := newRoofline(ok); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	linear, err := newLinear(Coefficients{Alpha: []float64{0, 0, 0}, Beta: []float64{1e4, 50, 200, 0.5}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		m    Model
	}{{"linear", linear}, {"roofline", newRooflineModel(b, llama8B(), h100())},
		{"roofline-experts", newRooflineModel(b, moeModel(), h100())}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			batch := Batch{Prefill: 500, Chunks: 2, PriorContext: 300, Pairs: 1e5, Decode: 100}
			for b.Loop() {
				batch.Context += c.m.Step(batch) & 1
			}
		})
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	m := newRooflineModel(t, moeModel(), h100())
	if n := testing.AllocsPerRun(100, func() { m.Step(Batch{Decode: 3, Prefill: 7, Chunks: 1}) }); n != 0 {
		t.Errorf("%g allocations a step", n)
	}
}
