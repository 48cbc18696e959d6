package cluster

import (
	"strings"
	"testing"
)

// TestPrefillInterval: what is not possible is an error that names the field. 1 changes nothing, and versions before
// 0.33 know the interval only with ranks in lockstep.
func TestPrefillInterval(t *testing.T) {
	const experts, dense = "model: Qwen/Qwen3-30B-A3B, gpu: H100", "model: Qwen/Qwen3-8B, gpu: H100"
	const field = "prefill_schedule_interval: "
	for _, c := range []struct{ model, engine, rest, want string }{
		{dense, field + "-1", "", field + "must be between 0 and"},
		{dense, field + "2, preset: vllm-0.31", "", field + "without data-parallel ranks in lockstep it exists since " +
			"vLLM 0.33, but engine.preset is vllm-0.31"},
		{experts, field + "2, preset: vllm-0.22, data_parallel_size: 2", "", field + "exists since vLLM 0.24, but "},
		{experts, field + "2, data_parallel_size: 2, merge_data_parallel_ranks: true", "",
			field + "above 1 is not supported with merge_data_parallel_ranks"},
		{dense, field + "2", ", kv_tiers: [{tier: cpu, gib: 8, load: {latency_us: 1, gb_per_s: 1}, " +
			"store: {latency_us: 1, gb_per_s: 1}}]", field + "above 1 is not supported with kv_tiers"},
		{dense, field + "2", ", architecture: disaggregated, prefill: {replicas: 1}, transfer: " +
			"{latency_us: 1, out_gb_per_s: 1, in_gb_per_s: 1}",
			field + "above 1 is not supported for a disaggregated deployment"},
		{dense, field + "1, preset: vllm-0.19", "", ""},
		{dense, field + "8", "", ""},
		{dense, field + "8, preset: vllm-0.33", "", ""},
		{experts, field + "8, preset: vllm-0.31, data_parallel_size: 2", "", ""},
	} {
		_, _, err := parseDeployment(c.model + ", engine: {" + c.engine + "}" + c.rest)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %s%s: error %v, want %q", c.model, c.engine, c.rest, err, c.want)
		}
	}
}
