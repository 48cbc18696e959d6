// Package cluster is the configuration of a simulated cluster. It reads cluster files, applies
// overrides and fills in what follows from the known models and GPUs.
package cluster

import (
	"cmp"
	"encoding/json"

	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/operators"
	"blis/pkg/policy"
	"blis/pkg/scale"
)

// Config is the configuration of a run in the form of a cluster file.
type Config struct {
	Version      int           `yaml:"version" json:"version"`
	Deployments  []Deployment  `yaml:"deployments" json:"deployments"`
	ControlPlane ControlPlane  `yaml:"control_plane" json:"control_plane"`
	Policies     policy.Bundle `yaml:"policies" json:"policies"`
	// Failures are those of replicas, nil if there are none.
	Failures *Failures `yaml:"failures" json:"failures,omitempty"`
	// Energy makes the metrics have energy; nil does not.
	Energy *Energy `yaml:"energy" json:"energy,omitempty"`
}

// Deployment is a group of identical replicas of one model.
type Deployment struct {
	ID string `yaml:"id" json:"id"`
	// Model is the name that requests ask for. Its architecture is that of the
	// catalog's model of this name or, if set, of ModelConfig: the path of a Hugging
	// Face config.json, relative to the folder of the cluster file, or another name in the catalog.
	Model       string `yaml:"model" json:"model"`
	ModelConfig string `yaml:"model_config" json:"model_config,omitempty"`
	GPU         string `yaml:"gpu" json:"gpu,omitempty"`
	Replicas    int    `yaml:"replicas" json:"replicas"`
	// MinReplicas and MaxReplicas are the bounds of policies.autoscale, which starts with Replicas. Without a
	// maximum the number does not change. The minimum is 1 unless it is set.
	MinReplicas *int `yaml:"min_replicas" json:"min_replicas,omitempty"`
	MaxReplicas int  `yaml:"max_replicas" json:"max_replicas,omitempty"`
	// Cost is the price of its GPUs; nil is that of policies.autoscale if it scales, else none.
	Cost    *scale.Cost `yaml:"cost" json:"cost,omitempty"`
	Engine  Engine      `yaml:"engine" json:"engine"`
	Latency Latency     `yaml:"latency" json:"latency"`
	// KVTiers are the memories below the KV cache of the GPUs, and KVOffload the rules for them.
	KVTiers   []KVTier   `yaml:"kv_tiers" json:"kv_tiers,omitempty"`
	KVOffload *KVOffload `yaml:"kv_offload" json:"kv_offload,omitempty"`
	// Architecture is disaggregated if prompts are computed by replicas of their own, the pool Prefill. The deployment
	// itself is then the decode pool. Decode has what differs there until it is resolved.
	Architecture string      `yaml:"architecture" json:"architecture,omitempty"`
	Prefill      *Pool       `yaml:"prefill" json:"prefill,omitempty"`
	Decode       *Pool       `yaml:"decode" json:"-"`
	Transfer     *PDTransfer `yaml:"transfer" json:"transfer,omitempty"`
	Decider      *Decider    `yaml:"decider" json:"decider,omitempty"`
	StageOrder   string      `yaml:"stage_order" json:"stage_order,omitempty"`
	// Backpressure closes decode replicas to which too many requests are on their way, nil never does.
	Backpressure *Backpressure `yaml:"backpressure" json:"backpressure,omitempty"`
	// Encode are replicas that encode images, audio and video for those of the deployment, nil if these do it.
	Encode *EncodePool `yaml:"encode" json:"encode,omitempty"`
	// Derived lists the derived values among these, nil if there are none.
	Derived *Derived `yaml:"derived" json:"derived,omitempty"`
	// Computed follows from the rest. Files may contain it, since --print-config
	// prints it: it is read as Shown and recomputed.
	Computed *Computed      `yaml:"-" json:"computed,omitempty"`
	Printed  map[string]any `yaml:"computed" json:"-"`
}

