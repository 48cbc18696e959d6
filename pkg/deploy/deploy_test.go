package deploy

import (
	"strings"
	"testing"

	"blis/pkg/cluster"
)

// load returns the default cluster with overrides.
func load(t *testing.T, sets ...string) *cluster.Config {
	t.Helper()
	c, err := cluster.Load("", cluster.Options{Overrides: sets})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSettingsOfTargets: the settings are in the text that a target gets.
func TestSettingsOfTargets(t *testing.T) {
	const main = "deployments.main."
	for _, c := range []struct{ target, sets, want string }{
		{"llm-d", "routing={type: weighted, params: {queue-depth: 1.5, picker: weighted-random}}",
			"- pluginRef: queue-scorer\n    weight: 1.5\n  - pluginRef: weighted-random-picker\n"},
		{"llm-d", "routing={type: weighted, params: {prefix-affinity: 1}}", "# prefix-affinity matches blocks of the"},
		{"llm-d", "routing={type: least-loaded, params: {load: inflight}}",
			"- pluginRef: active-request-scorer\n    weight: 1\n  - pluginRef: max-score-picker\n"},
		{"llm-d", "priority.type=slo-based", "# Priorities are those of InferenceObjectives, one for each SLO"},
		{"llm-d", "routing.type=random", "- name: default\n  plugins:\n  - pluginRef: random-picker\n"},
		{"llm-d", "routing.type=llm-d|admission.type=probabilistic-admitter", `"queueDepthThreshold":5`},
		{"llm-d", "priority.type=slo-based|control_plane.flow_control={priority_bands: true, ttl_us: 1500000, " +
			"saturation: 0.5}",
			"  defaultRequestTTL: 1.5s\n  saturationDetector:\n    pluginRef: utilization-detector\n" +
				"  usageLimitPolicyPluginRef: static-usage-limit-policy\n"},
		{"vllm", main + "engine.tensor_parallel_size=2|" + main + "replicas=3|" + main + "model=Qwen/Qwen3-8B",
			"# main: replicas: 3, each on 2 x H100-SXM-80GB\nvllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 "},
		{"vllm", main + "engine.enable_prefix_caching=false", " --no-enable-prefix-caching "},
		{"vllm", "scheduler.type=priority-fcfs|preemption.type=lowest-priority", " --scheduling-policy priority\n"},
		{"vllm", main + "engine.max_num_seqs=77", " --max-num-seqs 77 "},
		{"vllm", main + "engine.max_num_active_seqs=7|" + main + "engine.max_num_queued_reqs=0|" + main +
			"engine.max_num_queued_tokens=9", " --max-num-queued-reqs 0 --max-num-queued-tokens 9 "},
		{"vllm", main + "engine.max_num_active_seqs=7", " --max-num-active-seqs 7 "},
		{"vllm", main + "engine.prefill_schedule_interval=2", " --prefill-schedule-interval 2 "},
		{"vllm", main + "latency.kernels.max_cudagraph_capture_size=64",
			` --compilation-config '{"max_cudagraph_capture_size":64}'` + "\n"},
		{"vllm", main + "latency.kernels.float32_matmul_precision=high|" + main + "model=Qwen/Qwen3-8B",
			"\nVLLM_FLOAT32_MATMUL_PRECISION=high vllm serve Qwen/Qwen3-8B "},
		{"vllm", main + "engine.preset=vllm-0.33", " --scheduler-reserve-full-isl "},
		{"vllm", main + "engine.preset=vllm-0.33|" + main + "engine.reserve_full_sequence=false",
			" --no-scheduler-reserve-full-isl "},
		{"vllm", main + "engine.preset=vllm-0.15", " --async-scheduling --block-size "},
		{"dynamo", "routing.type=power-of-two", "dynamo.frontend --router-mode power-of-two\n"},
		{"dynamo", "routing={type: dynamo-kv, params: {router_temperature: 0.5, router_track_active_blocks: false}}",
			"--router-temperature 0.5 --router-track-prefill-tokens --no-router-track-active-blocks\n"},
	} {
		text, err := Export(c.target, load(t, strings.Split(c.sets, "|")...))
		if err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s of %s: %v, has no %q:\n%s", c.target, c.sets, err, c.want, text)
		}
	}
}

