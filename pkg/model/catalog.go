package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// BuiltIn returns the built-in model with this name, or another name of the same shape. Case is
// ignored, and so are the suffixes -Instruct, -hf, -Chat and -it, and "Meta-" before "Llama".
func BuiltIn(name string) (*Architecture, error) {
	want := fold(name)
	var have []string
	own := map[string]string{}
	for i := range catalog {
		for _, n := range catalog[i].names {
			if fold(n) == want {
				return catalog[i].model(), nil
			}
			for _, short := range []string{fold(n), bare(fold(n))} { // the owner may be missing
				if own[short] == "" {
					have, own[short] = append(have, short), n
				}
			}
		}
	}
	hint := ""
	if near := registry.Closest(want, have); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", own[near])
	} else if base := longestPrefix(bare(want), have); base != "" {
		hint = fmt.Sprintf("; its base seems to be %q, and engine.quantization states other weights", own[base])
	}
	return nil, fmt.Errorf("unknown model %q%s (blis-sim --list models shows the built-in models)", name, hint)
}

// longestPrefix returns the longest of some names that a name begins with, followed by a separator.
func longestPrefix(name string, have []string) (best string) {
	for _, h := range have {
		if len(h) > len(best) && (strings.HasPrefix(name, h+"-") || strings.HasPrefix(name, h+"_")) {
			best = h
		}
	}
	return best
}

// quantized is the end of a name that states the format of quantized weights.
var quantized = regexp.MustCompile(`([-_.](fp8|fp4|nvfp4|mxfp4|int[48]|awq|gptq|w[48]a(4|8|16)|` +
	`quantized|dynamic|block|[48]bit))+$`)

// IsQuantized reports whether the name of a model states the format of quantized weights.
func IsQuantized(name string) bool { return quantized.MatchString(strings.ToLower(name)) }

// SameName reports whether two names of models differ at most by owner, punctuation, the format of quantized weights
// and what BuiltIn ignores: llama2-70b and meta-llama/Llama-2-70b-hf.
func SameName(a, b string) bool {
	plain := func(name string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, fold(strings.TrimPrefix(quantized.ReplaceAllString(strings.ToLower(bare(name)), ""), "meta-")))
	}
	return plain(a) != "" && plain(a) == plain(b)
}

