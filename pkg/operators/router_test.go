package operators

import (
	"math"
	"testing"

	"blis/pkg/model"
)

// near reports whether two times are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestRouters: the router of MiniMax-M2 is a product in 32 bits, those of others are in 16.
func TestRouters(t *testing.T) {
	const launch, perMicrosecond = 2.0, 460800.0 // FLOPs of a multiprocessor
	for tokens, want := range map[float64]float64{
		1:    launch + 2*16*3072/perMicrosecond + 2*256*3072/(130*perMicrosecond),
		64:   launch + 2*64*16*3072/perMicrosecond + 2*64*256*3072/(130*perMicrosecond),
		8192: launch + 2*128*16*3072/perMicrosecond + 2*8192*256*3072/(130*perMicrosecond),
	} {
		if got := float32Product(tokens, 256, 3072); !near(got, want) {
			t.Errorf("%g tokens: %g µs, want %g", tokens, got, want)
		}
	}
	for _, c := range []struct {
		kind        string
		tensorFloat bool
		want        []float64 // kernels for 64 tokens
	}{
		{"qwen3_moe", false, []float64{10}},
		{"minimax_m2", true, []float64{2 + 64*4*512/0.8e6, 10}},
		{"minimax_m2", false, []float64{2 + 64*4*512/0.8e6, float32Product(64, 8, 512)}},
	} {
		tables := newTables("test")
		tables.series[key("gemm", "bfloat16", 8, 512)] = line(1, 512)
		comp := &compiler{tables: tables, arch: &model.Architecture{Type: c.kind, Hidden: 512},
			machine: Machine{Bandwidth: 1e12, TensorFloat32: c.tensorFloat}}
		comp.router(3, 8)
		if len(comp.tokens) != len(c.want) {
			t.Fatalf("%s: %d kernels, want %d", c.kind, len(comp.tokens), len(c.want))
		}
		for i, k := range comp.tokens {
			if got := k.us(64); k.count != 3 || !near(got, c.want[i]) {
				t.Errorf("%s, kernel %d: %g times %g µs, want 3 times %g", c.kind, i, k.count, got, c.want[i])
			}
		}
	}
}

// TestFusedProducts: a norm quantizes the inputs of products in 8 bits, which the tables do before the product.
func TestFusedProducts(t *testing.T) {
	tables := newTables("test")
	for _, format := range []string{"bfloat16", "fp8", "nvfp4"} {
		tables.series[key("gemm", format, 8, 512)] = line(1, 4096)
	}
	comp := &compiler{tables: tables, arch: &model.Architecture{Hidden: 512}, machine: Machine{Bandwidth: 1e12}}
	for _, format := range []string{"", "fp8", "nvfp4"} {
		comp.fusedProduct(1, format, 8, 512)
	}
	quantized := comp.tokens[1].us
	if got := [2]float64{comp.tokens[0].us(64), comp.tokens[2].us(64)}; got != [2]float64{10, 10} {
		t.Errorf("other formats take %v µs, want 10", got)
	}
	if got, want := quantized(64), 10-2-64*3*512/0.8e6; !near(got, want) {
		t.Errorf("%g µs, want %g", got, want)
	}
	if got := quantized(4096); got != 2 {
		t.Errorf("%g µs, want those of the shortest kernel", got)
	}
}
