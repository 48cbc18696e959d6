package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/hardware"
	"blis/pkg/model"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// clusterVariants are clusters of every kind: a deployment and the rest of the file.
var clusterVariants = []struct{ deployment, rest string }{
	{"model: m, engine: {num_gpu_blocks_override: 100}, latency: {model: linear, alpha_us: [0.1, 1e-7, 0], beta_us: " +
		"[1, 1.5, 123456789.25, 0]}", ""},
	{"model: Qwen/Qwen3-8B, gpu: h100, latency: {jitter: {cv: 0.05}}", ""},
	{"model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100, replicas: 3, engine: {preset: vllm-0.15, vllm_version: " +
		"0.15.1, max_num_seqs: 64}", ""},
	{"model: meta-llama/Llama-2-7b-hf, gpu: H100, latency: {alpha_us: [1, 2, 3]}", ""},
	{"model: deepseek-ai/DeepSeek-V3, gpu: H200, engine: {tensor_parallel_size: 8, data_parallel_size: 2, moe: " +
		"{enable_all_to_all: true, moe_kernel_backend: x}}", ""},
	{"model: deepseek-ai/DeepSeek-V3, gpu: H200, engine: {tensor_parallel_size: 8, data_parallel_size: 2, " +
		"merge_data_parallel_ranks: true}", ""},
	{"model: Qwen/Qwen3-30B-A3B, gpu: H100, engine: {data_parallel_size: 4, enable_expert_parallel: true, " +
		"enable_eplb: true, eplb_config: {num_redundant_experts: 8}}", ""},
	{"model: Qwen/Qwen3-30B-A3B, gpu: H100, engine: {data_parallel_size: 2, data_parallel_external_lb: true, " +
		"dp_sync_interval: 8}", ""},
	{"model: moonshotai/Kimi-K2, gpu: B200, engine: {tensor_parallel_size: 8, pipeline_parallel_size: 2, " +
		"quantization: " +
		"fp8, swap_space: 4}", ""},
	{"model: google/gemma-3-12b-it, gpu: L40S, engine: {kv_cache_dtype: fp8, max_model_len: 8192, watermark: 0.01, " +
		"reserve_full_sequence: true}", ""},
	{"model: openai/gpt-oss-20b, gpu: H100, engine: {num_gpu_blocks_override: 5000, chunk_size: 512, " +
		"async_scheduling: " +
		"true}", ""},
	{"model: m, gpu: L4, engine: {num_gpu_blocks_override: 9, enable_prefix_caching: false, enable_chunked_prefill: " +
		"false}, latency: {alpha_us: [0, 0, 0], table: {prefill_tokens: [0, 100], decode_sequences: [0, 10], " +
		"context_tokens: [0], step_us: [1, 2, 3, 4]}, range: {input_tokens: [1, 100]}, source: mine}", ""},
	{"model: Qwen/Qwen3-8B, gpu: H100", "control_plane: {admission_latency_us: 5, max_delays: 3, shadow_blocks: 77, " +
		"shadow_evictions: true, shadow_lag_us: 9, snapshots: {default: periodic 50ms, running: on-demand 1ms}, " +
		"flow_control: {order: priority, capacity: 4}}\n"},
	{"model: Qwen/Qwen3-8B, gpu: H100", `policies:
  parent: p
  generation: 3
  mutations: ["a: b", "- c"]
  admission:
    type: chain
    of:
      - {type: token-bucket, params: {unit: input_tokens, per_tenant: true}}
      - {type: expression, admit: 'req.tier != "sheddable" ? "admit" : "delay"', params: {delay_ms: 0.5}}
  priority:
    type: tree
    root:
      if: req.input_tokens > 4000
      then: 1e-9
      else: {use: {type: tenant-priority, params: {map: {a: 1, "true": -2}}}}
  scheduler: {type: expression, order: "req.arrival_s"}
  preemption: {type: lowest-priority}
  routing:
    type: filter
    filter: "replica.kv_util < 0.9"
    use: {type: weighted, params: {queue-depth: 2.25, prefix-affinity: 0}}
`},
	{"model: Qwen/Qwen3-8B, gpu: H100", "policies: {admission: {type: tree, root: {if: req.delays > 2.0, " +
		"then: reject, " +
		"else: admit}}, priority: {type: expression, priority: req.input_tokens}}\n"},
}

