package model

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	small = `"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, ` +
		`"num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 512`
	// Queries and output of 64x64, keys and values of 64x32, and the layer's norms.
	smallAttention = 2*64*64 + 2*64*32
	smallLayer     = smallAttention + 3*64*96 + 2*64
	smallEnds      = 2*100*64 + 64
)

// TestFamilies checks the properties of each model_type and the defaults of omitted fields. The
// totals are sums of matrix sizes, written out.
func TestFamilies(t *testing.T) {
	const (
		moe    = `, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 10`
		expert = 3 * 64 * 10
		latent = `, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6`
		// Queries of 4 heads of 8 + 4; down to 16 + 4 with a norm, up to 4 heads of 8 + 6; output.
		latentAttention = 64*48 + 64*20 + 16 + 16*56 + 24*64
	)
	for _, c := range []struct {
		why, kind, more string
		total           int64
		windowed        int64 // layers of 4 with a window
	}{
		{"plain", "llama", ``, smallEnds + 4*smallLayer, 0},
		{"tied", "llama", `, "tie_word_embeddings": true`, smallEnds - 6400 + 4*smallLayer, 0},
		{"attention_bias is of the output too", "llama", `, "attention_bias": true`,
			smallEnds + 4*(smallLayer+64+2*32+64), 0},
		{"but not in Qwen2", "qwen2", ``, smallEnds + 4*(smallLayer+64+2*32), 0},
		{"mlp_bias", "llama", `, "mlp_bias": true`, smallEnds + 4*(smallLayer+2*96+64), 0},
		{"norms of queries and keys", "qwen3", ``, smallEnds + 4*(smallLayer+2*16), 0},
		{"a window in all layers", "mistral", `, "sliding_window": 32`, smallEnds + 4*smallLayer, 4},
		{"a window that Qwen uses only if configured", "qwen3", `, "sliding_window": 32`,
			smallEnds + 4*(smallLayer+2*16), 0},
		{"from a layer on", "qwen3", `, "sliding_window": 32, "use_sliding_window": true, "max_window_layers": 3`,
			smallEnds + 4*(smallLayer+2*16), 1},
		{"by layer_types", "mistral", `, "sliding_window": 32, "layer_types": ["sliding_attention", ` +
			`"full_attention", "full_attention", "full_attention"]`, smallEnds + 4*smallLayer, 1},
		{"chunks in three of four layers", "llama4_text", `, "intermediate_size_mlp": 96`, smallEnds + 4*smallLayer, 3},
		{"chunks where there are positions", "llama4_text", `, "no_rope_layers": [1, 0, 0, 0]`,
			smallEnds + 4*smallLayer, 1},
		{"every other layer", "gpt_oss", ``, smallEnds + 4*(smallLayer+64+2*32+64+4), 2},
		{"a window that gemma-3 leaves out", "gemma3_text", `, "head_dim": 16`,
			smallEnds - 6400 + 4*(smallLayer+2*64+2*16), 4},
		{"experts in all layers", "qwen3_moe", moe, smallEnds + 4*(smallLayer-3*64*96+2*16+8*64+8*expert), 0},
		{"in every other", "qwen3_moe", moe + `, "decoder_sparse_step": 2`,
			smallEnds + 2*(smallLayer+2*16) + 2*(smallLayer-3*64*96+2*16+8*64+8*expert), 0},
		{"except in some", "qwen3_moe", moe + `, "mlp_only_layers": [0]`,
			smallEnds + smallLayer + 2*16 + 3*(smallLayer-3*64*96+2*16+8*64+8*expert), 0},
		{"latent, full-rank queries", "deepseek_v2", latent, smallEnds + 4*(latentAttention+3*64*96+2*64), 0},
		{"latent, low-rank queries", "deepseek_v3", latent + `, "q_lora_rank": 12`,
			smallEnds + 4*(latentAttention-64*48+64*12+12+12*48+3*64*96+2*64), 0},
		// The indexer: queries from the low rank, one key with a norm and its bias, a weight for each head.
		{"indexer", "deepseek_v32", latent + `, "q_lora_rank": 12, "index_n_heads": 3, "index_head_dim": 5`,
			smallEnds + 4*(latentAttention-64*48+64*12+12+12*48+12*15+64*5+2*5+64*3+3*64*96+2*64), 0},
		{"dense first, shared experts, router with a bias", "deepseek_v3",
			latent + moe + `, "first_k_dense_replace": 1, "n_shared_experts": 2, "topk_method": "noaux_tc"`,
			smallEnds + 4*(latentAttention+2*64) + 3*64*96 + 3*(2*expert+8*64+8+8*expert), 0},
		{"every second of the later ones, from 0", "deepseek_v3",
			latent + moe + `, "first_k_dense_replace": 1, "moe_layer_freq": 2`,
			smallEnds + 4*(latentAttention+2*64) + 3*3*64*96 + 8*64 + 8*expert, 0},
		{"one shared expert", "llama4_text",
			`, "intermediate_size_mlp": 50, "num_local_experts": 8, "num_experts_per_tok": 1, ` +
				`"interleave_moe_layer_step": 2`,
			smallEnds + 4*(smallAttention+2*64) + 2*3*64*50 + 2*(8*64+9*3*64*96), 3},
		// Seven norms, a scale in the router and one for each expert; no values in the last layer, of 2 keys of 8.
		{"experts and a dense MLP", "gemma4_text", moe + `, "top_k_experts": 2, "head_dim": 16,
			"global_head_dim": 8, "attention_k_eq_v": true, "hidden_size_per_layer_input": 0,
			"layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]`,
			smallEnds - 6400 + 4*(3*64*96+8*64+8*64+8+8*expert) + 3*(smallAttention+2*16) + 2*64*32 + 64*16 + 2*8, 3},
		{"experts switched off", "gemma4_text",
			moe + `, "enable_moe_block": false, "head_dim": 16, "global_head_dim": 16, ` +
				`"hidden_size_per_layer_input": 0, "sliding_window_pattern": 2`,
			smallEnds - 6400 + 4*(smallLayer+2*64+2*16), 2},
	} {
		a, err := parse("x", []byte(`{"model_type": "`+c.kind+`", `+small+c.more+`}`), nil)
		if err != nil {
			t.Errorf("%s, %s: %v", c.kind, c.why, err)
			continue
		}
		windowed := int64(0)
		for _, l := range a.Layers {
			if l.Attention.Window > 0 {
				windowed += int64(l.Count)
			}
		}
		if a.TotalParameters() != c.total || windowed != c.windowed {
			t.Errorf("%s, %s: %d parameters, %d layers with a window; want %d, %d", c.kind, c.why,
				a.TotalParameters(), windowed, c.total, c.windowed)
		}
	}
}

