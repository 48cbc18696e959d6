package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mambaConfigs are models of which two in three layers have a recurrent state: 51,840 bytes in a
// gated delta net and 13,824 in Mamba-2. A token has 128 bytes in a layer with attention.
var mambaConfigs = map[string]string{
	"gdn": `{"model_type": "qwen3_5_text", "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
		"num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1000, "max_position_embeddings": 8192,
		"num_hidden_layers": 3, "layer_types": ["linear_attention", "linear_attention", "full_attention"],
		"linear_conv_kernel_dim": 4, "linear_num_key_heads": 1, "linear_key_head_dim": 32,
		"linear_num_value_heads": 12, "linear_value_head_dim": 32}`,
	"mamba2": `{"model_type": "nemotron_h", "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
		"num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1000, "max_position_embeddings": 8192,
		"layers_block_type": ["mamba", "attention", "mamba", "mlp"], "conv_kernel": 4, "n_groups": 1,
		"ssm_state_size": 32, "mamba_num_heads": 6, "mamba_head_dim": 32}`,
}

// TestMamba: the groups of models with recurrent states, and the rules that follow from version, GPU and each other.
func TestMamba(t *testing.T) {
	dir := t.TempDir()
	for name, text := range mambaConfigs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ model, gpu, engine, want string }{
		{"gdn", "H100", "preset: vllm-0.33", "align resumable 1 next-step all true 448 448 448"},
		{"gdn", "A100-SXM-80GB", "preset: vllm-0.33", "align resumable 0 next-step all true 416 416 416"},
		{"gdn", "H100", "preset: vllm-0.31", "align blocks 0 next-step all true 416 416 416"},
		{"gdn", "H100", "preset: vllm-0.28, block_size: 64", "align blocks 0 next-step last true 448 448 448"},
		{"gdn", "H100", "preset: vllm-0.33, enable_prefix_caching: false",
			"none resumable 1 next-step all false 8192 8192 416"},
		{"gdn", "H100", "preset: vllm-0.33, mamba_cache_mode: none",
			"none resumable 1 next-step all false 8192 8192 416"},
		{"gdn", "H100", "preset: vllm-0.24", "none shared 0 next-step last false 8192 8192 416"},
		{"gdn", "H100", "preset: vllm-0.24, enable_prefix_caching: true",
			"align shared 0 next-step last true 416 416 416"},
		{"mamba2", "A100-SXM-80GB", "preset: vllm-0.33", "align resumable 1 next-step all true 112 112 112"},
		{"mamba2", "H100", "preset: vllm-0.15, enable_prefix_caching: true",
			"align prompts 0 same-step last true 112 112 112"},
		{"mamba2", "H100", "preset: vllm-0.33, enable_prefix_caching: true, mamba_cache_mode: none",
			"engine.mamba_cache_mode: must be align with enable_prefix_caching"},
		{"mamba2", "H100", "preset: vllm-0.33, mamba_cache_mode: all",
			"engine.mamba_cache_mode: must be none or align"},
		{"mamba2", "H100", "preset: vllm-0.33, mamba_chunks: block", "did you mean \"blocks\""},
		{"mamba2", "H100", "preset: vllm-0.33, num_prefill_checkpoint_blocks: 2", "must be 0 or 1, is 2"},
		{"mamba2", "H100", "preset: vllm-0.33, mamba_fresh_hits: never", "must be same-step or next-step"},
		{"mamba2", "H100", "preset: vllm-0.33, mamba_release: none", "must be last or all"},
		{"mamba2", "H100", "preset: vllm-0.33, enable_chunked_prefill: false, max_num_batched_tokens: 8192",
			"engine.enable_chunked_prefill: must be true with mamba_cache_mode align"},
		{"mamba2", "H100",
			"preset: vllm-0.24, enable_prefix_caching: true, max_num_batched_tokens: 100, max_num_seqs: 9",
			"engine.max_num_batched_tokens: must be at least the block size, 112 tokens"},
		{"mamba2", "H100", "preset: vllm-0.24, enable_prefix_caching: true, long_prefill_token_threshold: 100",
			"engine.long_prefill_token_threshold: must be at least the block size, 112 tokens"},
	} {
		d, _, err := parseDeployment(fmt.Sprintf("model: m, model_config: %s, gpu: %s, latency: {model: roofline}, "+
			"engine: {%s}", filepath.Join(dir, c.model), c.gpu, c.engine))
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %s", c.engine, err, c.want)
			}
			continue
		}
		e := &d.Engine
		got := strings.TrimSpace(fmt.Sprintln(e.MambaCacheMode, e.MambaChunks, e.NumPrefillCheckpointBlocks,
			e.MambaFreshHits, e.MambaRelease, e.EnablePrefixCaching))
		for _, g := range d.Computed.KVGroups {
			got += fmt.Sprint(" ", g.BlockSize)
		}
		if got != c.want {
			t.Errorf("%s on %s, %s: %s, want %s", c.model, c.gpu, c.engine, got, c.want)
		}
	}
}
