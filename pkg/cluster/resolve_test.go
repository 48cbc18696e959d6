package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"blis/pkg/hardware"
	"blis/pkg/model"
)

// parseDeployment resolves a cluster of one deployment and returns its warnings.
func parseDeployment(fields string, sets ...string) (*Deployment, []string, error) {
	text := "version: 1\ndeployments:\n  - {id: main, " + fields + "}\n"
	var warnings []string
	c, err := parse(text, Options{Overrides: sets, AllowPaths: true,
		Warn: func(w string) { warnings = append(warnings, w) }})
	if err != nil {
		return nil, warnings, err
	}
	return &c.Deployments[0], warnings, nil
}

// TestMemoryPartsAddUp: the parts that --print-config prints add up to the usable
// memory of a GPU.
func TestMemoryPartsAddUp(t *testing.T) {
	for _, fields := range []string{
		"model: deepseek-ai/DeepSeek-V3, gpu: H200, engine: {tensor_parallel_size: 8}",
		"model: deepseek-ai/DeepSeek-V3, gpu: H200, engine: {tensor_parallel_size: 8, data_parallel_size: 2, " +
			"pipeline_parallel_size: 2, merge_data_parallel_ranks: true}",
		"model: google/gemma-3-12b-it, gpu: L40S",
		"model: Qwen/Qwen3-8B, gpu: RTX4090, engine: {kv_cache_dtype: fp8, max_model_len: 8192}",
	} {
		d, _, err := parseDeployment(fields)
		if err != nil {
			t.Errorf("%s: %v", fields, err)
			continue
		}
		m := d.Computed.Memory
		if m.Usable != m.Weights+m.Activations+m.Runtime+m.Communication+m.Graphs+m.KVCache {
			t.Errorf("%s: the parts do not add up: %v", fields, m)
		}
		if m.Blocks != m.KVCache/m.BlockBytes || int64(d.Computed.KVBlocks) != m.Blocks {
			t.Errorf("%s: %d blocks of %d bytes in %d", fields, d.Computed.KVBlocks, m.BlockBytes, m.KVCache)
		}
		if n := d.Engine.GPUs(); d.Computed.GPUs != n || n < 1 {
			t.Errorf("%s: %d GPUs, want %d", fields, d.Computed.GPUs, n)
		}
	}
}

// TestSlidingWindowGroups: one in six of gemma's layers has full attention. The groups
// have as many layers, and so has a block.
func TestSlidingWindowGroups(t *testing.T) {
	d, _, err := parseDeployment("model: google/gemma-3-12b-it, gpu: H100")
	if err != nil {
		t.Fatal(err)
	}
	if k := d.Computed; k.WindowTokens != 1024 || len(k.KVGroups) != 6 ||
		k.KVGroups[0] != (model.KVGroup{Kind: model.KVWindow, WindowTokens: 1024, BlockSize: 16, Layers: 8}) {
		t.Errorf("windows of %d tokens, groups %+v", k.WindowTokens, k.KVGroups)
	}
	if got, want := d.Computed.Memory.BlockBytes, int64(16*8*2*8*256*2); got != want {
		t.Errorf("blocks of %d bytes, want %d: 16 tokens in 8 layers", got, want)
	}
}

// TestPresetsFillUnsetValues: a preset depends on the GPU and fills values that are
// not set.
func TestPresetsFillUnsetValues(t *testing.T) {
	for _, c := range []struct {
		fields string
		sets   []string
		want   string // sequences, tokens, async, utilization
	}{
		{"gpu: H100, engine: {preset: vllm-0.15}", nil, "1024 8192 true 0.9"},
		{"gpu: A100, engine: {preset: vllm-0.15}", nil, "256 2048 true 0.9"},
		{"gpu: H100, engine: {preset: vllm-0.11}", nil, "1024 8192 false 0.9"},
		{"gpu: H100, engine: {preset: vllm-0.25}", nil, "1024 8192 true 0.92"},
		{"gpu: H100, engine: {preset: vllm-0.15, max_num_seqs: 256, async_scheduling: false}", nil,
			"256 8192 false 0.9"},
		{"gpu: H100, engine: {preset: vllm-0.15}", []string{"deployments.main.engine.max_num_seqs=256"},
			"256 8192 true 0.9"},
		{"gpu: H100, engine: {preset: vllm-0.15}", []string{"deployments.0.engine.async_scheduling=false"},
			"1024 8192 false 0.9"},
		{"gpu: H100", []string{"deployments.main.engine={preset: vllm-0.15, max_num_seqs: 7}"}, "7 8192 true 0.9"},
		{"gpu: H100, engine: {max_num_seqs: 5}", []string{"deployments.main.engine={preset: vllm-0.15}"},
			"1024 8192 true 0.9"},
		{"gpu: H100, engine: {max_num_seqs: 5}", []string{"deployments=[{id: main, model: Qwen/Qwen3-8B, gpu: H100, " +
			"engine: {preset: vllm-0.15, max_num_seqs: 9}}]"}, "9 8192 true 0.9"},
		{"gpu: H100, engine: {max_num_seqs: 256}", []string{"deployments.main.engine.preset=vllm-0.15"},
			"256 8192 true 0.9"},
		{"gpu: H100", nil, "256 2048 false 0.9"},
	} {
		d, _, err := parseDeployment("model: Qwen/Qwen3-8B, "+c.fields, c.sets...)
		if err != nil {
			t.Errorf("%s: %v", c.fields, err)
			continue
		}
		e := &d.Engine
		if got := fmt.Sprintf("%d %d %v %g", e.MaxNumSeqs, e.MaxNumBatchedTokens, e.AsyncScheduling,
			e.GPUMemoryUtilization); got != c.want {
			t.Errorf("%s, sets %v: %s, want %s", c.fields, c.sets, got, c.want)
		}
	}
}