// Latency names a latency model and its coefficients, in µs and µs per token. The default model is
// table if there is a table, else linear if there is a beta_us, else the measured coefficients for
// the model on the GPU or, if there are none, operators or, if there are no tables of measured kernels of
// the GPU, roofline.
type Latency struct {
	hardware.Latency `yaml:",inline"`
	// From is a file of coefficients that blis-calibrate wrote, relative to the folder
	// of the cluster file. The deployment uses those for its model, GPU and
	// parallelism. From is empty once they are loaded.
	From string `yaml:"from" json:"from,omitempty"`
	// Operators is a folder aiconfigurator_core/systems with tables of measured kernels, relative to the
	// folder of the cluster file; "" are the built-in ones. Where it is set, operators is the default model
	// even if there are measured coefficients.
	Operators string `yaml:"operators" json:"operators,omitempty"`
	// Kernels are the choices of the server that the operators model knows.
	Kernels Kernels `yaml:"kernels" json:"kernels,omitzero"`
	// Source says where the coefficients come from unless the file itself sets them.
	Source string `yaml:"source" json:"source,omitempty"`
	// Range is the range of measured inputs; nil if unknown.
	Range *hardware.Range `yaml:"range" json:"range,omitempty"`
	// StepFactor multiplies the time of each step; 0 is 1.
	StepFactor float64 `yaml:"step_factor" json:"step_factor,omitempty"`
	Jitter     Jitter  `yaml:"jitter" json:"jitter"`
	// Uncertainty has the intervals of measured coefficients that are used unchanged. It is not written.
	Uncertainty hardware.Intervals `yaml:"-" json:"-"`
}

// Kernels are choices of a server about its kernels, with the names of vLLM's compilation_config where
// it has them. "", 0 and null are the defaults of the engine's version.
type Kernels struct {
	// CUDAGraphMode says what CUDA graphs have: NONE, PIECEWISE, FULL, FULL_DECODE_ONLY or the default,
	// FULL_AND_PIECEWISE. MaxCUDAGraphCaptureSize is the largest number of tokens of a graph.
	CUDAGraphMode           operators.Graphs `yaml:"cudagraph_mode" json:"cudagraph_mode,omitempty"`
	MaxCUDAGraphCaptureSize int              `yaml:"max_cudagraph_capture_size" json:"max_cudagraph_capture_size,omitempty"`
	// FuseAllReduceRMS sums over GPUs and normalizes in one kernel, up to FIAllReduceFusionMaxSizeMB MiB.
	FuseAllReduceRMS           *bool    `yaml:"fuse_allreduce_rms" json:"fuse_allreduce_rms,omitempty"`
	FIAllReduceFusionMaxSizeMB *float64 `yaml:"fi_allreduce_fusion_max_size_mb" json:"fi_allreduce_fusion_max_size_mb,omitempty"`
	// Experts is the format of the experts' kernel as the tables call it, such as w4a8_mxfp4_mxfp8;
	// ExpertDistribution how tokens choose experts.
	Experts            string `yaml:"experts" json:"experts,omitempty"`
	ExpertDistribution string `yaml:"expert_distribution" json:"expert_distribution,omitempty"`
	// Float32MatmulPrecision is vLLM's VLLM_FLOAT32_MATMUL_PRECISION: highest, the default, high or medium.
	Float32MatmulPrecision string `yaml:"float32_matmul_precision" json:"float32_matmul_precision,omitempty"`
}

// Jitter multiplies the time of each step by a lognormal factor of mean 1.
type Jitter struct {
	// CV is the coefficient of variation; 0 disables jitter.
	CV float64 `yaml:"cv" json:"cv"`
}

// UnmarshalYAML decodes a deployment over the defaults.
func (d *Deployment) UnmarshalYAML(decode func(any) error) error {
	type plain Deployment
	*d = Deployment{Replicas: 1, Engine: defaultEngine()}
	return decode((*plain)(d))
}