// TestUnsupportedConfigsAreRejected expects an error that names the field.
func TestUnsupportedConfigsAreRejected(t *testing.T) {
	for _, c := range []struct{ kind, more, want string }{
		{"llama", `"is_encoder_decoder": true`, "is_encoder_decoder: must be false"},
		{"llama", `"architectures": ["LlamaForSequenceClassification"]`,
			`architectures: must end with ForCausalLM or ForConditionalGeneration, ` +
				`is "LlamaForSequenceClassification"`},
		{"llama", `"layer_types": ["full_attention", "full_attention", "linear_attention", "full_attention"]`,
			`layer_types[2]: must be full_attention, sliding_attention or chunked_attention, is "linear_attention"`},
		{"llama4_text", `"no_rope_layers": [1, 0]`, "no_rope_layers: must have num_hidden_layers, 4, entries, has 2"},
		{"llama", `"head_dim": 100000`, "head_dim: must be between 1 and 16384, is 100000"},
		{"llama", `"hidden_size": 1048576, "head_dim": 16384, "num_attention_heads": 16384, ` +
			`"num_key_value_heads": 16384`, "more than 1e+15 parameters"},
		{"llama", `"num_experts": 1048576, "num_experts_per_tok": 1, "head_dim": 1, "hidden_size": 1048576, ` +
			`"intermediate_size": 1048576`, "more than 1e+15 parameters"},
		{"llama", `"intermediate_size": 0`, "intermediate_size: must be between 1 and 1048576, is 0"},
		{"llama", `"num_hidden_layers": 4096, "vocab_size": 268435457`, "vocab_size: must be between 1 and 268435456"},
		{"llama", `"quantization_config": {"quant_method": "gptq", "bits": 3}`,
			"quantization_config.bits: must be 4 or 8, is 3"},
		{"llama", `"quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}`,
			`quantization_config.quant_algo: must be FP8 or NVFP4, is "W4A8_AWQ"`},
		{"llama", `"quantization_config": {"quant_method": "bitsandbytes"}`,
			`quantization_config.quant_method: unknown quant_method "bitsandbytes"`},
		{"llama", `"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"a": ` +
			`{"weights": {"num_bits": 8, "type": "float"}}, "b": {"weights": {"num_bits": 4, "type": "int"}}}}`,
			"weights in several formats"},
		{"deepseek_v3", `"q_lora_rank": 4`, "kv_lora_rank: must be between 1 and 1048576, is missing"},
		{"deepseek_v3", `"kv_lora_rank": 4, "qk_nope_head_dim": 1, "qk_rope_head_dim": 1, "v_head_dim": 1, ` +
			`"q_lora_rank": -4`, "q_lora_rank: must be between 0 and 1048576, is -4"},
		{"deepseek_v3", `"kv_lora_rank": 4, "attention_bias": true`, "attention_bias: must be false"},
		{"deepseek_v3", `"kv_lora_rank": 4, "qk_nope_head_dim": 1, "qk_rope_head_dim": 1, "v_head_dim": 1, ` +
			`"n_routed_experts": 4, "num_experts_per_tok": 1, "n_shared_experts": -1`,
			"n_shared_experts: must be between 0 and 1024, is -1"},
		{"deepseek_v3", `"kv_lora_rank": 4, "qk_nope_head_dim": 1, "qk_rope_head_dim": 1, "v_head_dim": 1, ` +
			`"moe_layer_freq": -1`, "moe_layer_freq: must be at least 1, is -1"},
		{"deepseek_v3", `"kv_lora_rank": 4, "qk_nope_head_dim": 1, "qk_rope_head_dim": 1, "v_head_dim": 1, ` +
			`"n_routed_experts": 1`, "n_routed_experts: must be between 2 and 1048576, is 1"},
		{"gemma4_text", `"hidden_size_per_layer_input": 256`, "hidden_size_per_layer_input: must be 0"},
		{"gemma4_text", `"head_dim": 8`,
			"hidden_size_per_layer_input: must be 0: embeddings for each layer are not supported, is missing"},
		{"gemma4_text", `"num_kv_shared_layers": 2`, "num_kv_shared_layers: must be 0"},
		{"gemma4_text", `"hidden_size_per_layer_input": 0, "attention_k_eq_v": true, ` +
			`"num_global_key_value_heads": 5, "sliding_window_pattern": 1`,
			"num_global_key_value_heads: must be between 1 and num_attention_heads, 4, is 5"},
	} {
		_, err := parse("x", []byte(`{"model_type": "`+c.kind+`", `+small+", "+c.more+`}`), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "x: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: error %v, want %q", c.kind, c.more, err, c.want)
		}
	}
	for text, want := range map[string]string{
		`[]`:                                    "x: must be an object, is array",
		`{"text_config": {"head_dim": "wide"}}`: "x: text_config.head_dim: must be an integer, is string",
		`{"architectures": ["LlamaForTokens"], "text_config": {"model_type": "llama", ` + small + `}}`: "x: " +
			"architectures: must end with ForCausalLM",
		`{"model_type": "bert", "vocab_size": 1}`: `x: unknown model_type "bert" (have llama, mistral`,
	} {
		if _, err := parse("x", []byte(text), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// TestUnquantizedAttention: a quantization may exclude attention, by a pattern or by the names of
// all layers; the names of some layers have no effect.
func TestUnquantizedAttention(t *testing.T) {
	const rest = 4*3*64*96 + 2*(smallEnds+4*2*64) // bytes: MLP in one, ends and norms in two
	for list, attention := range map[string]int64{
		`"modules_to_not_convert": ["lm_head"]`:                 1,
		`"ignored_layers": ["model.layers.0.self_attn.q_proj"]`: 1,
		`"ignore": ["re:.*vision_model.*attn", ` +
			`"re:.*router"]`: 1,
		`"ignore": ["re:.*self_attn", "lm_head"]`:                2,
		`"modules_to_not_convert": ["model.layers.*.self_attn"]`: 2,
		`"exclude_modules": ["layers.0.self_attn*", "layers.1.self_attn*", "layers.2.self_attn*", ` +
			`"layers.3.self_attn*"]`: 2,
	} {
		a, err := parse("x",
			[]byte(`{"model_type": "llama", `+small+`, "quantization_config": {"quant_method": "fp8", `+list+`}}`), nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, want := a.WeightBytes(), rest+attention*4*smallAttention; got != want {
			t.Errorf("%s: %d bytes of weights, want %d", list, got, want)
		}
		for name, want := range map[string]int64{"": attention, "fp8": attention, "int8": 1, "none": 0} {
			b, err := a.With(Overrides{Quantization: name})
			if err != nil {
				t.Fatal(err)
			}
			bytes := rest + want*4*smallAttention
			if want == 0 {
				bytes = 2 * a.TotalParameters()
			}
			if b.WeightBytes() != bytes {
				t.Errorf("%s, overridden with %q: %d bytes of weights, want %d", list, name, b.WeightBytes(), bytes)
			}
		}
	}
}

func TestOverrides(t *testing.T) {
	a, err := BuiltIn("meta-llama/Llama-3.1-8B")
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.With(Overrides{MaxModelLen: 8192, DType: "auto", KVCacheDType: "auto"})
	if err != nil || b.MaxPositions != 8192 || b.Overridden() || a.MaxPositions != 131072 {
		t.Errorf("with 8192 tokens: %d of %d, overridden %v, %v", b.MaxPositions, a.MaxPositions, b.Overridden(), err)
	}
	for _, c := range []struct {
		o    Overrides
		want string
	}{
		{Overrides{DType: "float8"}, `unknown dtype "float8"`},
		{Overrides{Quantization: "fp9"}, `unknown quantization "fp9"; did you mean "fp8"?`},
		{Overrides{KVCacheDType: "fp4"}, `unknown kv_cache_dtype "fp4"`},
		{Overrides{MaxModelLen: -1}, "max_model_len: must be between 1 and 268435456, is -1"},
	} {
		if b, err := a.With(c.o); b != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
}

// TestBuiltInsAreCopies: changing a returned model does not change the catalog.
func TestBuiltInsAreCopies(t *testing.T) {
	a, err := BuiltIn("deepseek-ai/DeepSeek-V3")
	if err != nil {
		t.Fatal(err)
	}
	before := a.TotalParameters()
	a.Layers[0].Count, a.Layers[1].Attention.MLA.KVRank = 1000, 1
	if b, err := BuiltIn("deepseek-ai/deepseek-v3"); err != nil || b.TotalParameters() != before {
		t.Errorf("%d parameters after a change of a copy, %d before; %v", b.TotalParameters(), before, err)
	}
}

// TestKimiDelta counts the parameters of a layer of Kimi's linear attention: 2 heads of 3 numbers, a convolution of 4.
func TestKimiDelta(t *testing.T) {
	const (
		hidden = 5
		// Queries, keys and values of 6 and a rate for each head; an output; a convolution of each; a norm.
		plain = hidden*(3*6+2) + 6*hidden + 3*6*4 + 3
		decay = hidden*3 + 3*6 + 6 + 2 // of rank 3, with a bias for each key and a scale for each head
	)
	const whole = plain + decay
	for gate, want := range map[string]int64{"false": whole + hidden*3 + 3*6, "true": whole + hidden*6} {
		var c hfConfig
		if err := json.Unmarshal([]byte(`{"linear_attn_config": {"num_heads": 2, "head_dim": 3, `+
			`"short_conv_kernel_size": 4, "use_full_rank_gate": `+gate+`}}`), &c); err != nil {
			t.Fatal(err)
		}
		l, err := c.linear(family{}, KimiDelta)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.parameters(hidden); got != want {
			t.Errorf("a full gate is %s: %d parameters, want %d", gate, got, want)
		}
	}
}

// TestBlocksOfIndexers: an indexer that chooses blocks chooses all their tokens.
func TestBlocksOfIndexers(t *testing.T) {
	for size, want := range map[string]int{"0": 0, "1": 5, "4": 20} {
		var c hfConfig
		if err := json.Unmarshal([]byte(`{"sparse_attention_config": {"sparse_num_index_heads": 2, `+
			`"sparse_index_dim": 3, "sparse_topk_blocks": 5, "sparse_block_size": `+size+`}}`), &c); err != nil {
			t.Fatal(err)
		}
		x, err := c.index(0)
		if (err != nil) != (want == 0) || err == nil && x != (Index{Heads: 2, Dim: 3, TopK: want}) {
			t.Errorf("blocks of %s tokens: %+v, %v", size, x, err)
		}
	}
}

// TestNormsAcrossHeads: MiniMax's norms of queries and keys are over all heads if the configuration says so.
func TestNormsAcrossHeads(t *testing.T) {
	for more, want := range map[string]bool{"": false, `, "qk_norm_type": "per_layer"`: true,
		`, "qk_norm_type": "per_head"`: false} {
		a, err := parse("x", []byte(`{"model_type": "minimax_m2", "num_local_experts": 8, "num_experts_per_tok": 2, `+
			small+more+`}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Layers[0].Attention; !got.QKNorm || got.QKNormAcross != want {
			t.Errorf("%s: norms %v, across heads %v", more, got.QKNorm, got.QKNormAcross)
		}
	}
}
