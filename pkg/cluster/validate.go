package cluster

import (
	"cmp"

	"blis/pkg/latency"
	"blis/pkg/strictyaml"
)

// validate returns an error for the first invalid value, except in engines, which
// are not resolved yet.
func (c *Config) validate(errorf strictyaml.Errorf) error {
	switch {
	case c.Version == 0:
		return errorf("version", "must be 1; add the line version: 1")
	case c.Version != 1:
		return errorf("version", "must be 1, is %d", c.Version)
	}
	if len(c.Deployments) == 0 {
		return errorf("deployments", "must contain at least one deployment")
	}
	seen := map[string]bool{}
	replicas := 0
	for i := range c.Deployments {
		d := &c.Deployments[i]
		path := deploymentPath(i)
		if d.ID == "" {
			return errorf(path+".id", "must be set")
		}
		if seen[d.ID] {
			return errorf(path+".id", "%q is already used by an earlier deployment", d.ID)
		}
		seen[d.ID] = true
		if err := d.validate(path, errorf); err != nil {
			return err
		}
		if d.Prefill != nil {
			replicas += d.Prefill.Replicas
		}
		if d.Encode != nil {
			replicas += d.Encode.Replicas
		}
		if replicas += max(d.Replicas, d.MaxReplicas) * max(1, d.Engine.Ranks()); replicas > maxReplicas {
			return errorf(path+".replicas", "all deployments together can have at most %d replicas", maxReplicas)
		}
	}
	return cmp.Or(c.ControlPlane.validate(errorf), c.Energy.validate(errorf))
}

const (
	maxReplicas    = 1 << 16
	maxLatencyUS   = 1e12 // eleven days
	maxCacheTokens = 1 << 30
	maxGPUs        = 1 << 12
)

func (d *Deployment) validate(path string, errorf strictyaml.Errorf) error {
	if d.Model == "" {
		return errorf(path+".model", "must be set")
	}
	return cmp.Or(
		strictyaml.Between[int](errorf, path)(".replicas", d.Replicas, 1, maxReplicas),
		d.validateBounds(path, errorf), d.validatePool(path, errorf), d.Encode.validate(path, errorf),
		d.Latency.validate(path+".latency", errorf))
}

