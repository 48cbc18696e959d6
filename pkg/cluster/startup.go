package cluster

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"blis/pkg/model"
)

// Settings with which vLLM does not start are errors. Sources, the same in vLLM 0.15.1 to 0.33.0:
// config/scheduler.py (SchedulerConfig.verify_max_model_len), engine/arg_utils.py
// (_set_default_max_num_seqs_and_batched_tokens_args), config/model.py (verify_with_parallel_config),
// v1/core/kv_cache_utils.py, since 0.33 kv_cache_planning.py (_check_enough_kv_cache_memory), and
// get_supported_kernel_block_sizes of v1/attention/backends.

// batchLimits checks the limits of a batch against each other. Limits that are not set follow those that
// are set, as in vLLM: without chunked prefill a step takes a prompt of max_model_len, and a batch has no
// more sequences than tokens.
func (c *resolver) batchLimits(d *Deployment, at string) error {
	e := &d.Engine
	if d.isDerived("engine.max_num_batched_tokens") && e.MaxModelLen > 0 {
		if !e.EnableChunkedPrefill {
			e.MaxNumBatchedTokens = max(e.MaxNumBatchedTokens, e.MaxModelLen)
		}
		e.MaxNumBatchedTokens = int(min(int64(e.MaxNumBatchedTokens), int64(e.MaxNumSeqs)*int64(e.MaxModelLen)))
	}
	if d.isDerived("engine.max_num_seqs") {
		e.MaxNumSeqs = min(e.MaxNumSeqs, e.MaxNumBatchedTokens)
	}
	threshold := max(e.LongPrefillTokenThreshold, e.ChunkSize)
	switch {
	case !e.EnableChunkedPrefill && e.MaxNumBatchedTokens < e.MaxModelLen:
		return c.errorf(at+".max_num_batched_tokens", "must be at least max_model_len, %d, without chunked prefill, "+
			"is %d: increase it, decrease max_model_len, or enable chunked prefill",
			e.MaxModelLen, e.MaxNumBatchedTokens)
	case e.MaxNumBatchedTokens < e.MaxNumSeqs:
		return c.errorf(at+".max_num_seqs", "must be at most max_num_batched_tokens, %d, is %d",
			e.MaxNumBatchedTokens, e.MaxNumSeqs)
	case e.MaxModelLen > 0 && threshold > e.MaxModelLen:
		c.warnf(d, "engine.long_prefill_token_threshold has no effect: it is above max_model_len, %d, with which "+
			"vLLM 0.28 and newer do not start", e.MaxModelLen)
	}
	return nil
}

// checkBlockSize returns an error if no attention kernel has such blocks; a warning if
// num_gpu_blocks_override is set, so that the memory does not matter. Kernels of MLA on AMD GPUs have
// blocks of all sizes.
func (c *resolver) checkBlockSize(d *Deployment, at string, arch *model.Architecture) error {
	isMLA := func(l model.Layers) bool { return l.Attention.MLA != nil }
	e := &d.Engine
	switch {
	case e.BlockSize%16 == 0 || slices.ContainsFunc(arch.Layers, isMLA):
		return nil
	case e.NumGPUBlocksOverride > 0:
		c.warnf(d, "block_size is %d: vLLM does not start on a GPU unless it is a multiple of 16", e.BlockSize)
		return nil
	}
	return c.errorf(at+".block_size", "must be a multiple of 16, like the blocks of attention kernels, is %d",
		e.BlockSize)
}

// longestRequest returns an error if the KV cache does not hold a request of max_model_len tokens, a
// warning if num_gpu_blocks_override says how large it is. The null block holds nothing; vLLM before 0.31
// starts if only that block is missing, and a request of max_model_len then waits forever.
func (c *resolver) longestRequest(d *Deployment, at string, arch *model.Architecture, p model.MemoryPlan) error {
	e, held := &d.Engine, d.heldBlocks()
	need, have := held(e.MaxModelLen), d.UsableBlocks()
	if need <= have {
		return nil
	}
	if e.NumGPUBlocksOverride > 0 {
		c.warnf(d, "a request of max_model_len %d tokens needs %d blocks, and num_gpu_blocks_override leaves %d: "+
			"vLLM 0.24 and newer do not start; requests that do not fit are rejected", e.MaxModelLen, need, have)
		return nil
	}
	longest := sort.Search(e.MaxModelLen, func(n int) bool { return held(n+1) > have })
	remedy := fmt.Sprintf("decrease max_model_len to at most %d", longest)
	if u := enoughUtilization(p, int64(need+1)); u > 0 {
		remedy += fmt.Sprintf(", increase gpu_memory_utilization to %g", u)
	}
	if tp := enoughTensorParallelism(arch, p, int64(need+1)); tp > 0 {
		remedy += fmt.Sprintf(", set tensor_parallel_size to %d", tp)
	}
	remedy += fewerSlots(d.Computed.Memory)
	return c.errorf(at+".engine.max_model_len", "a request of %d tokens needs %d KV blocks, and there are %d, "+
		"with which vLLM does not start: for each GPU, %v; %s, or set num_gpu_blocks_override",
		e.MaxModelLen, need, have, d.Computed.Memory, remedy)
}

// doesNotFit returns the error for a model that is too large.
func (c *resolver) doesNotFit(d *Deployment, at string, arch *model.Architecture, p model.MemoryPlan,
	m model.Memory) error {
	remedy := "it does not fit with any tensor_parallel_size"
	if tp := enoughTensorParallelism(arch, p, int64(max(minBlocks, d.heldBlocks()(d.Engine.MaxModelLen)+1))); tp > 0 {
		remedy = fmt.Sprintf("it needs tensor_parallel_size %d", tp)
	} else if tp = enoughTensorParallelism(arch, p, minBlocks); tp > 0 {
		remedy = fmt.Sprintf("it needs tensor_parallel_size %d and a smaller max_model_len", tp)
	}
	remedy += fewerSlots(&m)
	return c.errorf(at+".gpu", "%s does not fit into %d x %s: for each GPU, %v, %.2f GiB too little for %d blocks; %s",
		d.Model, d.Engine.GPUs(), d.GPU, m, float64(minBlocks*m.BlockBytes-m.KVCache)/(1<<30), minBlocks,
		remedy)
}

// fewerSlots is what errors suggest where slots for adapters take memory.
func fewerSlots(m *model.Memory) string {
	if m.Adapters == 0 {
		return ""
	}
	return ", decrease max_loras or max_lora_rank"
}

// maxRemedy is the largest tensor parallelism that errors suggest.
const maxRemedy = 256

// enoughTensorParallelism returns the smallest larger tensor parallelism with which this many blocks fit;
// 0 if there is none.
func enoughTensorParallelism(arch *model.Architecture, p model.MemoryPlan, blocks int64) int {
	for p.TP++; p.TP <= maxRemedy; p.TP++ {
		cannotShard := func(l model.Layers) bool { return !canShard(&l.Attention, p.TP) }
		if !slices.ContainsFunc(arch.Layers, cannotShard) && p.Memory().Blocks >= blocks {
			return p.TP
		}
	}
	return 0
}

// enoughUtilization returns the smallest gpu_memory_utilization, in hundredths, with which this many
// blocks fit; 0 if there is none.
func enoughUtilization(p model.MemoryPlan, blocks int64) float64 {
	for percent := math.Floor(p.Utilization*100) + 1; percent <= 100; percent++ {
		if p.Utilization = percent / 100; p.Memory().Blocks >= blocks {
			return p.Utilization
		}
	}
	return 0
}
