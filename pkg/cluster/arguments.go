package cluster

import (
	"reflect"
	"slices"
	"strings"
)

// EngineFields are the names of the fields of an engine, most of which are arguments of vllm serve.
func EngineFields() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Engine]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// shortNames are usual short names of fields of an engine.
var shortNames = map[string]string{"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size",
	"dp": "data_parallel_size", "ep": "enable_expert_parallel"}

// UnknownField says where a deployment has what callers try as a field of it.
func (d *Deployment) UnknownField(name string) string {
	if field := shortNames[name]; field != "" {
		name = field
	}
	if slices.Contains(EngineFields(), name) {
		return "write engine: {" + name + ": VALUE}"
	}
	return ""
}

// UnknownField says what to do with arguments of vllm serve that an engine does not have: "" of names
// that are none.
func (e *Engine) UnknownField(name string) string {
	if field := shortNames[name]; field != "" {
		return "write " + field
	}
	plain := strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
	for _, a := range otherArguments {
		for _, of := range strings.Fields(a.names) {
			if plain == of {
				return a.advice
			}
		}
	}
	return ""
}

// otherArguments are arguments of vllm serve (vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py,
// v0.33.0) that are set elsewhere, that change no time in the simulation, or that are not simulated.
var otherArguments = []struct{ names, advice string }{
	{"cudagraph_mode max_cudagraph_capture_size fuse_allreduce_rms fi_allreduce_fusion_max_size_mb",
		"set it in latency.kernels"},
	{"compilation_config cudagraph_capture_sizes cuda_graph_sizes pass_config optimization_level moe_backend " +
		"attention_backend attention_config kernel_config all2all_backend linear_backend",
		"set cudagraph_mode, max_cudagraph_capture_size, fuse_allreduce_rms and experts in latency.kernels"},
	{"scheduling_policy", "set policies.scheduler"},
	{"model served_model_name model_tag", "set model of the deployment"},
	{"hf_overrides hf_config_path config", "set model_config of the deployment to the path of a config.json"},
	{"api_server_count data_parallel_backend data_parallel_rpc_port data_parallel_address " +
		"data_parallel_size_local distributed_executor_backend host port uvicorn_log_level " +
		"disable_log_requests enable_log_requests disable_log_stats trust_remote_code seed tokenizer tokenizer_mode " +
		"tokenizer_revision revision code_revision load_format download_dir stream_interval reasoning_parser " +
		"tool_call_parser enable_auto_tool_choice chat_template generation_config api_key root_path " +
		"enable_prompt_tokens_details max_logprobs safetensors_load_strategy " +
		"prefix_caching_hash_algo otlp_traces_endpoint skip_tokenizer_init",
		"it changes no time in the simulation; remove it"},
	{"data_parallel_hybrid_lb data_parallel_rank data_parallel_start_rank", "set data_parallel_external_lb if a load " +
		"balancer before the server chooses the rank of a request; mixed load balancing is not simulated"},
	{"enable_lora lora_modules", "set max_loras, and the adapter of requests"},
	{"lora_dtype fully_sharded_loras lora_target_modules", "set lora_step_factor, lora_load_us and lora_copy_us to " +
		"those of such adapters, and num_gpu_blocks_override if their slots take another part of the memory"},
	{"limit_mm_per_prompt mm_processor_kwargs media_io_kwargs mm_encoder_tp_mode",
		"set mm_max_tokens_per_item, encoder_token_us and encoder_item_us"},
	{"num_speculative_tokens speculative_model spec_method", "set speculative_config"},
	{"kv_transfer_config cpu_offload_gb kv_offloading_size kv_offloading_backend offload_backend",
		"set kv_tiers and kv_offload, or prefill, decode and transfer, of the deployment"},
	{"decode_context_parallel_size prefill_context_parallel_size enable_dbo " +
		"fully_sharded_loras kv_sharing_fast_prefill mamba_cache_mode enable_sleep_mode scheduler_cls " +
		"prefill_schedule_interval enable_elastic_ep", "it is not simulated"},
}
