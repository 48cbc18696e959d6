package operators

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"blis/pkg/latency"
)

// plain is a second, simple computation of a step of a model with full attention and MLPs or experts, from the
// rules and the series of the tables: no curves, no grid of sizes, no sharing of code with the compiler.
type plain struct {
	tables                                              *Tables
	layers, hidden, heads, kv, dim, inner, vocabulary   float64
	experts, topK                                       float64      // 0 in a dense model
	load                                                string       // how tokens choose experts
	routed                                              [2][]float64 // tokens, and the times of experts
	axes                                                [2][]float64 // n and k of all products
	tp                                                  float64
	bandwidth, link, fusedBytes, oneShotBytes, captured float64
}

// along is linear between the points of a list, constant before and proportional after it.
func along(at, values []float64, x float64) float64 {
	for i := range at {
		switch {
		case x <= at[i] && i == 0:
			return values[0]
		case x <= at[i]:
			return values[i-1] + (values[i]-values[i-1])*(x-at[i-1])/(at[i]-at[i-1])
		}
	}
	return values[len(at)-1] * x / at[len(at)-1]
}

// at is the time of a series at two sizes.
func (p *plain) at(name string, x, y float64) float64 {
	g := p.tables.series[name]
	if g == nil {
		panic("no " + name)
	}
	var rows []float64
	for i := range g.x {
		rows = append(rows, along(g.y, g.us[i*len(g.y):(i+1)*len(g.y)], y))
	}
	if len(g.y) == 1 {
		rows = g.us
	}
	return along(g.x, rows, x)
}

// gemm is the time of a product of m tokens, between the four matrices of the table around n x k.
func (p *plain) gemm(m, n, k float64) float64 {
	around := func(list []float64, x float64) (below, above, weight, factor float64) {
		below, above, most := 0, math.Inf(1), 0.0
		for _, v := range list {
			most = max(most, v)
			if v <= x {
				below = max(below, v)
			}
			if v >= x {
				above = min(above, v)
			}
		}
		if math.IsInf(above, 1) {
			return most, most, 0, x / most
		}
		if below == 0 || below == above {
			return above, above, 0, 1
		}
		return below, above, (x - below) / (above - below), 1
	}
	n0, n1, wn, fn := around(p.axes[0], n)
	k0, k1, wk, fk := around(p.axes[1], k)
	of := func(n, k float64) float64 { return p.at(fmt.Sprintf("gemm|bfloat16|%g|%g", n, k), m, 0) }
	return fn * fk * ((1-wn)*(1-wk)*of(n0, k0) + wn*(1-wk)*of(n1, k0) + (1-wn)*wk*of(n0, k1) + wn*wk*of(n1, k1))
}

func (p *plain) memory(bytes float64) float64 { return bytes / (0.8 * p.bandwidth) * 1e6 }

// exchange is the sum over GPUs of the hidden state of m tokens.
func (p *plain) exchange(m float64) float64 {
	if p.tp == 1 {
		return 0
	}
	name := fmt.Sprintf("allreduce|%g", p.tp)
	const wait = 2
	us, bytes := p.at(name, m*p.hidden, 0), 2*m*p.hidden
	if bytes > p.fusedBytes {
		return us + wait
	}
	if bytes <= p.oneShotBytes {
		us = min(us, p.at(name, 1, 0)+(p.tp-1)*bytes/p.link*1e6)
	}
	return max(2, us-2-p.memory(2*bytes)) + wait
}

// padded is the size of the CUDA graph for n tokens, n without one.
func (p *plain) padded(n float64) float64 {
	switch {
	case n > p.captured:
	case n > 256:
		return 16 * math.Ceil(n/16)
	case n > 4:
		return 8 * math.Ceil(n/8)
	case n == 3:
		return 4
	}
	return n
}

// layer is the time of a layer for m tokens without attention.
func (p *plain) layer(m float64) float64 {
	width := (p.heads + 2*p.kv) * p.dim / p.tp
	us := p.gemm(m, width, p.hidden) + p.gemm(m, p.hidden, p.heads*p.dim/p.tp) + 4*(2+p.memory(m*p.hidden*4)) +
		2*p.exchange(m)
	if p.experts == 0 {
		return us + p.gemm(m, 2*p.inner/p.tp, p.hidden) + p.gemm(m, p.hidden, p.inner/p.tp) +
			2*(2+p.memory(m*2*p.inner/p.tp*4))
	}
	return us + p.gemm(m, p.experts, p.hidden) + 3*(2+p.memory(m*p.hidden*4)) +
		along(p.routed[0], p.routed[1], m)
}