func (e *Engine) validate(path string, errorf strictyaml.Errorf) error {
	between := strictyaml.Between[int](errorf, path+".")
	if err := cmp.Or(
		between("tensor_parallel_size", e.TensorParallelSize, 1, maxGPUs),
		between("pipeline_parallel_size", e.PipelineParallelSize, 1, maxGPUs),
		between("data_parallel_size", e.DataParallelSize, 1, maxGPUs),
		between("max_num_seqs", e.MaxNumSeqs, 1, maxCacheTokens),
		between("max_num_batched_tokens", e.MaxNumBatchedTokens, 1, maxCacheTokens),
		between("block_size", e.BlockSize, 1, 65536),
		between("num_gpu_blocks_override", e.NumGPUBlocksOverride, 0, maxCacheTokens),
		between("long_prefill_token_threshold", e.LongPrefillTokenThreshold, 0, maxCacheTokens),
		between("chunk_size", e.ChunkSize, 0, maxCacheTokens),
		between("prefill_schedule_interval", e.PrefillScheduleInterval, 0, 1<<20),
		between("max_num_partial_prefills", e.MaxNumPartialPrefills, 0, maxCacheTokens),
		between("max_model_len", e.MaxModelLen, 0, maxCacheTokens),
		strictyaml.Between[int64](errorf, path+".")("kv_bytes_per_block", e.KVBytesPerBlock, 0, 1<<40),
	); err != nil {
		return err
	}
	switch {
	case e.GPUs() > maxGPUs:
		return errorf(path+".tensor_parallel_size", "a replica of %d GPUs is too large, at most %d", e.GPUs(), maxGPUs)
	case !(e.GPUMemoryUtilization > 0) || e.GPUMemoryUtilization > 1:
		return errorf(path+".gpu_memory_utilization", "must be above 0 and at most 1, is %g", e.GPUMemoryUtilization)
	case !(e.Watermark >= 0) || e.Watermark >= 1:
		return errorf(path+".watermark", "must be at least 0 and below 1, is %g", e.Watermark)
	case !(e.SwapSpace >= 0):
		return errorf(path+".swap_space", "must be at least 0, is %g", e.SwapSpace)
	case e.FreeOrder != appendFreed && e.FreeOrder != UnhashedFirst:
		return errorf(path+".free_order", "must be %s or %s, is %q", appendFreed, UnhashedFirst, e.FreeOrder)
	case e.AfterSelfPreemption != stopScheduling && e.AfterSelfPreemption != ContinueScheduling:
		return errorf(path+".after_self_preemption", "must be %s or %s, is %q", stopScheduling, ContinueScheduling,
			e.AfterSelfPreemption)
	case e.NumGPUBlocksOverride > 0 && e.NumGPUBlocksOverride < minBlocks:
		return errorf(path+".num_gpu_blocks_override", "must be at least %d, since one is vLLM's null block", minBlocks)
	case e.PreemptionMode != "recompute":
		return errorf(path+".preemption_mode", "must be recompute, is %q", e.PreemptionMode)
	case e.ChunkSize > 0 && e.LongPrefillTokenThreshold > 0 && e.ChunkSize != e.LongPrefillTokenThreshold:
		return errorf(path+".chunk_size",
			"must equal long_prefill_token_threshold, of which it is an alias, %d", e.LongPrefillTokenThreshold)
	}
	if err := e.Mamba.validate(path, errorf); err != nil {
		return err
	}
	if err := e.Groups.validate(path, errorf); err != nil {
		return err
	}
	if err := e.DataParallel.validate(path, e.DataParallelSize, errorf); err != nil {
		return err
	}
	if err := e.Pipelining.validate(path, e.PipelineParallelSize, errorf); err != nil {
		return err
	}
	if err := cmp.Or(e.LoRA.validate(path, errorf), e.Encoder.validate(path, errorf)); err != nil {
		return err
	}
	if err := e.StructuredOutput.validate(path, errorf); err != nil {
		return err
	}
	if err := e.SpeculativeConfig.validate(path+".speculative_config", e, errorf); err != nil {
		return err
	}
	tokens := int64(e.NumGPUBlocksOverride) * int64(e.DataParallelSize) * int64(e.BlockSize)
	if tokens > maxCacheTokens {
		return errorf(path+".num_gpu_blocks_override",
			"a cache of %d tokens is too large, at most %d", tokens, maxCacheTokens)
	}
	return nil
}

// validate checks what changes the times of the model.
func (l *Latency) validate(path string, errorf strictyaml.Errorf) error {
	between := strictyaml.Between[float64](errorf, path)
	if l.StepFactor != 0 {
		if err := between(".step_factor", l.StepFactor, 0.01, 100); err != nil {
			return err
		}
	}
	return between(".jitter.cv", l.Jitter.CV, 0, maxCV)
}

// maxCV is far beyond realistic noise; its lognormal still has finite sums.
const maxCV = 10

// LatencyModel builds the deployment's latency model, without jitter.
func (d *Deployment) LatencyModel() (latency.Model, error) {
	m, err := d.Latency.Build(d.Computed.Roofline, d.Computed.Operators)
	if err != nil {
		return nil, err
	}
	base := latency.Scale(m, cmp.Or(d.Latency.StepFactor, 1))
	m = base
	if l := &d.Engine.LoRA; l.MaxLoras > 0 {
		m = latency.WithAdapters(base, latency.AdapterCost{Factor: *l.StepFactor, EachUS: l.AdapterUS})
	}
	if d.Engine.SpeculativeConfig == nil {
		return m, nil
	}
	drafting, err := d.drafting(base) // drafters have no adapters
	return latency.Drafter(m, drafting), err
}

// setting is a field and whether the file sets it.
type setting struct {
	name string
	set  bool
}

// unset returns an error for the first of these settings that is set, though what they need is not.
func unset(path, needed string, errorf strictyaml.Errorf, settings ...setting) error {
	for _, f := range settings {
		if f.set {
			return errorf(path+"."+f.name, "must not be set without %s", needed)
		}
	}
	return nil
}
