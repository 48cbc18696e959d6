package model

import "blis/pkg/registry"

// family holds the properties that a model_type implies beyond the fields of its files.
type family struct {
	// qkvBias and outBias apply unless attention_bias is given.
	qkvBias, outBias, qkNorm, sinks bool
	// gate: attention has an output gate unless attn_output_gate is false. modelStates: the numbers of a state are
	// those of the model unless mamba_ssm_dtype is given.
	gate, modelStates bool
	// adaptedEmbeddings: LoRA adapters also apply to the embedding matrices (embedding_modules of the classes in
	// vllm/model_executor/models, v0.33.0).
	adaptedEmbeddings bool
	// norms is the number of norms of a layer, expertNorms that of a layer with experts; 0 means 2.
	norms, expertNorms int
	tied               bool
	// latent: the attention is MLA, and kv_lora_rank is required.
	latent bool
	// compressed: the attention is that of DeepSeek-V4.
	compressed bool
	// linear is the kind of the layers that are linear; blocks: each layer is only attention, only an
	// MLP, or only linear; plainMLP: MLPs have two matrices.
	linear   string
	blocks   bool
	plainMLP bool
	experts  expertLayers
	defaults defaults
	windows  windows
}

// defaults are the values of omitted fields: text_config of gemma-3 and similar files has only what
// differs from its class in Hugging Face's transformers.
type defaults struct{ headDim, globalHeadDim, vocab, heads, kvHeads, positions, perLayer int }

// windows are a family's sliding windows: the size if omitted; pattern, where one of every pattern
// layers has full attention; and whether they are off unless use_sliding_window is given.
type windows struct {
	size, pattern int
	offByDefault  bool
	chunked       bool // the windows are chunks
}

// expertLayers describes layers with experts besides the experts' matrices: biases, a scale per
// expert in the router, and a dense MLP.
type expertLayers struct {
	bias, routerScale, routerBias bool
	nonExpert                     nonExpert
}

type nonExpert uint8

const (
	// sharedByCount: n_shared_experts, each of the experts' size.
	sharedByCount nonExpert = iota + 1
	// sharedSingle: one shared expert.
	sharedSingle
	// denseMLP: a dense MLP of intermediate_size.
	denseMLP
)

// families are the supported model types.
var families = registry.Table[family]{
	{Name: "llama", Value: family{adaptedEmbeddings: true}},
	{Name: "mistral", Value: family{adaptedEmbeddings: true}},
	{Name: "mixtral", Value: family{adaptedEmbeddings: true}},
	{Name: "phi3", Value: family{}},
	{Name: "qwen2", Value: family{qkvBias: true, windows: windows{offByDefault: true}}},
	{Name: "qwen3", Value: family{qkNorm: true, adaptedEmbeddings: true, windows: windows{offByDefault: true}}},
	{Name: "qwen3_moe", Value: family{qkNorm: true, adaptedEmbeddings: true, windows: windows{offByDefault: true}}},
	{Name: "deepseek_v2", Value: deepSeekFamily},
	{Name: "deepseek_v3", Value: deepSeekFamily},
	{Name: "deepseek_v32", Value: deepSeekFamily},
	{Name: "kimi_k2", Value: deepSeekFamily},
	{Name: "glm_moe_dsa", Value: deepSeekFamily},
	{Name: "deepseek_v4", Value: deepSeekV4Family},
	{Name: "deepseek_ref", Value: deepSeekV4Family},
	{Name: "kimi_linear", Value: family{latent: true, linear: KimiDelta,
		experts: expertLayers{nonExpert: sharedByCount}}},
	{Name: "minimax_m2", Value: miniMaxFamily},
	{Name: "minimax_m3", Value: miniMaxFamily},
	{Name: "minimax_m3_vl", Value: miniMaxFamily},
	{Name: "mimo", Value: family{qkvBias: true, windows: windows{offByDefault: true}}},
	{Name: "mimo_v2_flash", Value: family{sinks: true, experts: expertLayers{nonExpert: sharedByCount}}},
	{Name: "qwen3_vl_text", Value: family{qkNorm: true}},
	{Name: "qwen3_vl_moe_text", Value: family{qkNorm: true}},
	{Name: "qwen3_next", Value: qwenNextFamily},
	{Name: "qwen3_5_text", Value: qwen35Family},
	{Name: "qwen3_5_moe_text", Value: qwen35Family},
	{Name: "step3p7", Value: family{qkNorm: true, experts: expertLayers{nonExpert: sharedByCount}}},
	{Name: "nemotron-nas", Value: family{adaptedEmbeddings: true}},
	{Name: "nemotron_h", Value: family{adaptedEmbeddings: true, linear: mamba2, blocks: true, plainMLP: true,
		experts: expertLayers{nonExpert: sharedByCount, routerBias: true}}},
	{
		Name: "gpt_oss",
		Value: family{qkvBias: true, outBias: true, sinks: true, experts: expertLayers{bias: true},
			windows: windows{size: 128, pattern: 2}},
	},
	{Name: "llama4_text", Value: llama4Family},
	{Name: "llama4", Value: llama4Family},
	{Name: "gemma3_text", Value: gemma3Family},
	{Name: "gemma3", Value: gemma3Family},
	{Name: "gemma4_text", Value: gemma4Family},
	{Name: "gemma4", Value: gemma4Family},
}

var (
	deepSeekFamily   = family{latent: true, experts: expertLayers{nonExpert: sharedByCount}}
	deepSeekV4Family = family{compressed: true, experts: expertLayers{nonExpert: sharedByCount}}
	miniMaxFamily    = family{qkNorm: true, experts: expertLayers{nonExpert: sharedByCount}}
	qwen35Family     = family{qkNorm: true, adaptedEmbeddings: true, linear: GatedDeltaNet,
		experts: expertLayers{nonExpert: sharedByCount}}
	qwenNextFamily = family{qkNorm: true, gate: true, linear: GatedDeltaNet, modelStates: true,
		experts: expertLayers{nonExpert: sharedByCount}}
	llama4Family = family{experts: expertLayers{nonExpert: sharedSingle},
		windows: windows{size: 8192, pattern: 4, chunked: true}}
	gemma3Family = family{qkNorm: true, norms: 4, tied: true, windows: windows{size: 4096, pattern: 6},
		defaults: defaults{headDim: 256, vocab: 262208, heads: 8, kvHeads: 4, positions: 131072}}
	// A layer of gemma-4 with experts has three more norms, and its router scales its input, which adds
	// a fourth (transformers, modeling_gemma4.py). The per-layer embeddings and the shared keys and
	// values of the small gemma-4 models are rejected.
	gemma4Family = family{
		qkNorm:      true,
		norms:       4,
		expertNorms: 8,
		tied:        true,
		experts:     expertLayers{routerScale: true, nonExpert: denseMLP},
		windows:     windows{size: 512, pattern: 6},
		defaults: defaults{headDim: 256, globalHeadDim: 512, vocab: 262144, heads: 8, kvHeads: 4, positions: 131072,
			perLayer: 256},
	}
)
