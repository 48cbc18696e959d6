package operators

import (
	"fmt"
	"math"
	"testing"

	"blis/pkg/latency"
)

// plain is a second, simple computation of a step of a dense Llama model, from the rules and the series
// of the tables: no curves, no grid of sizes, no sharing of code with the compiler.
type plain struct {
	tables                                              *Tables
	layers, hidden, heads, kv, dim, inner, vocabulary   float64
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
	axes := [2][]float64{}
	for _, f := range p.tables.fields("gemm|bfloat16") {
		for i := range axes {
			axes[i] = append(axes[i], float64(atoi(f[i])))
		}
	}
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
	n0, n1, wn, fn := around(axes[0], n)
	k0, k1, wk, fk := around(axes[1], k)
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
	us, bytes := p.at(name, m*p.hidden, 0), 2*m*p.hidden
	if bytes > p.fusedBytes {
		return us
	}
	if bytes <= p.oneShotBytes {
		us = min(us, p.at(name, 1, 0)+(p.tp-1)*bytes/p.link*1e6)
	}
	return max(2, us-2-p.memory(2*bytes))
}

// decode is the GPU time of a step of n sequences with context c each.
func (p *plain) decode(n, c float64) float64 {
	m := n // tokens of the CUDA graph
	switch {
	case n > p.captured:
	case n > 256:
		m = 16 * math.Ceil(n/16)
	case n > 4:
		m = 8 * math.Ceil(n/8)
	case n == 3:
		m = 4
	}
	width := (p.heads + 2*p.kv) * p.dim / p.tp
	layer := p.gemm(m, width, p.hidden) + p.gemm(m, p.hidden, p.heads*p.dim/p.tp) +
		p.gemm(m, 2*p.inner/p.tp, p.hidden) + p.gemm(m, p.hidden, p.inner/p.tp) +
		4*(2+p.memory(m*p.hidden*4)) + 2*(2+p.memory(m*2*p.inner/p.tp*4)) +
		2*p.exchange(m) +
		p.at(fmt.Sprintf("decode|bfloat16|%g|0|%g|%g", p.dim, p.kv/p.tp, p.heads/p.tp), n, c)
	head := p.gemm(n, math.Ceil(p.vocabulary/p.tp), p.hidden) + 20 + p.memory(n*p.vocabulary*20)
	ends := 2 * (2 + p.memory(m*p.hidden*4))
	if p.tp > 1 {
		head += p.at(fmt.Sprintf("nccl|all_gather|%g", p.tp), n*p.vocabulary, 0)
		ends += p.exchange(m)
	}
	return p.layers*layer + head + ends
}

// TestPlainStep: decode steps of two Llama models are those of the plain computation, within what the
// points of curves lose.
func TestPlainStep(t *testing.T) {
	tables, err := Load("", "H100-SXM-80GB")
	if err != nil {
		t.Fatal(err)
	}
	small := plain{layers: 32, hidden: 4096, heads: 32, kv: 8, dim: 128, inner: 14336, vocabulary: 128256}
	large := plain{layers: 80, hidden: 8192, heads: 64, kv: 8, dim: 128, inner: 28672, vocabulary: 128256}
	for _, c := range []struct {
		name  string
		p     plain
		tp    int
		fused int64
	}{
		{"meta-llama/Llama-3.1-8B", small, 1, 0}, {"meta-llama/Llama-3.1-8B", small, 2, 0},
		{"meta-llama/Llama-3.1-70B", large, 4, 0}, {"meta-llama/Llama-3.1-70B", large, 4, 2 << 20},
		{"meta-llama/Llama-3.1-70B", large, 8, 1 << 19},
	} {
		m := machine(c.tp)
		m.FusedBytes, m.OneShotBytes = c.fused, c.fused
		o, err := Compile(built(t, c.name), tables, m)
		if err != nil {
			t.Fatal(err)
		}
		o.Host = latency.Host{Captured: o.Host.Captured, ChunkFactor: 1}
		step := newModel(t, o)
		c.p.tables, c.p.tp, c.p.bandwidth, c.p.link = tables, float64(c.tp), m.Bandwidth, m.Link
		c.p.fusedBytes, c.p.oneShotBytes, c.p.captured = float64(c.fused), float64(c.fused), float64(m.Captured)
		for _, n := range []int64{1, 3, 8, 13, 40, 64, 100, 200, 400, 700} {
			for _, context := range []int64{100, 1000, 5000} {
				have := float64(step.Step(latency.Batch{Decode: n, Context: n * context}))
				if want := c.p.decode(float64(n), float64(context)); math.Abs(have/want-1) > 0.04 {
					t.Errorf("%s, TP %d, fused %d: %d sequences of %d take %.0f µs, want %.0f: %+.1f %%", c.name, c.tp,
						c.fused, n, context, have, want, 100*(have/want-1))
				}
			}
		}
	}
}