// TestUnmapped: what a target does not have is an error that names it.
func TestUnmapped(t *testing.T) {
	for _, c := range []struct{ target, sets, want string }{
		{"llm-d", "routing.type=dynamo-kv", "llm-d: policies.routing is dynamo-kv, which llm-d does not have"},
		{"llm-d", "routing={type: weighted, params: {tie: first}}", "policies.routing.params.tie is first"},
		{"llm-d", "routing={type: weighted, params: {tiered-prefix: 1}}", "params.tiered-prefix has a weight"},
		{"llm-d", "routing={type: least-loaded, params: {load: snapshot}}", "policies.routing.params.load compares"},
		{"llm-d", "routing={type: llm-d, of: [{type: endpoint-attribute-scorer}]}",
			"policies.routing.of[0] is endpoint-attribute-scorer, which reads signals"},
		{"llm-d", "admission.type=token-bucket", "policies.admission is token-bucket"},
		{"llm-d", "priority.type=deadline-aware", "policies.priority is deadline-aware"},
		{"llm-d", "control_plane.flow_control={order: deadline}", "control_plane.flow_control.order is deadline"},
		{"llm-d", "control_plane.flow_control={fairness: round-robin}", "fairness is round-robin"},
		{"llm-d", "priority.type=slo-based|control_plane.flow_control={order: fcfs-ordering-policy}",
			"priority_bands is false"},
		{"vllm", "scheduler.type=sjf", "vllm: policies.scheduler is sjf; vLLM has fcfs and priority-fcfs"},
		{"vllm", "scheduler.type=priority-fcfs", "policies.preemption is last-in"},
		{"dynamo", "", "dynamo: policies.routing is weighted"},
		{"dynamo", "routing.type=random|admission.type=reject-all", "policies.admission is reject-all"},
		{"dynamo", "routing.type=random|control_plane.flow_control={order: fifo}", "control_plane.flow_control is not"},
		{"nomad", "", `unknown target "nomad" (have llm-d, vllm, dynamo)`},
	} {
		var sets []string
		if c.sets != "" {
			sets = strings.Split(c.sets, "|")
		}
		if _, err := Export(c.target, load(t, sets...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: error %v, want %q", c.target, c.sets, err, c.want)
		}
	}
}

// TestQuote: a shell reads a quoted text as it was.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{"a/b-1.0": "a/b-1.0", "": "''", "a b": "'a b'", "it's": `'it'\''s'`,
		"$a": "'$a'", "azAZ09": "azAZ09"} {
		if got := quote(text); got != want {
			t.Errorf("%q is quoted as %s, want %s", text, got, want)
		}
	}
}

// TestNotes: a note is there only if it is about a setting.
func TestNotes(t *testing.T) {
	text, err := Export("llm-d", load(t, "routing={type: weighted, params: {queue-depth: 1}}"))
	if err != nil || strings.Contains(text, "# prefix-affinity") || strings.Contains(text, "# Priorities") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestFlagsOf: all flags of an engine without settings, and of one with nearly all.
func TestFlagsOf(t *testing.T) {
	all := &cluster.Deployment{}
	e := &all.Engine
	e.TensorParallelSize, e.PipelineParallelSize, e.DataParallelSize, e.EnableExpertParallel = 2, 3, 4, true
	e.MaxNumSeqs, e.MaxNumBatchedTokens, e.EnableChunkedPrefill, e.LongPrefillTokenThreshold = 5, 6, true, 7
	e.AsyncScheduling, e.Preset, e.BlockSize, e.EnablePrefixCaching = true, "vllm-0.19", 8, true
	e.NumGPUBlocksOverride, e.GPUMemoryUtilization, e.Watermark, e.MaxModelLen = 9, 0.5, 0.25, 10
	e.DType, e.Quantization, e.KVCacheDType, e.EnforceEager = "bfloat16", "fp8", "fp8_e4m3", true
	k := &all.Latency.Kernels
	k.FuseAllReduceRMS, k.CUDAGraphMode, k.MaxCUDAGraphCaptureSize = new(true), "FULL", 11
	for _, c := range []struct {
		d    *cluster.Deployment
		want string
	}{
		{&cluster.Deployment{}, "--max-num-seqs 0 --max-num-batched-tokens 0 --no-enable-chunked-prefill " +
			"--no-async-scheduling --block-size 0 --no-enable-prefix-caching --gpu-memory-utilization 0 " +
			"--scheduling-policy fcfs"},
		{all, "--tensor-parallel-size 2 --pipeline-parallel-size 3 --data-parallel-size 4 --enable-expert-parallel " +
			"--max-num-seqs 5 --max-num-batched-tokens 6 --enable-chunked-prefill --long-prefill-token-threshold 7 " +
			"--async-scheduling --no-scheduler-reserve-full-isl --block-size 8 --enable-prefix-caching " +
			"--num-gpu-blocks-override 9 --gpu-memory-utilization 0.5 --watermark 0.25 --max-model-len 10 " +
			"--dtype bfloat16 --quantization fp8 --kv-cache-dtype fp8_e4m3 --enforce-eager --scheduling-policy fcfs " +
			`--compilation-config '{"cudagraph_mode":"FULL","max_cudagraph_capture_size":11,` +
			`"pass_config":{"fuse_allreduce_rms":true}}'`},
	} {
		if got := strings.Join(flagsOf(c.d, "fcfs"), " "); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

// TestReservesByDefault: from vLLM 0.19 on.
func TestReservesByDefault(t *testing.T) {
	for preset, want := range map[string]bool{"": false, "vllm-0.18": false, "vllm-0.19": true, "vllm-0.33": true,
		"vllm-1.0": true, "sglang-0.5": false} {
		if got := isSince(preset, 19); got != want {
			t.Errorf("%q: %v, want %v", preset, got, want)
		}
	}
}