// TestLatencyModelSelection: the file wins, then measured steps, then measured kernels, then the roofline.
func TestLatencyModelSelection(t *testing.T) {
	const h100 = "model: meta-llama/Meta-Llama-3.1-8B-Instruct, gpu: h100"
	for _, c := range []struct{ fields, model, warning string }{
		{h100 + ", latency: {alpha_us: [0, 0, 0], beta_us: [1, 2, 3]}", "linear", ""},
		{h100 + ", latency: {alpha_us: [0, 0, 0], table: {prefill_tokens: [0, 100], decode_sequences: [0], " +
			"context_tokens: [0], step_us: [10, 20]}}", "table", ""},
		{h100 + ", latency: {model: roofline}", "roofline", ""},
		{h100, "linear", ""}, // measured
		{h100 + ", engine: {quantization: fp8}", "operators", "sums of kernels measured on h100_sxm"},
		{h100 + ", engine: {dtype: bfloat16, kv_cache_dtype: bfloat16}", "linear", ""}, // same as the model's own
		{h100 + ", model_config: Qwen/Qwen3-8B", "operators", "nothing was measured for"},
		{h100 + ", engine: {tensor_parallel_size: 2}", "operators", "nothing was measured for"},
		{h100 + ", engine: {vllm_version: 0.19.0}", "linear", "measured with vLLM 0.6, here vllm_version is 0.19.0"},
		{"model: Qwen/Qwen3-8B, gpu: L4, engine: {max_model_len: 4096}", "roofline",
			"nothing was measured for Qwen/Qwen3-8B on 1 x L4-24GB, " +
				"and there are no tables of measured kernels of L4-24GB"},
		{"model: Qwen/Qwen3-8B, gpu: A100-40GB", "operators", "kernels were measured on A100-SXM-80GB"},
	} {
		d, warnings, err := parseDeployment(c.fields)
		if err != nil {
			t.Errorf("%s: %v", c.fields, err)
			continue
		}
		if d.Latency.Model != c.model {
			t.Errorf("%s: latency model %s, want %s", c.fields, d.Latency.Model, c.model)
		}
		if got := strings.Join(warnings, "; "); (c.warning == "") != (got == "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.fields, got, c.warning)
		}
		if _, err := d.LatencyModel(); err != nil {
			t.Errorf("%s: %v", c.fields, err)
		}
	}
}

