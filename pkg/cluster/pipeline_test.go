package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestPipelineErrors: what does not go with several stages is an error that names the field.
func TestPipelineErrors(t *testing.T) {
	const two, tier = "pipeline_parallel_size: 2",
		", kv_tiers: [{tier: cpu, gib: 8, load: {latency_us: 1, gb_per_s: 1}, store: {latency_us: 1, gb_per_s: 1}}]"
	for _, c := range []struct{ engine, rest, want string }{
		{"use_v2_model_runner: true", "",
			"use_v2_model_runner: must not be set without pipeline_parallel_size above 1"},
		{"pipeline_empty_batches: false", "", "pipeline_empty_batches: must not be set without"},
		{"pipeline_hop_us: 0", "", "pipeline_hop_us: must not be set without"},
		{"pipeline_hop_token_us: 0", "", "pipeline_hop_token_us: must not be set without"},
		{two + ", pipeline_hop_us: -1", "", "pipeline_hop_us: must be between 0 and"},
		{two + ", pipeline_hop_token_us: -1", "", "pipeline_hop_token_us: must be between 0 and"},
		{two + ", preset: vllm-0.33, use_v2_model_runner: false", "",
			"use_v2_model_runner: must be true with async_scheduling"},
		{two, tier, "pipeline_parallel_size: must be 1 with kv_tiers, is 2"},
		{two, ", architecture: disaggregated, prefill: {replicas: 1}, transfer: {latency_us: 1, out_gb_per_s: 1, " +
			"in_gb_per_s: 1}", "pipeline_parallel_size: must be 1 in a disaggregated deployment, is 2"},
		{two + ", speculative_config: {method: ngram, num_speculative_tokens: 2, synthetic_acceptance_rates: " +
			"[0.5, 0.2]}", "",
			"pipeline_parallel_size: must be 1 with speculative_config, is 2"},
	} {
		_, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {" + c.engine + "}" + c.rest)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: error %v, want %q", c.engine, c.rest, err, c.want)
		}
	}
}

// TestPipelineRules: versions differ in the batches in flight, and computed step times have times between stages.
func TestPipelineRules(t *testing.T) {
	for _, c := range []struct {
		engine         string
		batches, apart int
		empty          bool
	}{
		{"preset: vllm-0.33", 4, 3, true},
		{"preset: vllm-0.33, async_scheduling: false", 3, 3, true},
		{"preset: vllm-0.28", 3, 1, true},
		{"preset: vllm-0.19", 3, 1, false},
	} {
		d, _, err := parseDeployment("model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100, latency: " +
			"{model: roofline}, engine: {pipeline_parallel_size: 3, " + c.engine + "}")
		if err != nil {
			t.Fatal(err)
		}
		e := &d.Engine
		if n := d.Computed.MaxConcurrentBatches; n != c.batches || e.BatchCadence() != c.apart ||
			*e.PipelineEmptyBatches != c.empty {
			t.Errorf("%s: %d batches, %d apart, empty ones %v", c.engine, n, e.BatchCadence(), *e.PipelineEmptyBatches)
		}
		if *e.PipelineHopUS <= 0 || *e.PipelineHopTokenUS <= 0 {
			t.Errorf("%s: %g and %g µs between stages", c.engine, *e.PipelineHopUS, *e.PipelineHopTokenUS)
		}
	}
}

// TestPartition: what equal parts leave goes to the stages before the last one, the later ones first.
func TestPartition(t *testing.T) {
	for _, c := range []struct {
		layers int
		want   []int
	}{{32, []int{8, 8, 8, 8}}, {33, []int{8, 8, 9, 8}}, {35, []int{9, 9, 9, 8}}, {4, []int{1, 1, 1, 1}}} {
		if got := partition(c.layers, len(c.want)); !slices.Equal(got, c.want) {
			t.Error(fmt.Sprint(c.layers, " layers: ", got, ", want ", c.want))
		}
	}
}
