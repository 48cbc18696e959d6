package model

import (
	"fmt"
	"math"
)

// MemoryPlan describes what must fit into the memory of each GPU of a replica.
type MemoryPlan struct {
	Work Work
	// Layers are the model's KVLayers.
	Layers []KVLayers
	// GPUMemory is the memory of one GPU in bytes, of which the server uses the fraction Utilization.
	GPUMemory   int64
	Utilization float64
	// The replica has TP·PP·DP GPUs.
	TP, PP, DP int
	BlockSize  int
	// GroupRatio: see KVPlan.
	GroupRatio float64
	// CachedStates: prefix caching also keeps recurrent states, whose blocks have a multiple of StateAlignment
	// tokens. MaxModelLen is the most tokens of a sequence.
	CachedStates                bool
	StateAlignment, MaxModelLen int
	// MaxNumSeqs and MaxNumBatchedTokens limit a step of one engine core.
	MaxNumSeqs, MaxNumBatchedTokens int
}

// Memory is the memory use, in bytes, of the GPU that holds most: Usable = Weights + Activations +
// Runtime + Communication + KVCache.
type Memory struct {
	GPU         int64   `json:"gpu_bytes"`
	Utilization float64 `json:"utilization"`
	Usable      int64   `json:"usable_bytes"`
	Weights     int64   `json:"weight_bytes"`
	// Activations is the peak during the largest step.
	Activations int64 `json:"activation_bytes"`
	// Runtime is the memory of CUDA and its libraries, Communication the buffers for exchanges with
	// other GPUs.
	Runtime       int64 `json:"runtime_bytes"`
	Communication int64 `json:"communication_bytes"`
	// KVCache is the rest: negative if the model does not fit.
	KVCache int64 `json:"kv_cache_bytes"`
	// KVCache holds Blocks blocks of BlockBytes.
	BlockBytes int64 `json:"block_bytes"`
	Blocks     int64 `json:"blocks"`
}

// runtimeBytes is a worker's memory outside of PyTorch: 0.16 GiB on an H100 (vllm-project/vllm pull
// request 12126, the log of its memory profiling).
const runtimeBytes = 171798692

// communicationBytes is NCCL's memory for a tensor-parallel group of two and of more GPUs
// (ai-dynamo/aiconfigurator 095f58a, systems/h100_sxm.yaml, misc.nccl_mem).
var communicationBytes = [2]int64{358612992, 411041792}

// Memory computes the memory use.
func (p MemoryPlan) Memory() Memory {
	m := Memory{GPU: p.GPUMemory, Utilization: p.Utilization,
		Usable:  int64(float64(p.GPUMemory) * p.Utilization),
		Weights: p.weights(), Activations: p.activations(), Runtime: runtimeBytes, BlockBytes: p.KVPlan().BlockBytes}
	switch {
	case p.TP == 2:
		m.Communication = communicationBytes[0]
	case p.TP > 2:
		m.Communication = communicationBytes[1]
	}
	m.KVCache = m.Usable - m.Weights - m.Activations - m.Runtime - m.Communication
	m.Blocks = max(0, m.KVCache) / m.BlockBytes
	return m
}

// stage returns the largest pipeline stage's part of bytes that are spread over all layers.
func (p MemoryPlan) stage(bytes int64) int64 {
	layers := int64(p.Work.Layers)
	perStage := (layers + int64(p.PP) - 1) / int64(p.PP)
	return int64(math.Ceil(float64(bytes) * float64(perStage) / float64(layers)))
}

// weights returns the bytes of one GPU: tensor parallelism divides all weights, and the experts are
// also divided over the data-parallel GPUs.
func (p MemoryPlan) weights() int64 {
	w := &p.Work
	tp := int64(p.TP)
	experts := int64(w.ExpertLayers) * int64(w.Experts) * w.Expert.Bytes
	ends := w.Head.Bytes + w.Embedding.Bytes
	if p.PP > 1 { // they are on the first and the last stage
		ends = max(w.Head.Bytes, w.Embedding.Bytes)
	}
	return p.stage(w.Dense.Bytes)/tp + p.stage(experts)/(tp*int64(p.DP)) + ends/tp
}

// activations returns the peak of PyTorch's memory in the largest step. For each token it counts,
// in 16 bits, four vectors of the hidden width (input, residual, norm, output) and one of the width
// of a layer's products; for each sequence the logits, once in 16 and twice in 32 bits. Llama-3-8B
// with 8192 tokens and 256 sequences takes 1.26 GiB (vllm-project/vllm pull request 10511); this
// formula gives 1.37.
func (p MemoryPlan) activations() int64 {
	w := &p.Work
	hidden := int64(w.Hidden)
	products := w.Dense.Params / int64(w.Layers) / hidden
	if w.ExpertLayers > 0 {
		products += int64(w.ExpertsPerToken) * w.Expert.Params / hidden
	}
	tokens := float64(p.MaxNumBatchedTokens) * 2 * float64(4*hidden+products/int64(p.TP))
	logits := float64(p.MaxNumSeqs) * float64(w.Head.Params/hidden) * (2 + 4 + 4)
	return int64(min(tokens+logits, maxBytes))
}

// maxBytes exceeds any memory, and sums of it do not overflow.
const maxBytes = 1 << 60

// String formats the sum in GiB.
func (m Memory) String() string {
	gib := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/(1<<30)) }
	return fmt.Sprintf(
		"%s GiB · %g = %s usable − %s weights − %s activations − %s runtime − %s communication = %s GiB for KV blocks",
		gib(m.GPU), m.Utilization, gib(m.Usable), gib(m.Weights), gib(m.Activations), gib(m.Runtime),
		gib(m.Communication), gib(m.KVCache))
}