// TestResolveErrors: errors have a position and say what would help.
func TestResolveErrors(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{"model: deepseek-ai/DeepSeek-V3, gpu: L4", "c.yaml:3:53: deployments[0].gpu: deepseek-ai/DeepSeek-V3 " +
			"does not " +
			"fit into 1 x L4-24GB"},
		{"model: deepseek-ai/DeepSeek-V3, gpu: A100", "it needs tensor_parallel_size 16"},
		{"model: Qwen/Qwen3-8B, gpu: H10", `unknown GPU "H10"; did you mean`},
		{"model: Qwen/Qwen3-8", `unknown model "Qwen/Qwen3-8"; did you mean "Qwen/Qwen3-8B"?`},
		{"model: Qwen/Qwen3-8B", "no gpu is set"},
		{"model: own, gpu: H100, engine: {num_gpu_blocks_override: 9}",
			"deployments[0].latency is not in the file: must be set"},
		{"model: own, gpu: H100, model_config: missing.json", "deployments[0].model_config: no such file"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {dtype: float12}", `unknown dtype "float12"`},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {preset: vllm-9}", `unknown preset "vllm-9"`},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {tensor_parallel_size: 3}",
			"must divide the model's 32 attention heads"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {pipeline_parallel_size: 99}", "at most the model's 36 layers"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {tensor_parallel_size: 0}", "must be between 1 and"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {gpu_memory_utilization: 1.5}",
			"must be above 0 and at most 1, is 1.5"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {watermark: 1}", "must be at least 0 and below 1"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {preemption_mode: swap}", "must be recompute"},
		{"model: m, engine: {free_order: first}", "engine.free_order: must be append or unhashed-first"},
		{"model: m, engine: {num_gpu_blocks_override: 1}", "must be at least 2, since one is vLLM's null"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {swap_space: .inf}", "must be a finite number"},
		{"model: Qwen/Qwen3-8B, gpu: H100, latency: {range: {input_tokens: [5]}}",
			"latency.range.input_tokens: must be [least, largest], is [5]"},
		{"model: own, engine: {num_gpu_blocks_override: 9, dtype: half}, latency: {beta_us: [1, 1, 1], " +
			"alpha_us: [0, 0, " +
			"0]}", `c.yaml:3:23: deployments[0].model: unknown model "own"`},
		{"model: llama-3-70b, gpu: H100, engine: {quantization: fp8}", `c.yaml:3:23: deployments[0].model: unknown ` +
			`model "llama-3-70b"; did you mean "meta-llama/`},
		{"model: own, gpu: H100, engine: {kv_cache_dtype: fp8}", "engine.kv_cache_dtype can only be applied to a " +
			"known model: for another one, set model_config"},
		{"model: Llama-3.3-70B, gpu: H100", `unknown model "Llama-3.3-70B"; did you mean "meta-llama/Llama-3.3-70B`},
		{"model: microsoft/phi-4, gpu: A10G, engine: {gpu_memory_utilization: 0.5}", "it needs tensor_parallel_size 5"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {swap_space: -1}", "must be at least 0"},
		{"model: Qwen/Qwen3-8B, gpu: H100, latency: {jitter: {cv: -1}}", "jitter.cv: must be between 0 and 10, is -1"},
		{"model: own, engine: {num_gpu_blocks_override: 9}, latency: {model: roofline}",
			"the roofline cannot be computed: unknown model"},
	} {
		fields, want := c.fields, c.want
		_, _, err := parseDeployment(fields)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", fields, err, want)
		}
	}
}

// TestSettingsWithoutEffectAreReported: each is a warning that says why.
func TestSettingsWithoutEffectAreReported(t *testing.T) {
	const h100 = "model: meta-llama/Llama-3.1-8B, gpu: h100"
	for _, c := range []struct{ fields, want string }{
		{h100 + ", engine: {swap_space: 4}", "engine.swap_space has no effect"},
		{h100 + ", engine: {max_num_partial_prefills: 4}", "engine.max_num_partial_prefills has no effect"},
		{h100 + ", engine: {moe: {enable_all_to_all: true}}", "engine.moe has no effect: the model has no experts"},
		{h100 + ", engine: {num_gpu_blocks_override: 99999}", "only 28090 blocks fit"},
		{h100 + ", engine: {num_gpu_blocks_override: 100}", "vLLM 0.24 and newer do not start"},
		{h100 + ", engine: {num_gpu_blocks_override: 9000, block_size: 20}", "unless it is a multiple of 16"},
		{h100 + ", engine: {max_model_len: 5000, chunk_size: 6000}", "long_prefill_token_threshold has no effect"},
		{h100 + ", engine: {max_model_len: 200000}", "the model supports at most 131072 tokens: a real vLLM starts " +
			"only with VLLM_ALLOW_LONG_MAX_MODEL_LEN=1"},
		{h100 + ", latency: {model: roofline, beta_us: [1, 2, 3]}", "latency.beta_us has no effect"},
		{h100 + ", latency: {model: roofline, range: {input_tokens: [1, 2]}}", "latency.range has no effect"},
		{h100 + ", latency: {alpha_us: [0, 0, 0], beta_us: [1, 2, 3], table: {prefill_tokens: [0], " +
			"decode_sequences: [0], " +
			"context_tokens: [0], step_us: [1]}}", "latency.beta_us has no effect"},
		{h100 + ", computed: {kv_blocks: 5}", "computed does not match the rest of the configuration"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {tensor_parallel_size: 16}, latency: {model: roofline}",
			"assumes that all 16 GPUs are in one node"},
	} {
		fields, want := c.fields, c.want
		_, warnings, err := parseDeployment(fields)
		if err != nil {
			t.Errorf("%s: %v", fields, err)
		} else if got := strings.Join(warnings, "; "); !strings.Contains(got, want) {
			t.Errorf("%s: warnings %q, want %q", fields, got, want)
		}
	}
	if _, warnings, err := parseDeployment(h100); err != nil || warnings != nil {
		t.Errorf("a deployment without extras: %v, %q", err, warnings)
	}
}

