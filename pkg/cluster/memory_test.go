package cluster

import (
	"fmt"
	"math"
	"testing"
)

// TestBlockCountsMatchServers compares with the logs of servers on H100: vLLM 0.15.1 with 128 sequences and
// 2048 tokens in a step (inference-sim/training c4f03409, replay_data), and 0.19.0 with its defaults
// (jgchn/llm-d-planner, accuracy/results/v0.19.0, whose GPUs have 0.08 GiB more). An RTX 4090 of an unknown
// version sorted the logits: it had 2588 blocks.
func TestBlockCountsMatchServers(t *testing.T) {
	const old = "vllm_version: 0.15.1, max_num_seqs: 128, max_num_batched_tokens: 2048, max_model_len: 4096"
	const v19 = "preset: vllm-0.19, gpu_memory_utilization: 0.95, max_model_len: 8192"
	const card = "vllm_version: 0.15.1, max_model_len: 8192"
	for _, m := range []struct {
		model, gpu, engine string
		tp, pp, blocks     int
	}{
		{"meta-llama/Llama-2-7b-hf", "H100", old, 1, 1, 7462},
		{"meta-llama/Llama-2-70b-hf", "H100", old, 4, 1, 31356},
		{"mistralai/Mixtral-8x7B-v0.1", "H100", old, 2, 1, 27510},
		{"codellama/CodeLlama-34b-Instruct-hf", "H100", old, 2, 1, 26602},
		{"meta-llama/Llama-3.1-8B", "H100", v19, 1, 1, 29751},
		{"meta-llama/Llama-3.1-8B", "H100", v19, 2, 1, 65293},
		{"meta-llama/Llama-3.1-8B", "H100", v19, 4, 1, 138112},
		{"meta-llama/Llama-3.1-8B", "H100", v19, 1, 2, 67207},
		{"meta-llama/Llama-3.1-8B", "H100", v19, 1, 4, 141079},
		{"meta-llama/Llama-3.1-8B", "H100", v19 + ", kv_cache_dtype: fp8", 1, 1, 59502},
		{"deepseek-ai/DeepSeek-V2-Lite-Chat", "H100", v19, 1, 1, 94097},
		{"microsoft/phi-4", "H100", v19, 1, 1, 15098},
		{"mistralai/Mixtral-8x7B-v0.1", "H100", v19, 2, 1, 29121},
		{"Qwen/Qwen2.5-7B-Instruct", "H100", v19, 1, 1, 68500},
		{"Qwen/Qwen3-8B", "H100", v19, 1, 1, 26168},
		{"Qwen/Qwen3-30B-A3B", "H100", v19, 1, 1, 10518},
		{"meta-llama/Llama-3.1-8B", "RTX-4090", card, 1, 1, 2588},
	} {
		d, _, err := parseDeployment(fmt.Sprintf("model: %s, gpu: %s, engine: {tensor_parallel_size: %d, "+
			"pipeline_parallel_size: %d, %s}", m.model, m.gpu, m.tp, m.pp, m.engine))
		if err != nil {
			t.Fatal(err)
		}
		deviation := 100 * (float64(d.Computed.KVBlocks)/float64(m.blocks) - 1)
		if math.Abs(deviation) > 0.8 {
			t.Errorf("%s TP %d PP %d: %d blocks, the server had %d: %+.2f %%", m.model, m.tp, m.pp,
				d.Computed.KVBlocks, m.blocks, deviation)
		}
		t.Logf("%-40s TP %d PP %d: %6d blocks, the server had %6d: %+.2f %%", m.model, m.tp, m.pp,
			d.Computed.KVBlocks, m.blocks, deviation)
	}
}

// TestReservedGraphs: what vLLM's log names for the same settings, for example "PIECEWISE=51 (largest=512),
// FULL=35 (largest=256)".
func TestReservedGraphs(t *testing.T) {
	for _, c := range []struct {
		engine, latency string
		want            int
	}{
		{"max_num_seqs: 256", "", 51 + 35},
		{"max_num_seqs: 1024", "", 51 + 51},
		{"max_num_seqs: 128", "", 35 + 19},
		{"max_num_seqs: 2", "", 3 + 2},
		{"max_num_seqs: 256, vllm_version: 0.20.2", "", 0},
		{"max_num_seqs: 256, vllm_version: 0.21.0", "", 51 + 35},
		{"max_num_seqs: 256, enforce_eager: true", "", 0},
		{"max_num_seqs: 256", "cudagraph_mode: PIECEWISE", 51},
		{"max_num_seqs: 256", "cudagraph_mode: FULL_DECODE_ONLY", 35},
		{"max_num_seqs: 256", "cudagraph_mode: NONE", 0},
		{"max_num_seqs: 256", "max_cudagraph_capture_size: 16", 5 + 5},
	} {
		d, _, err := parseDeployment("model: meta-llama/Llama-3.1-8B, gpu: H100, engine: {max_num_batched_tokens: " +
			"8192, " + c.engine + "}, latency: {model: operators, kernels: {" + c.latency + "}}")
		if err != nil {
			t.Fatal(err)
		}
		const first, layer = 171 << 20, 185 << 10
		have := int(d.Computed.Memory.Graphs)
		if c.want > 0 {
			have = (have - first) / layer / 32
		}
		if have != c.want {
			t.Errorf("%s, %s: %d graphs, want %d", c.engine, c.latency, have, c.want)
		}
	}
}
