package model

import (
	"math"
	"testing"
)

// published holds the numbers on the models' cards, in 10^9 parameters, with the value of their
// last digit; exact is the sum over the published weight files if known. matrices is the number of
// embedding matrices included in the active count.
var published = []struct {
	model          string
	total, digit   float64
	active, unit   float64
	matrices       int
	outside        float64 // part of the total in image towers
	exact, kvBytes int64
}{
	{"meta-llama/Llama-3.1-8B-Instruct", 8.03, 0.01, 0, 0, 0, 0, 8030261248, 131072},
	{"meta-llama/Llama-3.1-70B-Instruct", 70.6, 0.1, 0, 0, 0, 0, 70553706496, 327680},
	{"meta-llama/Llama-3.3-70B-Instruct", 70.6, 0.1, 0, 0, 0, 0, 70553706496, 327680},
	{"meta-llama/Llama-3.1-405B", 405.85, 0.01, 0, 0, 0, 0, 0, 516096},
	{"meta-llama/Llama-2-7b-hf", 6.74, 0.01, 0, 0, 0, 0, 6738415616, 524288},
	{"meta-llama/Llama-2-70b-hf", 68.98, 0.01, 0, 0, 0, 0, 68976648192, 327680},
	{"codellama/CodeLlama-34b-Instruct-hf", 33.7, 0.1, 0, 0, 0, 0, 0, 196608},
	{"01-ai/Yi-34B", 34.4, 0.1, 0, 0, 0, 0, 0, 245760},
	{"microsoft/phi-4", 14.7, 0.1, 0, 0, 0, 0, 0, 204800},
	{"mistralai/Mistral-Nemo-Instruct-2407", 12.2, 0.1, 0, 0, 0, 0, 0, 163840},
	{"mistralai/Mixtral-8x7B-v0.1", 46.7, 0.1, 12.9, 0.1, 2, 0, 46702792704, 131072},
	{"mistralai/Mixtral-8x22B-v0.1", 141, 1, 39, 1, 2, 0, 0, 229376},
	{"mistralai/Mixtral-8x22B-Instruct-v0.1", 141, 1, 39, 1, 2, 0, 140630071296, 229376},
	{"Qwen/Qwen2.5-7B-Instruct", 7.61, 0.01, 0, 0, 0, 0, 7615616512, 57344},
	{"Qwen/Qwen3-8B", 8.2, 0.1, 0, 0, 0, 0, 0, 147456},
	{"Qwen/Qwen3-14B", 14.8, 0.1, 0, 0, 0, 0, 0, 163840},
	{"Qwen/Qwen3-32B", 32.8, 0.1, 0, 0, 0, 0, 0, 262144},
	{"Qwen/Qwen3-30B-A3B", 30.5, 0.1, 3.3, 0.1, 2, 0, 0, 98304},
	{"Qwen/Qwen3-235B-A22B", 235, 1, 22, 1, 2, 0, 0, 192512},
	{"deepseek-ai/DeepSeek-V3", 671, 1, 37, 1, 2, 0, 0, 70272},
	{"deepseek-ai/DeepSeek-V2-Lite", 15.7, 0.1, 2.4, 0.1, 1, 0, 0, 31104},
	{"moonshotai/Kimi-K2-Instruct", 1000, 1000, 32, 1, 2, 0, 0, 70272},
	{"openai/gpt-oss-120b", 116.8, 0.1, 5.1, 0.1, 1, 0, 0, 73728},
	{"openai/gpt-oss-20b", 20.9, 0.1, 3.6, 0.1, 1, 0, 0, 49152},
	{"meta-llama/Llama-4-Scout-17B-16E", 109, 1, 17, 1, 2, 0.87, 0, 196608},
	{"meta-llama/Llama-4-Maverick-17B-128E", 400, 1, 17, 1, 2, 0.87, 0, 196608},
	{"google/gemma-4-26B-A4B", 25.2, 0.1, 3.8, 0.1, 1, 0, 0, 225280},
	{"google/gemma-3-12b-it", 12.2, 0.1, 0, 0, 0, 0.42, 0, 393216},
}

// TestPublishedParameters compares the counts with the cards: totals within 0.5 % or half of the
// last digit, active ones within 0.5 % or one of the last digit.
func TestPublishedParameters(t *testing.T) {
	for _, p := range published {
		a, err := BuiltIn(p.model)
		if err != nil {
			t.Error(err)
			continue
		}
		parts := a.Parameters()
		total := float64(a.TotalParameters())/1e9 + p.outside
		if diff := math.Abs(total - p.total); diff > max(0.005*p.total, p.digit/2) {
			t.Errorf("%s: %.3f·10⁹ parameters, published are %g", p.model, total, p.total)
		}
		if p.exact != 0 && a.TotalParameters() != p.exact {
			t.Errorf("%s: %d parameters, the weight files have %d", p.model, a.TotalParameters(), p.exact)
		}
		if got := a.KVBytesPerToken(); got != p.kvBytes {
			t.Errorf("%s: %d KV bytes a token, want %d", p.model, got, p.kvBytes)
		}
		have := 2
		if a.TiedEmbeddings {
			have = 1
		}
		active := float64(a.ActiveParameters()-int64(have-p.matrices)*parts.Embedding) / 1e9
		if diff := math.Abs(active - p.active); p.active != 0 && diff > max(0.005*p.active, p.unit) {
			t.Errorf("%s: %.3f·10⁹ active parameters with %d embedding matrices, published are %g", p.model, active,
				p.matrices, p.active)
		}
		t.Logf("%-40s total %9.3f (published %g, outside %g), active %7.3f with %d matrices (published %g)",
			p.model, total-p.outside, p.total, p.outside, active, p.matrices, p.active)
	}
}