// TestUserModelAndGPU resolves a user's config.json and GPU.
func TestUserModelAndGPU(t *testing.T) {
	dir := t.TempDir()
	config, gpus := filepath.Join(dir, "config.json"), filepath.Join(dir, "gpus.yaml")
	for name, text := range map[string]string{
		config: `{"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
 "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
 "max_position_embeddings": 40960, "tie_word_embeddings": true}`,
		gpus: "version: 1\ngpus:\n  - {id: mine, peak_tflops: {bf16: 10}, memory_gib: 8, memory_gb_per_s: 100}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf("version: 1\ndeployments:\n  - {id: main, model: small, model_config: %s, gpu: mine}\n", config)
	c, err := parse(text, Options{Hardware: []string{gpus}, AllowPaths: true})
	if err != nil {
		t.Fatal(err)
	}
	d := &c.Deployments[0]
	// Qwen3-0.6B has 596,049,920 parameters in its weight file.
	if d.Computed.TotalParameters != 596049920 || d.Latency.Model != "roofline" || d.Engine.MaxModelLen != 40960 ||
		d.Computed.KVBlocks < 2000 {
		t.Errorf("resolved to %+v, latency %s, max_model_len %d", d.Computed, d.Latency.Model, d.Engine.MaxModelLen)
	}
}

// TestBuiltInCoefficientsMatchKnownModels: the built-in coefficients use the catalog's
// name of their model and a known GPU into which the model fits.
func TestBuiltInCoefficientsMatchKnownModels(t *testing.T) {
	known, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range known.Sets() {
		a, err := model.BuiltIn(s.Model)
		if err != nil || a.Name != s.Model {
			t.Errorf("%s: the model's name is %v, %v", s.Model, a, err)
		}
		d, _, err := parseDeployment(fmt.Sprintf("model: %s, gpu: %s, engine: {tensor_parallel_size: %d}",
			s.Model, s.GPU,
			s.TensorParallelSize))
		if err != nil {
			t.Errorf("%s: %v", s.Model, err)
		} else if d.Latency.Source != "measured with "+s.Engine {
			t.Errorf("%s: latency %+v", s.Model, d.Latency)
		}
	}
}

// TestArguments: arguments of vllm serve that an engine does not have are errors that say what to do.
func TestArguments(t *testing.T) {
	for _, c := range []struct{ field, want string }{
		{"max_cudagraph_capture_size: 2048", `unknown field "max_cudagraph_capture_size": set it in latency.kernels`},
		{"stream-interval: 20", `unknown field "stream-interval": it changes no time in the simulation; remove it`},
		{"num_speculative_tokens: 3", "set speculative_config"},
		{"scheduling_policy: priority", "set policies.scheduler"},
		{"max-num-seqs: 4", `did you mean "max_num_seqs"?`},
		{"completely_unknown: 4", `unknown field "completely_unknown" (have after_self_preemption, `},
	} {
		_, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {" + c.field + "}")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.field, err, c.want)
		}
	}
	for field, want := range map[string]string{
		"enable_expert_parallel: true":    "engine.enable_expert_parallel has no effect: the model has no experts",
		"moe: {enable_all_to_all: false}": "engine.moe has no effect: the model has no experts",
	} {
		_, warnings, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {" + field + "}")
		if said := strings.Join(warnings, "; "); err != nil || !strings.Contains(said, want) {
			t.Errorf("%s: %v, warnings %q, want %q", field, err, said, want)
		}
	}
	const experts = "model: Qwen/Qwen3-30B-A3B, gpu: H100, engine: {tensor_parallel_size: 2, "
	a, _, err := parseDeployment(experts + "enable_expert_parallel: true}")
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := parseDeployment(experts + "moe: {enable_all_to_all: true}}")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := parseDeployment(experts + "vllm_version: 0.19.0}")
	if err != nil {
		t.Fatal(err)
	}
	if x, y := a.Computed.Operators, b.Computed.Operators; !reflect.DeepEqual(x, y) ||
		reflect.DeepEqual(x.Experts, c.Computed.Operators.Experts) {
		t.Error("enable_expert_parallel is not moe.enable_all_to_all")
	}
}
