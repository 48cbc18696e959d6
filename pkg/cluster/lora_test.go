package cluster

import (
	"strings"
	"testing"

	"blis/pkg/latency"
)

// TestLoRAErrors: what is not possible is an error that names the field.
func TestLoRAErrors(t *testing.T) {
	const good, tier = "max_loras: 2, lora_load_us: 9, lora_step_factor: 1.1",
		", kv_tiers: [{tier: cpu, gib: 8, load: {latency_us: 1, gb_per_s: 1}, store: {latency_us: 1, gb_per_s: 1}}]"
	for _, c := range []struct{ engine, rest, want string }{
		{"max_loras: -1", "", "max_loras: must be between 1 and 65536, is -1"},
		{"max_cpu_loras: 4", "", "max_cpu_loras: must not be set without max_loras"},
		{"lora_load_us: 0", "", "lora_load_us: must not be set without max_loras"},
		{"lora_copy_us: 0", "", "lora_copy_us: must not be set without max_loras"},
		{"lora_step_factor: 1", "", "lora_step_factor: must not be set without max_loras"},
		{"lora_adapter_us: 1", "", "lora_adapter_us: must not be set without max_loras"},
		{good + ", max_cpu_loras: 1", "", "max_cpu_loras: must be at least max_loras = 2, is 1"},
		{good + ", max_cpu_loras: 65537", "", "max_cpu_loras: must be between 0 and 65536, is 65537"},
		{"max_loras: 2, lora_step_factor: 1", "", "lora_load_us is not in the file: must be set with max_loras"},
		{"max_loras: 2, lora_load_us: 1", "", "lora_step_factor is not in the file: must be set with max_loras"},
		{"max_loras: 2, lora_load_us: -1, lora_step_factor: 1", "", "lora_load_us: must be between 0 and"},
		{"max_loras: 2, lora_load_us: 1, lora_step_factor: 0.9", "", "lora_step_factor: must be between 1 and 100"},
		{good + ", lora_copy_us: -1", "", "lora_copy_us: must be between 0 and"},
		{good + ", lora_adapter_us: -1", "", "lora_adapter_us: must be between 0 and"},
		{good + ", data_parallel_size: 2", "", "max_loras: is not supported with data_parallel_size above 1"},
		{good, tier, "max_loras: is not supported with kv_tiers"},
		{good, ", architecture: disaggregated, prefill: {replicas: 1}, transfer: {latency_us: 1, out_gb_per_s: 1, " +
			"in_gb_per_s: 1}", "max_loras: is not supported for a disaggregated deployment"},
		{"enable_lora: true", "", "set max_loras, and the adapter of requests"},
		{"lora_dtype: float16", "", "set lora_step_factor, lora_load_us and lora_copy_us to those of such adapters"},
		{"max_lora_rank: 16", "", "max_lora_rank: must not be set without max_loras"},
		{good + ", max_lora_rank: 12", "", "max_lora_rank: must be one of 1, 8, 16, 32, 64, 128, 256, 320, 512, is 12"},
		{"max_loras: 4096, lora_load_us: 9, lora_step_factor: 1.1", "", "− 371.09 LoRA slots −"},
		{"max_loras: 4096, lora_load_us: 9, lora_step_factor: 1.1", "", ", decrease max_loras or max_lora_rank"},
	} {
		_, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {" + c.engine + "}" + c.rest)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: error %v, want %q", c.engine, c.rest, err, c.want)
		}
	}
}

// TestLoRADefaults: the host's memory has max_loras adapters, and a copy takes 6.4 ms. Rules of another version are a
// warning.
func TestLoRADefaults(t *testing.T) {
	const model = "model: Qwen/Qwen3-8B, gpu: H100, engine: {max_loras: 2, lora_load_us: 9, lora_step_factor: 1.5, " +
		"lora_adapter_us: 10, preset: "
	for preset, warns := range map[string]bool{"vllm-0.33": false, "vllm-0.31": true} {
		d, warnings, err := parseDeployment(model + preset + "}")
		if err != nil {
			t.Fatal(err)
		}
		if l := d.Engine.LoRA; l.MaxCPULoras != 2 || *l.CopyUS != 6400 || l.MaxRank != 16 {
			t.Errorf("%s: %d adapters in the host's memory, %g µs for a copy, rank %d", preset, l.MaxCPULoras,
				*l.CopyUS, l.MaxRank)
		}
		if strings.Contains(strings.Join(warnings, "\n"), "LoRA follows the rules of vLLM 0.33") != warns {
			t.Errorf("%s: warnings %q", preset, warnings)
		}
		m, err := d.LatencyModel()
		if err != nil {
			t.Fatal(err)
		}
		b := latency.Batch{Prefill: 1000, Chunks: 1, Pairs: 500500}
		plain := m.Step(b)
		b.Adapters = 3
		if got, want := m.Step(b), plain+plain/2+30; got < want || got > want+1 {
			t.Errorf("a step of %d µs takes %d µs with 3 adapters, want %d", plain, got, want)
		}
	}
}

// TestDraftersHaveNoAdapters: adapters change the time of the model, not that of its drafter.
func TestDraftersHaveNoAdapters(t *testing.T) {
	d, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {preset: vllm-0.33, max_loras: 2, " +
		"lora_load_us: 9, lora_step_factor: 2, speculative_config: {method: eagle, num_speculative_tokens: 2, " +
		"acceptance_rate: 0.5}}")
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.LatencyModel()
	if err != nil {
		t.Fatal(err)
	}
	step := func(proposals, adapters int64) int64 {
		return int64(m.Step(latency.Batch{Prefill: 1000, Chunks: 1, Pairs: 500500, Proposals: proposals,
			Adapters: adapters}))
	}
	drafts := step(2, 0) - step(0, 0)
	if got, want := step(2, 1), 2*step(0, 0)+drafts; drafts < 1 || got != want {
		t.Errorf("a step with an adapter and drafts takes %d µs, want %d, of which %d for drafts", got, want, drafts)
	}
}