// loads returns the times of experts by tokens. The size with as many choices as experts is in the table with another
// law of loads: it takes the time of the next size, in proportion to the experts that are chosen.
func (p *plain) loads() (tokens, times []float64) {
	g := p.tables.series[fmt.Sprintf("moe|bfloat16|%s|%g|%g|%g|%g|%g|1", p.load, p.hidden, p.inner, p.topK, p.experts,
		p.tp)]
	times = slices.Clone(g.us)
	var exponent float64
	if n, _ := fmt.Sscanf(p.load, "power_law_%g", &exponent); n == 1 {
		for i, tokens := range g.x {
			if tokens*p.topK == p.experts {
				times[i] = max(times[i], times[i+1]*p.chosen(tokens, exponent)/p.chosen(g.x[i+1], exponent))
			}
		}
	}
	return g.x, times
}

// chosen counts experts that get at least half of a token if the tokens of experts are in proportion to values between
// 1 and 0.8 times the tokens, whose density is a power: each of many quantiles is an expert.
func (p *plain) chosen(tokens, exponent float64) float64 {
	const quantiles = 1e5
	value := func(q float64) float64 {
		return math.Pow(1-q+q*math.Pow(0.8*tokens, 1-exponent), 1/(1-exponent))
	}
	sum, count := 0.0, 0.0
	for i := range int(quantiles) {
		sum += value((float64(i) + 0.5) / quantiles)
	}
	for i := range int(quantiles) {
		if value((float64(i)+0.5)/quantiles)/sum*quantiles/p.experts*tokens*p.topK >= 0.5 {
			count++
		}
	}
	return count
}

// tokens is the time of all that depends on the m tokens of a step: layers without attention, and the embedding.
func (p *plain) tokens(m float64) float64 {
	return p.layers*p.layer(m) + 2*(2+p.memory(m*p.hidden*4)) + p.exchange(m)
}

// head is the time of logits and sampling for n sequences.
func (p *plain) head(n float64) float64 {
	us := p.gemm(n, math.Ceil(p.vocabulary/p.tp), p.hidden) + 20 + p.memory(n*p.vocabulary*20)
	if p.tp > 1 {
		us += p.at(fmt.Sprintf("nccl|all_gather|%g", p.tp), n*p.vocabulary, 0)
	}
	return us
}

// attention is the name of a series of this model's attention.
func (p *plain) attention(operator string) string {
	return fmt.Sprintf("%s|bfloat16|%g|0|%g|%g", operator, p.dim, math.Ceil(p.kv/p.tp), p.heads/p.tp)
}

// decode is the GPU time of a step of n sequences with context c each.
func (p *plain) decode(n, c float64) float64 {
	return p.tokens(p.padded(n)) + p.layers*p.decodeAttention(n, c) + p.head(n)
}

// decodeAttention is the time of a layer's attention for n sequences with context c each, whose keys and values are in
// memory and not in a cache.
func (p *plain) decodeAttention(n, c float64) float64 {
	name := p.attention("decode")
	read := 4 * math.Ceil(p.kv/p.tp) * p.dim * n * c / p.bandwidth * 1e6
	return max(p.at(name, n, c), p.at(name, 1, 0)+read)
}

// chunk is the GPU time of a step of n tokens of one sequence after past others. The attention of a long
// chunk grows with its pairs; what a table without tokens before the chunk has besides depends on its tokens.
func (p *plain) chunk(n, past float64) float64 {
	g := p.tables.series[p.attention("prefill")]
	pairs := func(n float64) float64 { return n * (n + 1) / 2 }
	pair := math.Inf(1)
	for j, y := range g.y {
		if j > 0 && y >= 8192 {
			pair = min(pair, (g.us[j]-g.us[j-1])/(pairs(y)-pairs(g.y[j-1])))
		}
	}
	var rest []float64
	for j, y := range g.y {
		rest = append(rest, max(0, g.us[j]-pair*pairs(y)))
		if j > 0 {
			rest[j] = max(rest[j], rest[j-1])
		}
	}
	return p.tokens(p.padded(n)) + p.layers*(along(g.y, rest, n)+pair*(n*past+pairs(n))) + p.head(1)
}

const multiprocessors = 132

