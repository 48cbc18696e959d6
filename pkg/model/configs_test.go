package model

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// stated has, by file, the sizes that the models are known by: parameters and active ones in 10^9, and
// the size of the weights in GB (0: not compared). Most are in the names; none was looked up on a card.
var stated = map[string]struct{ total, active, weights float64 }{
	"MiniMaxAI--MiniMax-M2.5":                        {229, 10, 230},
	"Qwen--Qwen3-Coder-480B-A35B-Instruct":           {480, 35, 960},
	"Qwen--Qwen3.5-122B-A10B":                        {122, 10, 0},
	"Qwen--Qwen3.5-27B":                              {27, 27, 0},
	"Qwen--Qwen3.5-35B-A3B":                          {35, 3, 0},
	"Qwen--Qwen3.5-397B-A17B":                        {397, 17, 0},
	"XiaomiMiMo--MiMo-7B-Base":                       {7.6, 0, 0},
	"XiaomiMiMo--MiMo-V2-Flash":                      {309, 15, 0},
	"deepseek-ai--DeepSeek-V4-Flash":                 {284, 13, 0},
	"deepseek-ai--DeepSeek-V4-Pro":                   {1600, 49, 0},
	"moonshotai--Kimi-K2.5":                          {1026, 32, 0},
	"nvidia--Llama-3_3-Nemotron-Super-49B-v1":        {49.9, 0, 0},
	"nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16":    {31.6, 3.6, 0},
	"nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8":  {120.6, 12.7, 0},
	"nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": {550, 55, 0},
	"nvidia--Nemotron-H-56B-Base-8K":                 {56.3, 0, 0},
	"stepfun-ai--Step-3.7-Flash":                     {196, 11, 0},
	"zai-org--GLM-5":                                 {744, 40, 0},
}