// bare returns a model's name without its owner.
func bare(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// BuiltIns returns all built-in models.
func BuiltIns() []*Architecture {
	var all []*Architecture
	for i := range catalog {
		all = append(all, catalog[i].model())
	}
	return all
}

// model returns a copy under the entry's first name.
func (k *catalogEntry) model() *Architecture {
	a := *k.arch
	a.Name = k.names[0]
	a.Layers = slices.Clone(a.Layers)
	for i, l := range a.Layers {
		if l.Attention.MLA != nil {
			m := *l.Attention.MLA
			a.Layers[i].Attention.MLA = &m
		}
	}
	return &a
}

func fold(name string) string {
	name = strings.Replace(strings.ToLower(name), "/meta-llama", "/llama", 1)
	for again := true; again; {
		again = false
		for _, end := range []string{"-instruct", "-hf", "-chat", "-it"} {
			if cut, ok := strings.CutSuffix(name, end); ok {
				name, again = cut, true
			}
		}
	}
	return name
}

// catalogEntry is a built-in model: the names of one shape, its own first.
type catalogEntry struct {
	names []string
	arch  *Architecture
}

// shape holds the sizes in which dense models differ.
type shape struct{ layers, hidden, inner, heads, kvHeads, headDim, vocab, positions int }

func (s shape) attention() Attention {
	return Attention{Heads: s.heads, KVHeads: s.kvHeads, HeadDim: s.headDim}
}

// arch returns a model of this size; groups are its layers if they are not all identical and dense.
func (s shape) arch(kind string, groups ...Layers) *Architecture {
	if groups == nil {
		groups = []Layers{{Count: s.layers, Attention: s.attention(), MLP: MLP{Intermediate: s.inner}, Norms: 2}}
	}
	return &Architecture{Type: kind, Hidden: s.hidden, Vocab: s.vocab, MaxPositions: s.positions, Layers: groups,
		Precision: Precision{DType: "bfloat16", KVCache: "auto"}}
}

// withPrecision sets the number formats.
func (a *Architecture) withPrecision(dtype, quantization string) *Architecture {
	a.Precision.DType, a.Precision.Quantization = dtype, quantization
	return a
}

// withBlockScales: the scales of 8-bit weights are per block.
func (a *Architecture) withBlockScales() *Architecture {
	a.Precision.BlockScales = true
	return a
}

// withAttention changes the attention of all layers.
func (a *Architecture) withAttention(change func(*Attention)) *Architecture {
	for i := range a.Layers {
		change(&a.Layers[i].Attention)
	}
	return a
}

func qkNorm(t *Attention) { t.QKNorm = true }

// sparse returns n layers of this size with experts.
func (s shape) sparse(n int, m MLP) Layers {
	return Layers{Count: n, Attention: s.attention(), MLP: m, Norms: 2}
}

// deepSeek returns a model with latent attention, with dense layers first and experts after.
func deepSeek(kind string, s shape, dense int, latent MLA, m MLP) *Architecture {
	t := Attention{Heads: s.heads, KVHeads: s.kvHeads, MLA: &latent}
	return s.arch(kind,
		Layers{Count: dense, Attention: t, MLP: MLP{Intermediate: s.inner}, Norms: 2},
		Layers{Count: s.layers - dense, Attention: t, MLP: m, Norms: 2})
}

// gptOSS returns a model in which half of the layers have windows of 128 tokens.
func gptOSS(s shape, experts int) *Architecture {
	m := MLP{Experts: experts, ExpertsPerToken: 4, ExpertIntermediate: s.inner, RouterBias: true, ExpertBias: true}
	windowed, full := s.sparse(s.layers/2, m), s.sparse(s.layers/2, m)
	windowed.Attention.Window = 128
	setBiases := func(t *Attention) { t.QKVBias, t.OutBias, t.Sinks = true, true, true }
	return s.arch("gpt_oss", windowed, full).withAttention(setBiases).withPrecision("bfloat16", "mxfp4")
}

var (
	llama31x8B  = shape{32, 4096, 14336, 32, 8, 128, 128256, 131072}
	llama31x70B = shape{80, 8192, 28672, 64, 8, 128, 128256, 131072}
	llama4      = shape{48, 5120, 16384, 40, 8, 128, 202048, 0}
	qwen3x32B   = shape{64, 5120, 25600, 64, 8, 128, 151936, 40960}
	deepSeekV3  = shape{layers: 61, hidden: 7168, inner: 18432, heads: 128, kvHeads: 128, vocab: 129280,
		positions: 163840}
	deepSeekMLA = MLA{QRank: 1536, KVRank: 512, NopeDim: 128, RopeDim: 64, VDim: 128}
	deepSeekMoE = MLP{Intermediate: 2048, Experts: 256, ExpertsPerToken: 8, ExpertIntermediate: 2048, RouterBias: true}
	deepSeekV32 = Index{Heads: 64, Dim: 128, TopK: 2048}
	gemma3x12B  = shape{48, 3840, 15360, 16, 8, 256, 262208, 131072}
	gemma4x26B  = shape{30, 2816, 2112, 16, 8, 256, 262144, 262144}
)

// catalog holds the models with configurations as published by their authors on Hugging Face.
var catalog = []catalogEntry{
	{[]string{"meta-llama/Llama-2-7b"},
		shape{32, 4096, 11008, 32, 32, 128, 32000, 4096}.arch("llama").withPrecision("float16", "")},
	{[]string{"meta-llama/Llama-2-70b"},
		shape{80, 8192, 28672, 64, 8, 128, 32000, 4096}.arch("llama").withPrecision("float16", "")},
	{[]string{"meta-llama/Llama-3.1-8B"}, llama31x8B.arch("llama")},
	{[]string{"meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.3-70B"}, llama31x70B.arch("llama")},
	{[]string{"nvidia/Llama-3.1-70B-Instruct-FP8"}, llama31x70B.arch("llama").withPrecision("bfloat16", "fp8")},
	{[]string{"meta-llama/Llama-3.1-405B"}, shape{126, 16384, 53248, 128, 8, 128, 128256, 131072}.arch("llama")},
	{[]string{"codellama/CodeLlama-34b"}, shape{48, 8192, 22016, 64, 8, 128, 32000, 16384}.arch("llama")},
	{[]string{"01-ai/Yi-34B"}, shape{60, 7168, 20480, 56, 8, 128, 64000, 4096}.arch("llama")},
	{[]string{"microsoft/phi-4"}, shape{40, 5120, 17920, 40, 10, 128, 100352, 16384}.arch("phi3")},
	{[]string{"mistralai/Mistral-Nemo-Instruct-2407"},
		shape{40, 5120, 14336, 32, 8, 128, 131072, 131072}.arch("mistral")},
	{[]string{"mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-Instruct-v0.1"},
		mixtral(shape{32, 4096, 14336, 32, 8, 128, 32000, 32768})},
	{[]string{"mistralai/Mixtral-8x22B-v0.1"}, mixtral(shape{56, 6144, 16384, 48, 8, 128, 32000, 65536})},
	{[]string{"mistralai/Mixtral-8x22B-Instruct-v0.1"}, mixtral(shape{56, 6144, 16384, 48, 8, 128, 32768, 65536})},
	{
		[]string{"Qwen/Qwen2.5-7B"},
		shape{28, 3584, 18944, 28, 4, 128, 152064, 32768}.arch("qwen2").
			withAttention(func(t *Attention) { t.QKVBias = true }),
	},
	{[]string{"Qwen/Qwen3-8B"}, shape{36, 4096, 12288, 32, 8, 128, 151936, 40960}.arch("qwen3").withAttention(qkNorm)},
	{[]string{"Qwen/Qwen3-14B"}, shape{40, 5120, 17408, 40, 8, 128, 151936, 40960}.arch("qwen3").withAttention(qkNorm)},
	{[]string{"Qwen/Qwen3-32B"}, qwen3x32B.arch("qwen3").withAttention(qkNorm)},
	{[]string{"Qwen/Qwen3-32B-FP8"}, qwen3x32B.arch("qwen3").withAttention(qkNorm).withPrecision("bfloat16", "fp8").
		withBlockScales()},
	{[]string{"Qwen/Qwen3-30B-A3B"}, qwenMoE(shape{48, 2048, 6144, 32, 4, 128, 151936, 40960}, 768)},
	{[]string{"Qwen/Qwen3-235B-A22B"}, qwenMoE(shape{94, 4096, 12288, 64, 4, 128, 151936, 40960}, 1536)},
	{
		[]string{"deepseek-ai/DeepSeek-V2-Lite"},
		deepSeek("deepseek_v2",
			shape{layers: 27, hidden: 2048, inner: 10944, heads: 16, kvHeads: 16, vocab: 102400, positions: 163840},
			1, MLA{KVRank: 512, NopeDim: 128, RopeDim: 64, VDim: 128},
			MLP{Intermediate: 2 * 1408, Experts: 64, ExpertsPerToken: 6, ExpertIntermediate: 1408}),
	},
	{[]string{"deepseek-ai/DeepSeek-V3"},
		deepSeek("deepseek_v3", deepSeekV3, 3, deepSeekMLA, deepSeekMoE).withPrecision("bfloat16", "fp8").
			withBlockScales()},
	{[]string{"deepseek-ai/DeepSeek-R1"},
		deepSeek("deepseek_v3", deepSeekV3, 3, deepSeekMLA, deepSeekMoE).withPrecision("bfloat16", "fp8").
			withBlockScales()},
	{[]string{"deepseek-ai/DeepSeek-V3.2"},
		deepSeek("deepseek_v32", deepSeekV3, 3, deepSeekMLA, deepSeekMoE).
			withAttention(func(t *Attention) { t.Index = deepSeekV32 }).withPrecision("bfloat16", "fp8").
			withBlockScales()},
	{
		[]string{"moonshotai/Kimi-K2"},
		deepSeek(
			"kimi_k2",
			shape{layers: 61, hidden: 7168, inner: 18432, heads: 64, kvHeads: 64, vocab: 163840, positions: 131072},
			1,
			deepSeekMLA,
			MLP{Intermediate: 2048, Experts: 384, ExpertsPerToken: 8, ExpertIntermediate: 2048, RouterBias: true},
		).withPrecision("bfloat16", "fp8").withBlockScales(),
	},
	{[]string{"openai/gpt-oss-20b"}, gptOSS(shape{24, 2880, 2880, 64, 8, 64, 201088, 131072}, 32)},
	{[]string{"openai/gpt-oss-120b"}, gptOSS(shape{36, 2880, 2880, 64, 8, 64, 201088, 131072}, 128)},
	{[]string{"meta-llama/Llama-4-Scout-17B-16E"}, scout()},
	{[]string{"meta-llama/Llama-4-Maverick-17B-128E"}, maverick()},
	{[]string{"google/gemma-3-12b"}, gemma3()},
	{[]string{"google/gemma-4-26B-A4B"}, gemma4()},
}

func mixtral(s shape) *Architecture {
	return s.arch("mixtral", s.sparse(s.layers, MLP{Experts: 8, ExpertsPerToken: 2, ExpertIntermediate: s.inner}))
}

func qwenMoE(s shape, inner int) *Architecture {
	return s.arch("qwen3_moe", s.sparse(s.layers, MLP{Experts: 128, ExpertsPerToken: 8, ExpertIntermediate: inner})).
		withAttention(qkNorm)
}

// chunked returns layer groups of a Llama 4: windowed layers that attend to their chunk of 8192
// tokens, and full ones.
func chunked(windowed, full int, m MLP) []Layers {
	a, b := llama4.sparse(windowed, m), llama4.sparse(full, m)
	a.Attention.Window, a.Attention.Chunked = 8192, true
	return []Layers{a, b}
}

func llama4MoE(experts int) MLP {
	return MLP{Intermediate: 8192, Experts: experts, ExpertsPerToken: 1, ExpertIntermediate: 8192}
}

func scout() *Architecture {
	a := llama4.arch("llama4_text", chunked(36, 12, llama4MoE(16))...)
	a.MaxPositions = 10485760
	return a
}

// maverick has experts in every other layer: the even ones, counted from one. All full-attention
// layers are among them.
func maverick() *Architecture {
	dense, sparse := MLP{Intermediate: 16384}, llama4MoE(128)
	windowed := chunked(24, 0, dense)[:1]
	a := llama4.arch("llama4_text", append(windowed, chunked(12, 12, sparse)...)...)
	a.MaxPositions = 1048576
	return a
}

func gemma3() *Architecture {
	s := gemma3x12B
	windowed := Layers{Count: 40, Attention: s.attention(), MLP: MLP{Intermediate: s.inner}, Norms: 4}
	full := windowed
	windowed.Attention.Window, full.Count = 1024, 8
	a := s.arch("gemma3_text", windowed, full).withAttention(qkNorm)
	a.TiedEmbeddings = true
	return a
}

func gemma4() *Architecture {
	s := gemma4x26B
	m := MLP{Intermediate: s.inner, Experts: 128, ExpertsPerToken: 8, ExpertIntermediate: 704, RouterBias: true}
	windowed := Layers{Count: 25, Attention: s.attention(), MLP: m, Norms: 8}
	full := windowed
	windowed.Attention.Window = 1024
	full.Count, full.Attention.HeadDim, full.Attention.KVHeads, full.Attention.KeysAreValues = 5, 512, 2, true
	a := s.arch("gemma4_text", windowed, full).withAttention(qkNorm)
	a.TiedEmbeddings = true
	return a
}
