package model

import (
	"fmt"
	"math"
)

// MemoryPlan describes what must fit into the memory of each GPU of a replica.
type MemoryPlan struct {
	Work Work
	// Layers are the model's KVLayers, MLPs those of all its layers.
	Layers   []KVLayers
	MLPs     []MLP
	Engine   EngineMemory
	Adapters AdapterSlots
	// GPUMemory is the memory of one GPU in bytes, of which the server uses the fraction Utilization.
	GPUMemory   int64
	Utilization float64
	// The replica has TP·PP·DP GPUs.
	TP, PP, DP int
	// RedundantExperts are copies of experts in each layer, besides one of each.
	RedundantExperts int
	BlockSize        int
	// GroupRatio: see KVPlan.
	GroupRatio float64
	// CachedStates: prefix caching also keeps recurrent states, whose blocks have a multiple of StateAlignment
	// tokens. MaxModelLen is the most tokens of a sequence.
	CachedStates                bool
	StateAlignment, MaxModelLen int
	// MaxNumSeqs and MaxNumBatchedTokens limit a step of one engine core.
	MaxNumSeqs, MaxNumBatchedTokens int
}

// EngineMemory is what an engine version takes besides weights and cache.
type EngineMemory struct {
	// SamplerBytes is the peak of the sampler for each logit of the first step, which has MaxNumSeqs sequences.
	SamplerBytes float64
	// KeepsExpertBuffers: the buffers of routed experts stay when a layer is done.
	KeepsExpertBuffers bool
	// Runtime is the memory of CUDA and its libraries, Communication that of exchanges between the GPUs of a
	// tensor-parallel group of two and of more.
	Runtime       int64
	Communication [2]int64
	// Graphs is the number of CUDA graphs for which memory is reserved.
	Graphs int
}

// Memory is the memory use, in bytes, of the GPU that holds most: Usable = Weights + Adapters +
// Activations + Runtime + Communication + Graphs + KVCache.
type Memory struct {
	GPU         int64   `json:"gpu_bytes"`
	Utilization float64 `json:"utilization"`
	Usable      int64   `json:"usable_bytes"`
	Weights     int64   `json:"weight_bytes"`
	// Adapters is the memory of slots for LoRA adapters.
	Adapters int64 `json:"adapter_bytes,omitempty"`
	// Activations is the peak during the largest step.
	Activations int64 `json:"activation_bytes"`
	// Runtime, Communication and Graphs: see EngineMemory.
	Runtime       int64 `json:"runtime_bytes"`
	Communication int64 `json:"communication_bytes"`
	Graphs        int64 `json:"graph_bytes"`
	// KVCache is the rest: negative if the model does not fit.
	KVCache int64 `json:"kv_cache_bytes"`
	// KVCache holds Blocks blocks of BlockBytes.
	BlockBytes int64 `json:"block_bytes"`
	Blocks     int64 `json:"blocks"`
}

// Memory computes the memory use.
func (p MemoryPlan) Memory() Memory {
	m := Memory{GPU: p.GPUMemory, Utilization: p.Utilization,
		Usable:  int64(float64(p.GPUMemory) * p.Utilization),
		Weights: p.weights(), Adapters: p.adapters(), Activations: p.activations(), Runtime: p.Engine.Runtime,
		Graphs:     p.graphs(),
		BlockBytes: p.KVPlan().BlockBytes}
	switch {
	case p.TP == 2:
		m.Communication = p.Engine.Communication[0]
	case p.TP > 2:
		m.Communication = p.Engine.Communication[1]
	}
	m.KVCache = m.Usable - m.Weights - m.Adapters - m.Activations - m.Runtime - m.Communication - m.Graphs
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
	experts := int64(w.ExpertLayers) * int64(w.Experts+p.RedundantExperts) * w.Expert.Bytes
	ends := w.Head.Bytes + w.Embedding.Bytes
	if p.PP > 1 { // they are on the first and the last stage
		ends = max(w.Head.Bytes, w.Embedding.Bytes)
	}
	return p.stage(w.Dense.Bytes)/tp + p.stage(experts)/(tp*int64(p.DP)) + ends/tp
}

// adapters returns the bytes of slots for adapters on one GPU.
func (p MemoryPlan) adapters() int64 {
	layers, ends := p.Adapters.bytes(p.TP)
	if p.PP > 1 { // one of the matrices is on the first stage, the other on the last
		ends /= 2
	}
	return p.stage(layers) + ends
}

// activations returns the peak of PyTorch's memory in the largest step. A token of a layer has, in 16 bits,
// four vectors of the hidden width (input, residual, norm, output) and what the MLP holds at once. After the
// last layer, the hidden states remain while the sampler handles the logits. Both are limits of the peak.
func (p MemoryPlan) activations() int64 {
	w := &p.Work
	hidden := int64(w.Hidden)
	dense, routed := p.mlpWidths()
	bytes := func(width int64) float64 { return float64(2 * float64(p.MaxNumBatchedTokens) * float64(width)) }
	layer := bytes(4*hidden + dense + routed)
	sampler := bytes(hidden) +
		float64(float64(p.MaxNumSeqs)*float64(w.Head.Params/hidden)*p.Engine.SamplerBytes)
	if p.Engine.KeepsExpertBuffers {
		sampler += bytes(routed)
	}
	return int64(min(max(layer, sampler), maxBytes))
}

// mlpWidths returns how many numbers of a token the widest MLP holds at once on a GPU: gate, up and their
// product; for routed experts, each with its output.
func (p MemoryPlan) mlpWidths() (dense, routed int64) {
	tp := int64(p.TP)
	for i := range p.MLPs {
		m := &p.MLPs[i]
		dense = max(dense, 3*int64(m.Intermediate)/tp)
		if m.Experts > 0 {
			routed = max(routed, int64(m.ExpertsPerToken)*(3*int64(m.ExpertIntermediate)/tp+int64(p.Work.Hidden)))
		}
	}
	return dense, routed
}

// graphs returns the memory that is reserved for CUDA graphs: 0.16 GiB and 185 KiB for each layer of each
// graph. This is the line through what 23 servers of 21 dense models reserved for 102 graphs each, of 8 to 80
// layers on a GPU; the mean error is 0.10 GiB. Models with experts reserved up to 0.7 GiB more
// (jgchn/llm-d-planner, accuracy/results/v0.19.0).
func (p MemoryPlan) graphs() int64 {
	if p.Engine.Graphs == 0 {
		return 0
	}
	const first, layer = 171 << 20, 185 << 10
	return first + p.stage(int64(p.Engine.Graphs)*int64(p.Work.Layers)*layer)
}

// maxBytes exceeds any memory, and sums of it do not overflow.
const maxBytes = 1 << 60

// String formats the sum in GiB.
func (m Memory) String() string {
	gib := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/(1<<30)) }
	adapters := ""
	if m.Adapters > 0 {
		adapters = fmt.Sprintf(" − %s LoRA slots", gib(m.Adapters))
	}
	return fmt.Sprintf(
		"%s GiB · %g = %s usable − %s weights%s − %s activations − %s runtime − %s communication − %s CUDA graphs = "+
			"%s GiB for KV blocks",
		gib(m.GPU), m.Utilization, gib(m.Usable), gib(m.Weights), adapters, gib(m.Activations), gib(m.Runtime),
		gib(m.Communication), gib(m.Graphs), gib(m.KVCache))
}