// TestPrintedClustersParseBack: a printed configuration is an equivalent cluster file,
// to the byte, whether it is resolved again or restored.
func TestPrintedClustersParseBack(t *testing.T) {
	for _, v := range clusterVariants {
		text := fmt.Sprintf("version: 1\ndeployments:\n  - {id: main, %s}\n%s", v.deployment, v.rest)
		c, err := parse(text, Options{})
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		checkRoundTrip(t, c, Options{})
	}
}

// checkRoundTrip resolves and restores the JSON of c.
func checkRoundTrip(t *testing.T, c *Config, o Options) {
	t.Helper()
	printed, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := Parse("printed", printed, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	restored, err := Restore("printed", printed)
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for how, again := range map[string]*Config{"resolved again": resolved, "restored": restored} {
		if diff := cmp.Diff(c, again, cmpopts.IgnoreFields(Latency{}, "Uncertainty")); diff != "" {
			t.Errorf("%s, it differs (+):\n%s\n%s", how, diff, printed)
		}
		if text, err := json.Marshal(again); err != nil || string(text) != string(printed) {
			t.Errorf("%s, it is printed (%v) as\n%s\nnot as\n%s", how, err, text, printed)
		}
	}
}

// TestAllModelsAndGPUsParseBack tries every model on every GPU, with all presets.
func TestAllModelsAndGPUsParseBack(t *testing.T) {
	known, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, arch := range model.BuiltIns() {
		for _, gpu := range known.GPUs() {
			preset := Presets.Names()[tried%len(Presets)]
			c, err := parse(fmt.Sprintf("version: 1\ndeployments: [{id: main, model: %q, gpu: %q, engine: "+
				"{preset: %s, "+
				"tensor_parallel_size: 4}}]\n", arch.Name, gpu.ID, preset), Options{})
			if err == nil {
				tried++
				checkRoundTrip(t, c, Options{})
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d pairs of model and GPU are valid", tried)
	}
}

// TestUserHardwareIsRestored: a restored cluster does not need the user's hardware
// file.
func TestUserHardwareIsRestored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte("version: 1\ngpus: [{id: X1, peak_tflops: {bf16: 123.4}, memory_gib: 50, "+
		"memory_gb_per_s: 1000, link: pcie, link_gb_per_s: 64, efficiency: {compute: 0.5}}]\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	o := Options{Hardware: []string{file}}
	c, err := parse("version: 1\ndeployments: [{id: main, model: Qwen/Qwen3-8B, gpu: X1}]\n", o)
	if err != nil {
		t.Fatal(err)
	}
	checkRoundTrip(t, c, o)
}

// TestRestoreErrors: an invalid resolved configuration is rejected with a position.
func TestRestoreErrors(t *testing.T) {
	c, err := Load("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	printed, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	blocks := fmt.Sprintf(`"kv_blocks":%d`, c.Deployments[0].Computed.KVBlocks)
	for _, f := range []struct{ old, new, want string }{
		{`"version":1`, `"version":2`, "version: must be 1, is 2"},
		{`"replicas":4`, `"replicas":0`, "deployments[0].replicas: must be between 1 and"},
		{blocks, `"kv_blocks":0`, "deployments[0].computed.kv_blocks: must be between 2 and"},
		{blocks, `"kv_blocks":99999999999`, "computed.kv_blocks: must be between 2 and"},
		{blocks, `"kv_blocks":"many"`, "deployments[0].computed: json: cannot unmarshal string"},
		{blocks, `"kv_block":1`, `deployments[0].computed: json: unknown field "kv_block"`},
		{`"block_size":16`, `"block_size":0`, "deployments[0].engine.block_size: must be between 1 and"},
		{`"type":"fcfs"`, `"type":"fcsf"`, `did you mean "fcfs"?`},
		{`"model":"linear"`, `"model":"liner"`, `did you mean "linear"?`},
		{`"engine"`, `"engin"`, `did you mean "engine"?`},
	} {
		text := strings.Replace(string(printed), f.old, f.new, 1)
		if text == string(printed) {
			t.Errorf("the default cluster has no %s", f.old)
		}
		if _, err := Restore("printed", []byte(text)); err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: error %v, want %q", f.new, err, f.want)
		}
	}
}