// Computed are the values for each replica that follow from the model, the GPU
// and the engine. Values that need an unknown model or GPU are missing.
type Computed struct {
	GPUs               int `json:"gpus"`
	ExpertParallelSize int `json:"expert_parallel_size,omitempty"`
	// Lockstep: the data-parallel ranks of a server start each step together and wait for the slowest.
	Lockstep bool `json:"lockstep,omitempty"`
	// ExpertImbalance is absent without enable_eplb.
	ExpertImbalance *ExpertImbalance `json:"expert_imbalance,omitempty"`
	// KVBlocks are the KV blocks of one engine core, vLLM's num_gpu_blocks. KVGroups are the groups of layers
	// that have blocks of their own, in vLLM's order, absent if all layers have full attention. WindowTokens is
	// the size of the window of layers that have one.
	KVBlocks     int             `json:"kv_blocks"`
	KVGroups     []model.KVGroup `json:"kv_groups,omitempty"`
	WindowTokens int             `json:"window_tokens,omitempty"`
	// PipelineLayers are the layers of each pipeline stage, and MaxConcurrentBatches is how many batches vLLM forms
	// before it waits for the oldest one; absent for a single stage.
	PipelineLayers       []int `json:"pipeline_layers,omitempty"`
	MaxConcurrentBatches int   `json:"max_concurrent_batches,omitempty"`
	// Parameters of the text model, in total and those active for a token; the bytes
	// of the weights as stored; the KV bytes of one token in all layers.
	TotalParameters  int64 `json:"total_parameters,omitempty"`
	ActiveParameters int64 `json:"active_parameters,omitempty"`
	WeightBytes      int64 `json:"weight_bytes,omitempty"`
	KVBytesPerToken  int64 `json:"kv_bytes_per_token,omitempty"`
	// KVBlockBytes is the size of a KV block in all layers, 0 if blocks do not move. KVTierBlocks is the number of
	// blocks in the tier of a replica, KVStorageBlocks that in its storage; 0 without.
	KVBlockBytes    int64 `json:"kv_block_bytes,omitempty"`
	KVTierBlocks    int   `json:"kv_tier_blocks,omitempty"`
	KVStorageBlocks int   `json:"kv_storage_blocks,omitempty"`
	// EmbeddingBytes is the size of the embedding of a token that comes from encode replicas, 0 without these.
	EmbeddingBytes int64 `json:"embedding_bytes,omitempty"`
	// FLOPs of one token in all layers: in the attention projections, in the MLPs,
	// and for each token that it attends to.
	AttentionFLOPs     int64 `json:"attention_flops_per_token,omitempty"`
	MLPFLOPs           int64 `json:"mlp_flops_per_token,omitempty"`
	AttentionPairFLOPs int64 `json:"attention_flops_per_pair,omitempty"`
	// Memory is the memory of one GPU, from which KVBlocks follow unless overridden.
	Memory *model.Memory `json:"memory,omitempty"`
	// Roofline is the input of the roofline model.
	Roofline *latency.Replica `json:"roofline,omitempty"`
	// Operators is the input of the operators model.
	Operators *latency.Operators `json:"operators,omitempty"`
	// Power is absent without energy, and if it is unknown.
	Power *ReplicaPower `json:"power,omitempty"`
	// Draft is the input of the roofline of a drafter that is a model of its own. DraftShare is the share of a step
	// that a drafter with one of the model's layers takes.
	Draft      *latency.Replica `json:"draft,omitempty"`
	DraftShare float64          `json:"draft_share,omitempty"`
}

// UsableBlocks returns how many KV blocks requests can hold in each engine core of a replica: all but
// block 0, vLLM's null block (BlockPool.__init__ in vllm/v1/core/block_pool.py).
func (d *Deployment) UsableBlocks() int { return d.Computed.KVBlocks - 1 }

// printed returns k as --print-config prints it and a file has it.
func printed(k *Computed) (values map[string]any) {
	text, err := json.Marshal(k)
	if err = cmp.Or(err, json.Unmarshal(text, &values)); err != nil {
		panic("cluster: " + err.Error()) // numbers and names
	}
	return values
}
