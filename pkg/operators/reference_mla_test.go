package operators

import (
	"math"
	"slices"
	"testing"

	"blis/pkg/latency"
	"blis/pkg/model"
)

// plainMLA is a plain with blocks of latent attention instead of its layers. The tables have a block as a whole,
// with its projections: by sequences and context of a decode step, and by sequences and their length without
// tokens before.
type plainMLA struct {
	plain
	decodes, prefills *grid
	first             float64 // numbers in the first matrices of a block
}

// launches is what the table of a block has beyond a CUDA graph for n sequences, which take the same without context
// for up to 16: its time then, without reading the first matrices and 28 µs.
func (p *plainMLA) launches(g *grid, n float64) (us float64) {
	for i, x := range g.x {
		if x <= min(n, 16) {
			us = g.us[i*len(g.y)] - 28 - p.memory(2*p.first)
		}
	}
	return us
}

// block is the time of a decode step's block for n sequences with context c.
func (p *plainMLA) block(n, c float64) float64 {
	var rows []float64
	for i, n := range p.decodes.x {
		y := len(p.decodes.y)
		rows = append(rows, along(p.decodes.y, p.decodes.us[i*y:(i+1)*y], c)-p.launches(p.decodes, n))
	}
	return along(p.decodes.x, rows, n)
}

// whole is the time of a block for a lone chunk of n tokens but for its pairs, and that of a pair.
func (p *plainMLA) whole(n float64) (rest, pair float64) {
	y, us := p.prefills.y, p.prefills.us
	pairs := func(n float64) float64 { return n * (n + 1) / 2 }
	pair = math.Inf(1)
	for j := 1; j < len(y); j++ {
		if y[j] >= 8192 {
			pair = min(pair, (us[j]-us[j-1])/(pairs(y[j])-pairs(y[j-1])))
		}
	}
	var rests []float64
	for j := range y {
		rests = append(rests, max(0, us[j]-p.launches(p.prefills, 1)-pair*pairs(y[j])))
		rests[j] = max(rests[j], rests[max(0, j-1)])
	}
	return along(y, rests, n), pair
}

// projections are the part of a block that all tokens share: between any sizes of the tables it grows by no more than
// either the decode step without context or the chunk does.
func (p *plainMLA) projections(m float64) float64 {
	sizes := append(slices.Concat(p.decodes.x, p.prefills.y), m)
	slices.Sort(sizes)
	rest, _ := p.whole(1)
	us, last := min(rest, p.block(1, 0)), 1.0
	for _, n := range sizes {
		if n > last && n <= m {
			before, _ := p.whole(last)
			after, _ := p.whole(n)
			us += max(0, min(after-before, p.block(n, 0)-p.block(last, 0)))
			last = n
		}
	}
	return us
}

// tokens is the time of all that depends on the m tokens of a step.
func (p *plainMLA) tokens(m float64) float64 {
	short := 2 * (2 + p.memory(m*p.hidden*4))
	return p.layers*(p.projections(m)+short+p.exchange(m)) + short + p.exchange(m)
}

// TestPlainMLA: attention of DeepSeek-V3 with GPUs that have all heads or a part of them, and none of its MLPs.
func TestPlainMLA(t *testing.T) {
	tables, err := Load("", "H100-SXM-80GB")
	if err != nil {
		t.Fatal(err)
	}
	arch := *built(t, "deepseek-ai/DeepSeek-V3")
	arch.Layers = []model.Layers{{Count: 61, Attention: arch.Layers[0].Attention}}
	var axes [2][]float64
	for _, f := range tables.fields("gemm|bfloat16") {
		axes[0], axes[1] = append(axes[0], float64(atoi(f[0]))), append(axes[1], float64(atoi(f[1])))
	}
	for tp, heads := range map[int]string{1: "128", 4: "32", 8: "16"} {
		m := machine(tp)
		o, err := Compile(&arch, tables, m)
		if err != nil {
			t.Fatal(err)
		}
		o.Host = latency.Host{Captured: o.Host.Captured, ChunkFactor: 1}
		step := newModel(t, o)
		const of = "|DeepseekV3ForCausalLM|bfloat16|fp8_block|"
		p := &plainMLA{plain{tables: tables, layers: 61, hidden: 7168, vocabulary: 129280, axes: axes, tp: float64(tp),
			bandwidth: m.Bandwidth, link: m.Link, captured: float64(m.Captured)},
			tables.series["decode-module"+of+heads], tables.series["prefill-module"+of+heads], 7168 * (1536 + 512 + 64)}
		check := func(b latency.Batch, want float64) {
			t.Helper()
			if have := float64(step.Step(b)); math.Abs(have/want-1) > 0.04 {
				t.Errorf("TP %d: %+v takes %.0f µs, want %.0f: %+.1f %%", tp, b, have, want, 100*(have/want-1))
			}
		}
		for i, n := range o.Tokens.At {
			if want := p.tokens(float64(n)); n <= 8192 && math.Abs(o.Tokens.US[i]/want-1) > 0.01 {
				t.Errorf("TP %d: %d tokens take %g µs, want %g", tp, n, o.Tokens.US[i], want)
			}
		}
		for _, n := range []float64{1, 3, 8, 13, 40, 64, 100, 200, 400, 700} {
			for _, c := range []float64{100, 1000, 5000, 30000} {
				check(latency.Batch{Decode: int64(n), Context: int64(n * c)}, p.tokens(p.padded(n))+
					p.layers*(p.block(n, c)-p.projections(n))+p.head(n))
			}
		}
		for _, n := range []float64{20, 130, 500, 1000, 3000, 8000} {
			for _, past := range []float64{0, 700, 9000} {
				rest, pair := p.whole(n)
				pairs := n*past + n*(n+1)/2
				check(latency.Batch{Prefill: int64(n), Chunks: 1, PriorContext: int64(past), Pairs: int64(pairs)},
					p.tokens(p.padded(n))+p.layers*(rest-p.projections(n)+pair*pairs)+p.head(1))
			}
		}
	}
}