// TestPlainStep: steps of decode and of a chunk are those of the plain computation, within what the points of
// curves lose.
func TestPlainStep(t *testing.T) {
	tables, err := Load("", "H100-SXM-80GB")
	if err != nil {
		t.Fatal(err)
	}
	var axes [2][]float64
	for _, f := range tables.fields("gemm|bfloat16") {
		for i := range axes {
			axes[i] = append(axes[i], float64(atoi(f[i])))
		}
	}
	small := plain{layers: 32, hidden: 4096, heads: 32, kv: 8, dim: 128, inner: 14336, vocabulary: 128256}
	large := plain{layers: 80, hidden: 8192, heads: 64, kv: 8, dim: 128, inner: 28672, vocabulary: 128256}
	mixtral := plain{layers: 32, hidden: 4096, heads: 32, kv: 8, dim: 128, inner: 14336, vocabulary: 32000,
		experts: 8, topK: 2, load: "balanced"}
	qwen := plain{layers: 48, hidden: 2048, heads: 32, kv: 4, dim: 128, inner: 768, vocabulary: 151936,
		experts: 128, topK: 8, load: "power_law_1.2"}
	for _, c := range []struct {
		name  string
		p     plain
		tp    int
		fused int64
	}{
		{"meta-llama/Llama-3.1-8B", small, 1, 0}, {"meta-llama/Llama-3.1-8B", small, 2, 0},
		{"meta-llama/Llama-3.1-70B", large, 4, 0}, {"meta-llama/Llama-3.1-70B", large, 4, 2 << 20},
		{"meta-llama/Llama-3.1-70B", large, 8, 1 << 19},
		{"mistralai/Mixtral-8x7B-v0.1", mixtral, 2, 0}, {"Qwen/Qwen3-30B-A3B", qwen, 1, 0},
		{"Qwen/Qwen3-30B-A3B", qwen, 2, 1 << 20},
	} {
		m := machine(c.tp)
		m.FusedBytes, m.OneShotBytes, m.Multiprocessors = c.fused, c.fused, multiprocessors
		o, err := Compile(built(t, c.name), tables, m)
		if err != nil {
			t.Fatal(err)
		}
		o.Host = latency.Host{Captured: o.Host.Captured, ChunkFactor: 1}
		step := newModel(t, o)
		c.p.tables, c.p.tp, c.p.bandwidth, c.p.link = tables, float64(c.tp), m.Bandwidth, m.Link
		c.p.axes = axes
		if c.p.experts > 0 {
			c.p.routed[0], c.p.routed[1] = c.p.loads()
		}
		c.p.fusedBytes, c.p.oneShotBytes, c.p.captured = float64(c.fused), float64(c.fused), float64(m.Captured)
		check := func(b latency.Batch, want float64) {
			t.Helper()
			if have := float64(step.Step(b)); math.Abs(have/want-1) > 0.04 {
				t.Errorf("%s, TP %d, fused %d: %+v takes %.0f µs, want %.0f: %+.1f %%", c.name, c.tp, c.fused, b, have,
					want, 100*(have/want-1))
			}
		}
		for i, n := range o.Sequences.At {
			if want := c.p.head(float64(n)); n <= 1024 && math.Abs(o.Sequences.US[i]/want-1) > 0.005 {
				t.Errorf("%s, TP %d: the head of %d sequences takes %g µs, want %g", c.name, c.tp, n, o.Sequences.US[i],
					want)
			}
		}
		for i, n := range o.Decode.Sequences {
			for j, context := range o.Decode.Context {
				have := o.Decode.US[i*len(o.Decode.Context)+j]
				want := c.p.layers * c.p.decodeAttention(float64(n), float64(context))
				if n <= 512 && math.Abs(have/want-1) > 0.01 {
					t.Errorf("%s, TP %d: attention of %d sequences with %d tokens takes %g µs, want %g", c.name, c.tp,
						n, context, have, want)
				}
			}
		}
		for i, n := range o.Tokens.At {
			have, want := o.Tokens.US[i], c.p.tokens(float64(n))
			if c.p.experts > 0 {
				have += o.Experts.US[i]
			}
			if n <= 8192 && math.Abs(have/want-1) > 0.01 {
				t.Errorf("%s, TP %d, fused %d: %d tokens take %g µs, want %g", c.name, c.tp, c.fused, n, have, want)
			}
		}
		for _, n := range []int64{1, 3, 8, 13, 40, 64, 100, 200, 400, 700} {
			for _, context := range []int64{100, 1000, 5000} {
				check(latency.Batch{Decode: n, Context: n * context}, c.p.decode(float64(n), float64(context)))
				// A multiprocessor computes a sequence and a KV head. Where all run at once, the longest counts.
				kv := math.Ceil(c.p.kv / c.p.tp)
				longer := float64(context) * min(1, multiprocessors/(kv*float64(n)))
				check(latency.Batch{Decode: n, Context: n * context, LongestContext: 2 * context},
					c.p.decode(float64(n), float64(context)+longer))
			}
		}
		for _, n := range []int64{20, 130, 500, 1000, 3000, 8000} {
			for _, past := range []int64{0, 700, 9000} {
				check(latency.Batch{Prefill: n, Chunks: 1, PriorContext: past, Pairs: n*past + n*(n+1)/2},
					c.p.chunk(float64(n), float64(past)))
			}
		}
	}
}
