package cluster

import (
	"strings"
	"testing"
)

// TestEncoderErrors: what is not possible is an error that names the field.
func TestEncoderErrors(t *testing.T) {
	const good, tier = "mm_max_tokens_per_item: 20, encoder_token_us: 9",
		", kv_tiers: [{tier: cpu, gib: 8, load: {latency_us: 1, gb_per_s: 1}, store: {latency_us: 1, gb_per_s: 1}}]"
	for _, c := range []struct{ engine, rest, want string }{
		{"mm_max_tokens_per_item: -1", "", "mm_max_tokens_per_item: must be between 1 and 16777216, is -1"},
		{"max_num_encoder_input_tokens: 4", "",
			"max_num_encoder_input_tokens: must not be set without mm_max_tokens_per_item"},
		{"encoder_cache_size: 4", "", "encoder_cache_size: must not be set without mm_max_tokens_per_item"},
		{"disable_chunked_mm_input: true", "",
			"disable_chunked_mm_input: must not be set without mm_max_tokens_per_item"},
		{"encoder_token_us: 0", "", "encoder_token_us: must not be set without mm_max_tokens_per_item"},
		{"encoder_item_us: 1", "", "encoder_item_us: must not be set without mm_max_tokens_per_item"},
		{"mm_max_tokens_per_item: 20", "",
			"encoder_token_us is not in the file: must be set with mm_max_tokens_per_item"},
		{"mm_max_tokens_per_item: 20, encoder_token_us: -1", "", "encoder_token_us: must be between 0 and"},
		{good + ", encoder_item_us: -1", "", "encoder_item_us: must be between 0 and"},
		{good + ", max_num_encoder_input_tokens: 19", "",
			"max_num_encoder_input_tokens: must be at least mm_max_tokens_per_item = 20, is 19"},
		{good + ", encoder_cache_size: 19", "",
			"encoder_cache_size: must be at least mm_max_tokens_per_item = 20, is 19"},
		{good + ", encoder_cache_size: 16777217", "", "encoder_cache_size: must be at most 16777216, is 16777217"},
		{good + ", disable_chunked_mm_input: true, max_num_seqs: 8, max_num_batched_tokens: 16", "",
			"disable_chunked_mm_input: needs max_num_batched_tokens of at least mm_max_tokens_per_item = 20, is 16"},
		{good + ", disable_chunked_mm_input: true, long_prefill_token_threshold: 16", "",
			"disable_chunked_mm_input: needs a long_prefill_token_threshold of at least mm_max_tokens_per_item = " +
				"20, is 16"},
		{good + ", data_parallel_size: 2", "",
			"mm_max_tokens_per_item: is not supported with data_parallel_size above 1"},
		{good + ", pipeline_parallel_size: 2", "",
			"mm_max_tokens_per_item: is not supported with pipeline_parallel_size above 1"},
		{good + ", max_loras: 1, lora_load_us: 1, lora_step_factor: 1", "",
			"mm_max_tokens_per_item: is not supported with max_loras"},
		{good + ", speculative_config: {method: eagle, num_speculative_tokens: 2, acceptance_rate: 0.5}", "",
			"mm_max_tokens_per_item: is not supported with speculative_config"},
		{good, tier, "mm_max_tokens_per_item: is not supported with kv_tiers"},
		{good, ", architecture: disaggregated, prefill: {replicas: 1}, transfer: {latency_us: 1, out_gb_per_s: 1, " +
			"in_gb_per_s: 1}", "mm_max_tokens_per_item: is not supported for a disaggregated deployment"},
		{"limit_mm_per_prompt: 2", "", "set mm_max_tokens_per_item, encoder_token_us and encoder_item_us"},
	} {
		_, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {" + c.engine + "}" + c.rest)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: error %v, want %q", c.engine, c.rest, err, c.want)
		}
	}
}

// TestEncoderDefaults: the budget and the cache have the tokens of a step, or of the largest item if that has more.
// Rules of another version are a warning.
func TestEncoderDefaults(t *testing.T) {
	for _, c := range []struct {
		preset, engine string
		budget, size   int
		warns          bool
	}{
		{"vllm-0.33", "mm_max_tokens_per_item: 576", 8192, 8192, false},
		{"vllm-0.33", "mm_max_tokens_per_item: 16384", 16384, 16384, false},
		{"vllm-0.31", "mm_max_tokens_per_item: 576, encoder_cache_size: 600", 8192, 600, true},
	} {
		d, warnings,
			err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {encoder_token_us: 9, " + c.engine +
			", preset: " + c.preset + "}")
		if err != nil {
			t.Fatal(err)
		}
		if x := d.Engine.Encoder; x.MaxNumInputTokens != c.budget || x.CacheSize != c.size {
			t.Errorf("%s: a budget of %d and a cache of %d tokens", c.engine, x.MaxNumInputTokens, x.CacheSize)
		}
		if strings.Contains(strings.Join(warnings, "\n"), "the encoder follows the rules of vLLM 0.33") != c.warns {
			t.Errorf("%s: warnings %q", c.preset, warnings)
		}
	}
}