// TestWorkAddsUp: the parts of Work add up to all parameters and bytes, in any format.
func TestWorkAddsUp(t *testing.T) {
	for _, a := range BuiltIns() {
		for _, o := range []Overrides{{}, {Quantization: "fp8"}, {Quantization: "mxfp4"},
			{DType: "float32", Quantization: "none", KVCacheDType: "fp8"}} {
			b, err := a.With(o)
			if err != nil {
				t.Fatal(err)
			}
			w := b.Work()
			experts := int64(w.ExpertLayers) * int64(w.Experts)
			got := w.Dense.Params + experts*w.Expert.Params + w.Head.Params + w.Embedding.Params
			if got != a.TotalParameters() {
				t.Errorf("%s: parts of %d parameters, in all %d", a.Name, got, a.TotalParameters())
			}
			active := w.Dense.Params + int64(w.ExpertLayers)*int64(
				w.ExpertsPerToken)*w.Expert.Params + w.Head.Params + w.Embedding.Params
			if active != a.ActiveParameters() || active > a.TotalParameters() ||
				(active < a.TotalParameters()) != (w.Experts > 0) {
				t.Errorf("%s: %d active parameters of %d, want %d", a.Name, active, a.TotalParameters(),
					a.ActiveParameters())
			}
			if got := w.KVBytes + w.WindowKVBytes; got != b.KVBytesPerToken() {
				t.Errorf("%s: %d KV bytes a token in parts, in all %d", a.Name, got, b.KVBytesPerToken())
			}
			// No weight takes less than half a byte or more than 4 bytes.
			if bytes := b.WeightBytes(); bytes < a.TotalParameters()/2 || bytes > 4*a.TotalParameters() {
				t.Errorf("%s with %+v: %d bytes for %d parameters", a.Name, o, bytes, a.TotalParameters())
			}
		}
	}
}

// TestBytes checks numbers that were looked up or computed by hand.
func TestBytes(t *testing.T) {
	for _, c := range []struct {
		model     string
		o         Overrides
		weights   int64
		kv        int64
		computes  string
		tolerance float64
	}{
		// 2 bytes each; vLLM shows 14.96 GiB when it loads it.
		{"meta-llama/Llama-3.1-8B", Overrides{}, 2 * 8030261248, 131072, "bf16", 0},
		{"meta-llama/Llama-3.1-8B", Overrides{KVCacheDType: "fp8"}, 2 * 8030261248, 65536, "bf16", 0},
		// Both embedding matrices and the norms stay in 2 bytes: 1050673152 and 266240.
		{"meta-llama/Llama-3.1-8B", Overrides{Quantization: "fp8"}, 8030261248 + 1050673152 + 266240, 131072, "fp8", 0},
		// The weight files have 65,248,815,744 bytes.
		{"openai/gpt-oss-120b", Overrides{}, 65248815744, 73728, "bf16", 0.002},
		// 688.6e9 includes the 11.5e9 of the layer that predicts further tokens, which is not loaded.
		{"deepseek-ai/DeepSeek-V3", Overrides{}, 673000000000, 70272, "fp8", 0.002},
	} {
		a, err := BuiltIn(c.model)
		if err != nil {
			t.Fatal(err)
		}
		b, err := a.With(c.o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := math.Abs(float64(b.WeightBytes()-c.weights)) / float64(c.weights); diff > c.tolerance {
			t.Errorf("%s with %+v: %d bytes, want %d", c.model, c.o, b.WeightBytes(), c.weights)
		}
		if b.KVBytesPerToken() != c.kv || b.ComputePrecision() != c.computes {
			t.Errorf("%s with %+v: %d KV bytes a token, computed in %s; want %d, %s", c.model, c.o,
				b.KVBytesPerToken(), b.ComputePrecision(), c.kv, c.computes)
		}
		if b.Overridden() != (c.o != Overrides{}) {
			t.Errorf("%s with %+v: overridden is %v", c.model, c.o, b.Overridden())
		}
	}
}

// TestPairFLOPs: 2 for each number of query and of value, in each head and layer.
func TestPairFLOPs(t *testing.T) {
	for name, want := range map[string]int64{
		"meta-llama/Llama-3.1-8B": 32 * 32 * (128 + 128) * 2,
		"deepseek-ai/DeepSeek-V3": 61 * 128 * (128 + 64 + 128) * 2,
		"openai/gpt-oss-20b":      12 * 64 * (64 + 64) * 2, // half of the layers
	} {
		a, err := BuiltIn(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Work().PairFLOPs; got != want {
			t.Errorf("%s: %d FLOPs a pair, want %d", name, got, want)
		}
		if name == "deepseek-ai/DeepSeek-V3" { // in the latent space
			want = 61 * 128 * (512 + 64 + 512) * 2
		}
		if got := a.Work().DecodePairFLOPs; got != want {
			t.Errorf("%s: %d FLOPs a pair of decode, want %d", name, got, want)
		}
	}
}
