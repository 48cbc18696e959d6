package cluster

import (
	"strings"
	"testing"
)

// TestDataParallelErrors: what is not possible is an error that names the field.
func TestDataParallelErrors(t *testing.T) {
	const experts, dense = "model: Qwen/Qwen3-30B-A3B, gpu: H100", "model: Qwen/Qwen3-8B, gpu: H100"
	for _, c := range []struct{ model, engine, rest, want string }{
		{dense, "merge_data_parallel_ranks: true", "",
			"merge_data_parallel_ranks: must not be set without data_parallel_size"},
		{dense, "data_parallel_external_lb: true", "",
			"data_parallel_external_lb: must not be set without data_parallel_size"},
		{dense, "dp_sync_interval: 4", "", "dp_sync_interval: must not be set without data_parallel_size"},
		{experts, "data_parallel_size: 2, merge_data_parallel_ranks: true, data_parallel_external_lb: true", "",
			"data_parallel_external_lb: must not be set with merge_data_parallel_ranks"},
		{experts, "data_parallel_size: 2, merge_data_parallel_ranks: true, dp_sync_interval: 4", "",
			"dp_sync_interval: must not be set with merge_data_parallel_ranks"},
		{experts, "data_parallel_size: 2, dp_sync_interval: -1", "", "dp_sync_interval: must be between 0 and"},
		{dense, "data_parallel_size: 2, dp_sync_interval: 4", "", "must not be set for a model without experts"},
		{"model: m", "data_parallel_size: 2, num_gpu_blocks_override: 9",
			", latency: {alpha_us: [0, 0, 0], beta_us: [1, 1, 1]}",
			"data_parallel_size: must be 1 for a model whose architecture is unknown"},
		{experts, "data_parallel_size: 2", ", kv_tiers: [{tier: cpu, gib: 8, load: {latency_us: 1, gb_per_s: 1}, " +
			"store: {latency_us: 1, gb_per_s: 1}}]", "above 1 is not supported with kv_tiers"},
		{experts, "data_parallel_size: 2", ", architecture: disaggregated, prefill: {replicas: 1}, transfer: " +
			"{latency_us: 1, out_gb_per_s: 1, in_gb_per_s: 1}",
			"above 1 is not supported for a disaggregated deployment"},
		{experts, "data_parallel_size: 2, max_num_queued_reqs: 9", "",
			"max_num_queued_reqs: is not supported with data_parallel_size above 1"},
		{experts, "data_parallel_size: 2, pipeline_parallel_size: 2", "",
			"pipeline_parallel_size: must be 1 for a model with experts and data_parallel_size above 1, is 2"},
		{experts, "data_parallel_hybrid_lb: true", "", "data_parallel_external_lb"},
	} {
		_, _, err := parseDeployment(c.model + ", engine: {" + c.engine + "}" + c.rest)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s%s: error %v, want %q", c.model, c.engine, c.rest, err, c.want)
		}
	}
	for _, c := range []struct{ fields, rest, want string }{
		{"", "failures: {events: [{at: 1s, kind: down, deployment: main, replica: 0}]}", "with failures"},
		{", max_replicas: 4", "policies: {autoscale: {type: threshold}}", "with max_replicas"},
	} {
		_, err := parse("version: 1\ndeployments: [{id: main, "+experts+c.fields+
			", engine: {data_parallel_size: 2}}]\n"+c.rest+"\n", Options{})
		if want := "above 1 is not supported " + c.want; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", c.rest, err, want)
		}
	}
}

// TestDataParallelDefaults: ranks of models with experts run in lockstep and ask every 16 steps, before vLLM 0.20 every
// 32. Those of dense models are independent, and merged ones are none.
func TestDataParallelDefaults(t *testing.T) {
	for _, c := range []struct {
		deployment   string
		lockstep     bool
		every, ranks int
	}{
		{"model: Qwen/Qwen3-30B-A3B, gpu: H100, engine: {data_parallel_size: 2}", true, 16, 2},
		{"model: Qwen/Qwen3-30B-A3B, gpu: H100, engine: {data_parallel_size: 4, preset: vllm-0.19}", true, 32, 4},
		{"model: Qwen/Qwen3-30B-A3B, gpu: H100, engine: {data_parallel_size: 2, dp_sync_interval: 5}", true, 5, 2},
		{"model: Qwen/Qwen3-30B-A3B, gpu: H100, engine: {data_parallel_size: 2, merge_data_parallel_ranks: true}",
			false, 0, 1},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {data_parallel_size: 3}", false, 0, 3},
		{"model: Qwen/Qwen3-30B-A3B, gpu: H100", false, 0, 1},
	} {
		d, _, err := parseDeployment(c.deployment)
		if err != nil {
			t.Fatal(err)
		}
		if d.Lockstep() != c.lockstep || d.Engine.DPSyncInterval != c.every || d.Engine.Ranks() != c.ranks {
			t.Errorf("%s: lockstep %v, every %d steps, %d ranks, want %v, %d, %d", c.deployment, d.Lockstep(),
				d.Engine.DPSyncInterval, d.Engine.Ranks(), c.lockstep, c.every, c.ranks)
		}
	}
}
