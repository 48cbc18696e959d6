package cluster

// Engine is how the replicas are started, with vLLM's own argument names.
type Engine struct {
	// Preset names the defaults of an engine version on the deployment's GPU; values
	// that are set override it. VLLMVersion is informative and compared with the
	// version of measured coefficients.
	Preset      string `yaml:"preset" json:"preset,omitempty"`
	VLLMVersion string `yaml:"vllm_version" json:"vllm_version,omitempty"`
	Parallel    `yaml:",inline"`
	Pipelining  `yaml:",inline"`
	Batching    `yaml:",inline"`
	FrontDoor   `yaml:",inline"`
	Memory      `yaml:",inline"`
	Precision   `yaml:",inline"`
	// EnforceEager launches all kernels one by one, without CUDA graphs. Only the operators model has step times
	// for it. From vLLM 0.21 on, the memory of the graphs is left to KV blocks.
	EnforceEager bool `yaml:"enforce_eager" json:"enforce_eager,omitempty"`
	// SpeculativeConfig is speculative decoding, nil for none.
	SpeculativeConfig *SpeculativeConfig `yaml:"speculative_config" json:"speculative_config,omitempty"`
	LoRA              `yaml:",inline"`
	StructuredOutput  `yaml:",inline"`
	Encoder           `yaml:",inline"`
	// MoE configures models with experts.
	MoE *MoE `yaml:"moe" json:"moe,omitempty"`
}

// Parallel is the parallelism of a server; its product is the number of GPUs.
type Parallel struct {
	TensorParallelSize   int `yaml:"tensor_parallel_size" json:"tensor_parallel_size"`
	PipelineParallelSize int `yaml:"pipeline_parallel_size" json:"pipeline_parallel_size"`
	DataParallelSize     int `yaml:"data_parallel_size" json:"data_parallel_size"`
	DataParallel         `yaml:",inline"`
	// EnableExpertParallel distributes whole experts over the TP·DP GPUs; without it every expert is
	// sharded over all of them. MoE.EnableAllToAll is an alias.
	EnableExpertParallel bool `yaml:"enable_expert_parallel" json:"enable_expert_parallel,omitempty"`
	EPLB                 `yaml:",inline"`
}

// GPUs returns the number of GPUs of a replica.
func (p *Parallel) GPUs() int {
	return p.TensorParallelSize * p.PipelineParallelSize * p.DataParallelSize
}

// Batching limits batches and says when they are formed.
type Batching struct {
	MaxNumSeqs           int  `yaml:"max_num_seqs" json:"max_num_seqs"`
	MaxNumBatchedTokens  int  `yaml:"max_num_batched_tokens" json:"max_num_batched_tokens"`
	EnableChunkedPrefill bool `yaml:"enable_chunked_prefill" json:"enable_chunked_prefill"`
	// LongPrefillTokenThreshold is the maximum of tokens that one request may prefill
	// in a step, 0 unlimited. ChunkSize is an alias.
	LongPrefillTokenThreshold int `yaml:"long_prefill_token_threshold" json:"long_prefill_token_threshold"`
	ChunkSize                 int `yaml:"chunk_size" json:"chunk_size,omitempty"`
	// LongPrefillTokenThresholdLone applies the threshold also to a request that is
	// alone in the replica, as vLLM does before 0.31.
	LongPrefillTokenThresholdLone bool `yaml:"long_prefill_token_threshold_lone" json:"long_prefill_token_threshold_lone"`
	// LongPrefillTokenThresholdAdaptive raises the threshold to an equal share of the
	// token budget for each request that runs or waits. It exists since vLLM 0.31.
	LongPrefillTokenThresholdAdaptive bool `yaml:"long_prefill_token_threshold_adaptive" json:"long_prefill_token_threshold_adaptive"`
	// PrefillScheduleInterval above 1 lets prompts be computed only in a step in this many, while any request decodes
	// and no request is left waiting by such a step. Data-parallel ranks in lockstep count their steps together, other
	// engines since their last step with a part of a prompt (vllm/config/scheduler.py, v0.33.0). 0 is vLLM's default,
	// 1.
	PrefillScheduleInterval int `yaml:"prefill_schedule_interval" json:"prefill_schedule_interval,omitempty"`
	// MaxNumPartialPrefills has no effect: vLLM's V1 engine has no such limit.
	MaxNumPartialPrefills int `yaml:"max_num_partial_prefills" json:"max_num_partial_prefills,omitempty"`
	// AsyncScheduling forms the next batch when a step starts.
	AsyncScheduling bool `yaml:"async_scheduling" json:"async_scheduling"`
	// ReserveFullSequence admits a request only when blocks for all its tokens are
	// free; Watermark is the fraction of all blocks that must then stay free.
	ReserveFullSequence bool    `yaml:"reserve_full_sequence" json:"reserve_full_sequence"`
	Watermark           float64 `yaml:"watermark" json:"watermark"`
	PreemptionMode      string  `yaml:"preemption_mode" json:"preemption_mode"`
	// AfterSelfPreemption says whether the running requests behind one that preempts
	// itself are scheduled in this step: stop or ContinueScheduling, as in vLLM 0.33.
	AfterSelfPreemption string `yaml:"after_self_preemption" json:"after_self_preemption"`
	// IdleVictimSkipsNext does not schedule the request behind one for which a request
	// without tokens in this step, admitted before, was preempted. vLLM up to 0.24 does so.
	IdleVictimSkipsNext bool `yaml:"idle_victim_skips_next" json:"idle_victim_skips_next"`
}

