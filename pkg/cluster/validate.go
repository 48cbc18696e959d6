package cluster

import (
	"fmt"

	"blis/pkg/latency"
)

// pathErrorf returns an error about the value at path.
type pathErrorf func(path, format string, args ...any) error

// validate returns an error for the first invalid value, except in engines, which
// are not resolved yet.
func (c *Config) validate(errorf pathErrorf) error {
	if c.Version != 1 {
		return errorf("version", "must be 1, is %d", c.Version)
	}
	if len(c.Deployments) == 0 {
		return errorf("deployments", "must contain at least one deployment")
	}
	seen := map[string]bool{}
	replicas := 0
	for i := range c.Deployments {
		d := &c.Deployments[i]
		path := fmt.Sprintf("deployments[%d]", i)
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
		if replicas += d.Replicas; replicas > maxReplicas {
			return errorf(path+".replicas", "all deployments together can have at most %d replicas", maxReplicas)
		}
	}
	return c.ControlPlane.validate(errorf)
}

const (
	maxReplicas    = 1 << 16
	maxLatencyUS   = 1e12 // eleven days
	maxCacheTokens = 1 << 30
	maxGPUs        = 1 << 12
)

func (d *Deployment) validate(path string, errorf pathErrorf) error {
	if d.Model == "" {
		return errorf(path+".model", "must be set")
	}
	if d.Replicas < 1 || d.Replicas > maxReplicas {
		return errorf(path+".replicas", "must be between 1 and %d, is %d", maxReplicas, d.Replicas)
	}
	if cv := d.Latency.Jitter.CV; !(cv >= 0) || cv > maxCV {
		return errorf(path+".latency.jitter.cv", "must be between 0 and %d, is %g", maxCV, cv)
	}
	return nil
}

func (e *Engine) validate(path string, errorf pathErrorf) error {
	for _, v := range []struct {
		name            string
		value, min, max int
	}{
		{"tensor_parallel_size", e.TensorParallelSize, 1, maxGPUs},
		{"pipeline_parallel_size", e.PipelineParallelSize, 1, maxGPUs},
		{"data_parallel_size", e.DataParallelSize, 1, maxGPUs},
		{"max_num_seqs", e.MaxNumSeqs, 1, maxCacheTokens},
		{"max_num_batched_tokens", e.MaxNumBatchedTokens, 1, maxCacheTokens},
		{"block_size", e.BlockSize, 1, 65536},
		{"num_gpu_blocks_override", e.NumGPUBlocksOverride, 0, maxCacheTokens},
		{"long_prefill_token_threshold", e.LongPrefillTokenThreshold, 0, maxCacheTokens},
		{"chunk_size", e.ChunkSize, 0, maxCacheTokens},
		{"max_num_partial_prefills", e.MaxNumPartialPrefills, 0, maxCacheTokens},
		{"max_model_len", e.MaxModelLen, 0, maxCacheTokens},
	} {
		if v.value < v.min || v.value > v.max {
			return errorf(path+"."+v.name, "must be between %d and %d, is %d", v.min, v.max, v.value)
		}
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
	case e.PreemptionMode != "recompute":
		return errorf(path+".preemption_mode", "must be recompute, is %q", e.PreemptionMode)
	case e.ChunkSize > 0 && e.LongPrefillTokenThreshold > 0 && e.ChunkSize != e.LongPrefillTokenThreshold:
		return errorf(path+".chunk_size",
			"must equal long_prefill_token_threshold, of which it is an alias, %d", e.LongPrefillTokenThreshold)
	}
	tokens := int64(e.NumGPUBlocksOverride) * int64(e.DataParallelSize) * int64(e.BlockSize)
	if tokens > maxCacheTokens {
		return errorf(path+".num_gpu_blocks_override",
			"a cache of %d tokens is too large, at most %d", tokens, maxCacheTokens)
	}
	return nil
}

// maxCV is far beyond realistic noise; its lognormal still has finite sums.
const maxCV = 10

// LatencyModel builds the deployment's latency model, without jitter.
func (d *Deployment) LatencyModel() (latency.Model, error) {
	build, err := latency.Models.Get("latency model", d.Latency.Model)
	if err != nil {
		return nil, err
	}
	k := latency.Coefficients{Alpha: d.Latency.AlphaUS, Beta: d.Latency.BetaUS, Table: d.Latency.Table}
	if d.Computed != nil {
		k.Replica = d.Computed.Roofline
	}
	return build(k)
}