// TestPublishedConfigs reads 89 configurations. Totals are within 2 % of stated, and active
// parameters within 20 %, since embeddings are counted in different ways.
func TestPublishedConfigs(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/operators/model_configs/*_config.json")
	if err != nil || len(files) == 0 {
		t.Skip("needs ../shared/data/operators/model_configs")
	}
	read := map[string]*Architecture{}
	for _, file := range files {
		if strings.HasSuffix(file, "_hf_quant_config.json") {
			continue
		}
		a, err := readFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		read[strings.TrimSuffix(filepath.Base(file), "_config.json")] = a
	}
	for name, want := range stated {
		a := read[name]
		if a == nil {
			t.Errorf("%s: not found", name)
			continue
		}
		near := func(have int64, want, part float64) bool {
			return want == 0 || math.Abs(float64(have)/1e9-want) <= part*want
		}
		if !near(a.TotalParameters(), want.total, 0.02) || !near(a.ActiveParameters(), want.active, 0.2) ||
			!near(a.WeightBytes(), want.weights, 0.02) {
			t.Errorf("%s: %d parameters, %d active, %d bytes; want %g, %g, %g", name, a.TotalParameters(),
				a.ActiveParameters(),
				a.WeightBytes(), want.total, want.active, want.weights)
		}
	}
	for name, want := range map[string]string{ // formats of attention, dense MLPs and experts
		"moonshotai--Kimi-K2.5":                               "//int4",
		"moonshotai--Kimi-K3":                                 "//mxfp4",
		"nvidia--DeepSeek-V3.1-NVFP4":                         "/nvfp4/nvfp4",
		"nvidia--DeepSeek-V4-Pro-NVFP4":                       "fp8/fp8/nvfp4",
		"deepseek-ai--DeepSeek-V4-Flash":                      "fp8/fp8/mxfp4",
		"nvidia--MiniMax-M3-NVFP4":                            "mxfp8/mxfp8/nvfp4",
		"nvidia--MiniMax-M2.5-NVFP4":                          "/nvfp4/nvfp4",
		"nvidia--Kimi-K2.6-NVFP4":                             "//nvfp4",
		"nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4":        "nvfp4/nvfp4/nvfp4",
		"nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4": "fp8/nvfp4/nvfp4",
		"Qwen--Qwen3-32B-FP8-Static-PerTensor":                "fp8/fp8/fp8",
		"zai-org--GLM-5.2-FP8":                                "fp8/fp8/fp8",
		"openai--gpt-oss-120b":                                "//mxfp4",
	} {
		if a := read[name]; a != nil {
			attention, mlp, experts := a.Precision.Formats()
			if have := attention + "/" + mlp + "/" + experts; have != want {
				t.Errorf("%s: formats %s, want %s", name, have, want)
			}
		}
	}
}

// TestHybridLayers checks the sizes that layers with a state, compressed keys and indexers have,
// written out.
func TestHybridLayers(t *testing.T) {
	for _, c := range []struct {
		why, text        string
		total, kv, state int64
	}{
		{"gated delta net", `{"model_type": "qwen3_5_text", ` + small + `, "layer_types": ["linear_attention",
			"linear_attention",
			"linear_attention", "full_attention"], "attn_output_gate": true, "linear_conv_kernel_dim": 4,
			"linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_num_value_heads": 4,
				"linear_value_head_dim": 6}`,
			smallEnds + smallLayer + 64*64 + 2*16 + // a gate and norms of heads
				3*(3*64*96+2*64+64*(2*16+2*24+2*4)+24*64+(2*16+24)*4+6+2*4),
			2 * 2 * 16 * 2, 3 * (4*8*6*4 + 3*(2*16+24)*2)},
		{"every second layer a gated delta net, states as the model", `{"model_type": "qwen3_next", ` + small + `,
			"full_attention_interval": 2, "linear_conv_kernel_dim": 4, "linear_num_key_heads": 2,
			"linear_key_head_dim": 8, "linear_num_value_heads": 4, "linear_value_head_dim": 6}`,
			smallEnds + 2*smallLayer + 2*(64*64+2*16) + 2*(3*64*96+2*64+64*(2*16+2*24+2*4)+24*64+(2*16+24)*4+6+2*4),
			2 * 2 * 2 * 16 * 2, 2 * (4*8*6*2 + 3*(2*16+24)*2)},
		{"one of four layers has full attention by default", `{"model_type": "qwen3_next", ` + small + `,
			"attn_output_gate": false, "linear_conv_kernel_dim": 4, "linear_num_key_heads": 2,
			"linear_key_head_dim": 8, "linear_num_value_heads": 4, "linear_value_head_dim": 6}`,
			smallEnds + smallLayer + 2*16 + 3*(3*64*96+2*64+64*(2*16+2*24+2*4)+24*64+(2*16+24)*4+6+2*4),
			2 * 2 * 16 * 2, 3 * (4*8*6*2 + 3*(2*16+24)*2)},
		{"mamba2, an MLP, and attention", `{"model_type": "nemotron_h", ` + small + `,
			"hybrid_override_pattern": "M-*-",
			"mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2, "ssm_state_size": 16, "conv_kernel": 4}`,
			smallEnds + 64*(2*32+2*32+4) + (32+2*32)*5 + 3*4 + 32 + 32*64 + 2*2*64*96 + smallAttention + 4*64,
			2 * 2 * 16 * 2, 4*8*16*2 + 3*(32+2*32)*2},
		{"DeepSeek-V4", `{"model_type": "deepseek_v4", ` + small + `, "head_dim": 16, "q_lora_rank": 12,
			"o_lora_rank": 10,
			"o_groups": 2, "sliding_window": 8, "compress_ratios": [0, 4, 128, 4], "index_n_heads": 3,
				"index_head_dim": 32,
			"index_topk": 4}`,
			smallEnds + 4*(3*64*96+2*64+64*12+12+12*64+64*16+16+64*10+2*10*64+4) +
				2*64*16 + 128*16 + 16 + 2*(2*64*32+4*32+16+12*3*32+64*3+2*64*64+4*64+32),
			2 * ((16*2 + 33) / 4), 0},
	} {
		a, err := parse("x", []byte(c.text), nil)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if a.TotalParameters() != c.total || a.KVBytesPerToken() != c.kv || a.Work().StateBytes != c.state {
			t.Errorf("%s: %d parameters, %d KV bytes, %d bytes of state; want %d, %d, %d", c.why, a.TotalParameters(),
				a.KVBytesPerToken(), a.Work().StateBytes, c.total, c.kv, c.state)
		}
	}
}
