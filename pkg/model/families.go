package model

import "blis/pkg/registry"

// family is what a model_type means beyond the fields of its files.
type family struct {
	// qkvBias and outBias hold unless attention_bias says otherwise.
	qkvBias, outBias, qkNorm, sinks bool
	// norms of each layer, and of one with experts; 2 if it is 0.
	norms, expertNorms int
	tied               bool
	// latent: the attention is MLA, and a file without kv_lora_rank is not whole.
	latent   bool
	experts  expertLayers
	defaults defaults
	windows  windows
}

// defaults are what files leave out: text_config of gemma-3 and its like has only
// what differs from its class in Hugging Face's transformers.
type defaults struct{ headDim, globalHeadDim, vocab, heads, kvHeads, positions, perLayer int }

// windows are what is known of a family's: their size where files leave it out;
// that of every so many (pattern) layers one sees everything; and that they are
// off where use_sliding_window is not said.
type windows struct {
	size, pattern int
	offByDefault  bool
}

// expertLayers is what layers of experts have beside their matrices: a number
// for each expert, in router or expert, and a dense MLP.
type expertLayers struct {
	bias, routerScale bool
	nonExpert         nonExpert
}

type nonExpert uint8

const (
	// sharedCount: n_shared_experts, each of the experts' size.
	sharedByCount nonExpert = iota + 1
	// sharedOne: one of the experts' size.
	sharedSingle
	// denseToo: one of intermediate_size.
	denseMLP
)

// families are the model types that can be read.
var families = registry.Table[family]{
	{Name: "llama", Value: family{}},
	{Name: "mistral", Value: family{}},
	{Name: "mixtral", Value: family{}},
	{Name: "phi3", Value: family{}},
	{Name: "qwen2", Value: family{qkvBias: true, windows: windows{offByDefault: true}}},
	{Name: "qwen3", Value: family{qkNorm: true, windows: windows{offByDefault: true}}},
	{Name: "qwen3_moe", Value: family{qkNorm: true, windows: windows{offByDefault: true}}},
	{Name: "deepseek_v2", Value: deepSeekFamily},
	{Name: "deepseek_v3", Value: deepSeekFamily},
	{Name: "deepseek_v32", Value: deepSeekFamily},
	{Name: "kimi_k2", Value: deepSeekFamily},
	{Name: "gpt_oss", Value: family{qkvBias: true, outBias: true, sinks: true, experts: expertLayers{bias: true}, windows: windows{size: 128, pattern: 2}}},
	{Name: "llama4_text", Value: llama4Family},
	{Name: "llama4", Value: llama4Family},
	{Name: "gemma3_text", Value: gemma3Family},
	{Name: "gemma3", Value: gemma3Family},
	{Name: "gemma4_text", Value: gemma4Family},
	{Name: "gemma4", Value: gemma4Family},
}

var (
	deepSeekFamily = family{latent: true, experts: expertLayers{nonExpert: sharedByCount}}
	llama4Family   = family{experts: expertLayers{nonExpert: sharedSingle}, windows: windows{size: 8192, pattern: 4}}
	gemma3Family   = family{qkNorm: true, norms: 4, tied: true, windows: windows{size: 4096, pattern: 6},
		defaults: defaults{headDim: 256, vocab: 262208, heads: 8, kvHeads: 4, positions: 131072}}
	// A layer of gemma-4 with experts has three norms more, and its router scales
	// its input, which makes four (transformers, modeling_gemma4.py). The embeddings
	// for each layer and the shared keys and values of the small gemma-4 are refused.
	gemma4Family = family{qkNorm: true, norms: 4, expertNorms: 8, tied: true, experts: expertLayers{routerScale: true, nonExpert: denseMLP}, windows: windows{size: 512, pattern: 6},
		defaults: defaults{headDim: 256, globalHeadDim: 512, vocab: 262144, heads: 8, kvHeads: 4, positions: 131072, perLayer: 256}}
)
