package cluster

import (
	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/operators"
)

// memoryPlan returns what must fit into the memory of a GPU.
func memoryPlan(d *Deployment, arch *model.Architecture, gpu *hardware.GPU) model.MemoryPlan {
	e := &d.Engine
	p := model.MemoryPlan{Work: arch.Work(), Layers: arch.KVLayers(), Engine: d.engineMemory(),
		Utilization: e.GPUMemoryUtilization, TP: e.TensorParallelSize, PP: e.PipelineParallelSize,
		DP: e.DataParallelSize, RedundantExperts: e.redundant(), BlockSize: e.BlockSize, GroupRatio: e.KVGroupRatio,
		CachedStates: e.EnablePrefixCaching, StateAlignment: e.stateAlignment(arch), MaxModelLen: e.MaxModelLen,
		MaxNumSeqs: e.MaxNumSeqs, MaxNumBatchedTokens: e.MaxNumBatchedTokens}
	for i := range arch.Layers {
		p.MLPs = append(p.MLPs, arch.Layers[i].MLP)
	}
	if l := &e.LoRA; l.MaxLoras > 0 {
		p.Adapters = model.AdapterSlots{Model: arch, Count: l.MaxLoras, Rank: l.MaxRank,
			ExpertParallel: e.EnableExpertParallel}
	}
	if gpu != nil {
		p.GPUMemory = int64(gpu.MemoryBytes())
		p.Engine.Graphs = d.reservedGraphs(captured(d, gpu))
	}
	return p
}

// engineMemory returns what the engine version takes, from the logs of servers on H100
// (jgchn/llm-d-planner, accuracy: vLLM 0.15.0 to 0.19.0; llm-d/llm-d-benchmark, config_explorer,
// empirical-vllm-memory-results.md). Before 0.17 the sampler sorts all logits, 38.4 bytes for each; then
// Triton finds the largest, 15 bytes (apply_top_k_top_p in vllm/v1/sample/ops/topk_topp_sampler.py, v0.15.1
// and v0.19.1). Buffers of experts are kept by a workspace manager (_allocate_buffers in
// vllm/model_executor/layers/fused_moe/modular_kernel.py, v0.19.1).
func (d *Deployment) engineMemory() model.EngineMemory {
	const hundredth = (1 << 30) / 100 // of a GiB
	m := model.EngineMemory{SamplerBytes: 38.4, Runtime: 13 * hundredth,
		Communication: [2]int64{42 * hundredth, 42 * hundredth}}
	if !d.before("0.17") {
		m.SamplerBytes, m.KeepsExpertBuffers = 15, true
	}
	if !d.before("0.18") {
		m.Runtime, m.Communication = 25*hundredth, [2]int64{182 * hundredth, 192 * hundredth}
	}
	return m
}

// reservedGraphs is the number of CUDA graphs that the engine reserves memory for: those of steps with
// chunks up to the largest size, and those of decode steps up to max_num_seqs. Before 0.21 the memory is taken
// from what gpu_memory_utilization leaves (determine_available_memory in vllm/v1/worker/gpu_worker.py,
// v0.19.1 and v0.24.0 to v0.33.0, whose log names 0.21).
func (d *Deployment) reservedGraphs(largest int64) int {
	mode := d.graphs()
	if d.before("0.21") || mode == operators.NoGraphs {
		return 0
	}
	decode := captureSizes(min(largest, int64(d.Engine.MaxNumSeqs)))
	switch mode {
	case operators.WholeDecodeOnly:
		return decode
	case operators.PiecesOnly:
		return captureSizes(largest)
	}
	return captureSizes(largest) + decode
}

// eagerName names what the latency model ignores of enforce_eager.
func (d *Deployment) eagerName() string {
	if d.before("0.21") || d.Engine.NumGPUBlocksOverride > 0 {
		return "engine.enforce_eager"
	}
	return "engine.enforce_eager, besides more KV blocks,"
}

// captureSizes counts the sizes of CUDA graphs up to the largest.
func captureSizes(largest int64) (n int) {
	for size := latency.GraphSize(1); size <= largest; size = latency.GraphSize(size + 1) {
		n++
	}
	return n
}
