package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// llama70B on GPUs that hold its weights but not a request of 131072 tokens.
const llama70B = "model: meta-llama/Llama-3.3-70B-Instruct, gpu: H100, latency: {model: roofline}"

// TestServersThatDoNotStart: vLLM refuses these settings. The error names what helps, and with that they
// load.
func TestServersThatDoNotStart(t *testing.T) {
	const llama8B = "model: meta-llama/Llama-3.1-8B-Instruct, gpu: L40S, latency: {model: roofline}"
	for _, c := range []struct {
		fields, engine string
		want           []string // parts of the error
		remedies       []string
	}{
		{llama70B, "tensor_parallel_size: 2, gpu_memory_utilization: 0.9",
			[]string{"engine.max_model_len is not in the file: a request of 131072 tokens needs 8192 KV blocks, and " +
				"there are ", "decrease max_model_len to at most ", "set tensor_parallel_size to 4"},
			[]string{"tensor_parallel_size=4", "num_gpu_blocks_override=100"}},
		{llama8B, "gpu_memory_utilization: 0.7, max_model_len: 130000",
			[]string{"c.yaml:3:", "engine.max_model_len: a request of 130000 tokens needs 8125 KV blocks",
				"increase gpu_memory_utilization to 0.72"},
			[]string{"gpu_memory_utilization=0.72", "tensor_parallel_size=2"}},
		{llama70B, "tensor_parallel_size: 1",
			[]string{"deployments[0].gpu: meta-llama/Llama-3.3-70B-Instruct does not fit into 1 x H100-SXM-80GB",
				"62.35 GiB too little for 2 blocks; it needs tensor_parallel_size 4"},
			[]string{"tensor_parallel_size=4"}},
		{llama8B, "max_num_batched_tokens: 100, max_num_seqs: 101",
			[]string{"engine.max_num_seqs: must be at most max_num_batched_tokens, 100, is 101"},
			[]string{"max_num_seqs=100"}},
		{llama8B, "max_num_seqs: 4096", []string{"engine.max_num_seqs: must be at most max_num_batched_tokens, 2048"},
			[]string{"max_num_batched_tokens=4096"}},
		{llama8B, "enable_chunked_prefill: false, max_num_batched_tokens: 4095, max_model_len: 4096",
			[]string{"engine.max_num_batched_tokens: must be at least max_model_len, 4096, without chunked prefill"},
			[]string{"max_num_batched_tokens=4096", "max_model_len=4095", "enable_chunked_prefill=true"}},
		{llama8B, "block_size: 24", []string{"engine.block_size: must be a multiple of 16"},
			[]string{"block_size=32"}},
	} {
		fields := c.fields + ", engine: {" + c.engine + "}"
		_, _, err := parseDeployment(fields)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", fields, err, want)
			}
		}
		for _, remedy := range c.remedies {
			if _, _, err := parseDeployment(fields, "deployments.main.engine."+remedy); err != nil {
				t.Errorf("%s with %s: %v", fields, remedy, err)
			}
		}
	}
}

// TestLongestModelLen: the max_model_len that the error names is the largest with which vLLM starts, also
// where layers with a window hold blocks.
func TestLongestModelLen(t *testing.T) {
	for _, fields := range []string{
		llama70B + ", engine: {tensor_parallel_size: 2",
		"model: google/gemma-3-12b-it, gpu: L40S, latency: {model: roofline}, engine: {gpu_memory_utilization: 0.61",
	} {
		_, _, err := parseDeployment(fields + "}")
		if err == nil {
			t.Fatalf("%s loads", fields)
		}
		_, after, _ := strings.Cut(err.Error(), "to at most ")
		var longest int
		if _, err := fmt.Sscanf(after, "%d", &longest); err != nil || longest < 1 {
			t.Fatalf("no length in %q", after)
		}
		if _, _, err := parseDeployment(fmt.Sprintf("%s, max_model_len: %d}", fields, longest)); err != nil {
			t.Errorf("%s with the length from the error: %v", fields, err)
		}
		if _, _, err := parseDeployment(fmt.Sprintf("%s, max_model_len: %d}", fields, longest+1)); err == nil {
			t.Errorf("%s loads with %d tokens, and the error says %d", fields, longest+1, longest)
		}
	}
}

// TestBatchLimitsFollowEachOther: limits that are not set, as vLLM's EngineArgs sets them.
func TestBatchLimitsFollowEachOther(t *testing.T) {
	for _, c := range []struct {
		engine       string
		seqs, tokens int
	}{
		{"", 256, 2048},
		{"max_num_batched_tokens: 100", 100, 100},
		{"max_num_seqs: 100", 100, 2048},
		{"enable_chunked_prefill: false", 256, 40960},
		{"enable_chunked_prefill: false, max_model_len: 1000", 256, 2048},
		{"max_num_seqs: 2, max_model_len: 1000", 2, 2000},
		{"preset: vllm-0.15, max_num_batched_tokens: 1000", 1000, 1000},
		{"preset: vllm-0.15, enable_chunked_prefill: false", 1024, 40960},
	} {
		d, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {" + c.engine + "}")
		if err != nil {
			t.Errorf("%s: %v", c.engine, err)
		} else if e := &d.Engine; e.MaxNumSeqs != c.seqs || e.MaxNumBatchedTokens != c.tokens {
			t.Errorf("%s: %d sequences and %d tokens, want %d and %d", c.engine, e.MaxNumSeqs, e.MaxNumBatchedTokens,
				c.seqs, c.tokens)
		}
	}
}