// The values of Batching.AfterSelfPreemption.
const (
	stopScheduling     = "stop"
	ContinueScheduling = "continue"
)

// Memory sizes the KV cache.
type Memory struct {
	BlockSize           int  `yaml:"block_size" json:"block_size"`
	EnablePrefixCaching bool `yaml:"enable_prefix_caching" json:"enable_prefix_caching"`
	// FreeOrder says where freed blocks without a hash go in the queue of free blocks:
	// append or unhashed-first. Hashed ones go to its end.
	FreeOrder string `yaml:"free_order" json:"free_order"`
	// Groups are the rules for models with several KV cache groups.
	Groups `yaml:",inline"`
	// Mamba are the rules for models with recurrent states.
	Mamba `yaml:",inline"`
	// NumGPUBlocksOverride is the number of KV blocks, of which one is the null block;
	// 0 computes it from the GPU's memory, of which the engine uses the fraction
	// GPUMemoryUtilization.
	NumGPUBlocksOverride int     `yaml:"num_gpu_blocks_override" json:"num_gpu_blocks_override,omitempty"`
	GPUMemoryUtilization float64 `yaml:"gpu_memory_utilization" json:"gpu_memory_utilization"`
	// KVBytesPerBlock is the size of a KV block for transfers to and from KV tiers, in all layers and on all GPUs; 0
	// takes it from the model.
	KVBytesPerBlock int64 `yaml:"kv_bytes_per_block" json:"kv_bytes_per_block,omitempty"`
	// SwapSpace has no effect: preempted requests are recomputed.
	SwapSpace float64 `yaml:"swap_space" json:"swap_space,omitempty"`
}

// The values of Memory.FreeOrder.
const (
	appendFreed   = "append"         // to the end, before vLLM 0.24
	UnhashedFirst = "unhashed-first" // to the front
)

// Precision overrides the model's config.json.
type Precision struct {
	// MaxModelLen limits input + output tokens; 0 is the model's own limit or, if the
	// model is unknown, the size of the cache.
	MaxModelLen  int    `yaml:"max_model_len" json:"max_model_len"`
	DType        string `yaml:"dtype" json:"dtype,omitempty"`
	Quantization string `yaml:"quantization" json:"quantization,omitempty"`
	KVCacheDType string `yaml:"kv_cache_dtype" json:"kv_cache_dtype,omitempty"`
}

// MoE configures how experts run.
type MoE struct {
	// EnableAllToAll is an alias of Parallel.EnableExpertParallel.
	EnableAllToAll bool `yaml:"enable_all_to_all" json:"enable_all_to_all"`
	// The kernels have no effect: their speed is part of the GPU's efficiency.
	UseFusedMoEKernel bool   `yaml:"use_fused_moe_kernel" json:"use_fused_moe_kernel,omitempty"`
	MoEKernelBackend  string `yaml:"moe_kernel_backend" json:"moe_kernel_backend,omitempty"`
}

// expertParallel reports whether whole experts are on each GPU.
func (e *Engine) expertParallel() bool {
	return e.EnableExpertParallel || e.MoE != nil && e.MoE.EnableAllToAll
}

// expertParallelName is the path of the setting that expertParallel reports.
func (e *Engine) expertParallelName() string {
	if e.EnableExpertParallel {
		return "engine.enable_expert_parallel"
	}
	return "engine.moe.enable_all_to_all"
}

// defaultEngine returns the defaults of an engine without a preset.
func defaultEngine() Engine {
	return Engine{
		Parallel: Parallel{TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1},
		Batching: Batching{MaxNumSeqs: 256, MaxNumBatchedTokens: 2048, EnableChunkedPrefill: true,
			LongPrefillTokenThresholdLone: true, PreemptionMode: "recompute", AfterSelfPreemption: stopScheduling},
		Memory: Memory{BlockSize: 16, EnablePrefixCaching: true, FreeOrder: appendFreed, Groups: defaultGroups,
			Mamba: defaultMamba, GPUMemoryUtilization: 0.9},
	}
}

// UnmarshalYAML decodes an engine over the defaults.
func (e *Engine) UnmarshalYAML(decode func(any) error) error {
	type plain Engine
	*e = defaultEngine()
	return decode((*plain)(e))
}
