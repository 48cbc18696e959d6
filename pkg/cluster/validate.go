package cluster

import (
	"fmt"

	"blis/pkg/latency"
)

// fault makes an error about the value at path.
type fault func(path, format string, args ...any) error

// validate reports the first value that no cluster can have, of all but engines,
// which are not complete yet.
func (c *Config) validate(fault fault) error {
	if c.Version != 1 {
		return fault("version", "must be 1, is %d", c.Version)
	}
	if len(c.Deployments) == 0 {
		return fault("deployments", "must name at least one deployment")
	}
	seen := map[string]bool{}
	replicas := 0
	for i := range c.Deployments {
		d := &c.Deployments[i]
		path := fmt.Sprintf("deployments[%d]", i)
		if d.ID == "" {
			return fault(path+".id", "must be given")
		}
		if seen[d.ID] {
			return fault(path+".id", "%q is taken by an earlier deployment", d.ID)
		}
		seen[d.ID] = true
		if err := d.validate(path, fault); err != nil {
			return err
		}
		if replicas += d.Replicas; replicas > maxReplicas {
			return fault(path+".replicas", "all deployments together can have %d replicas", maxReplicas)
		}
	}
	return c.ControlPlane.validate(fault)
}

const (
	maxReplicas    = 1 << 16
	maxLatencyUS   = 1e12 // eleven days
	maxCacheTokens = 1 << 30
	maxGPUs        = 1 << 12
)

func (d *Deployment) validate(path string, fault fault) error {
	if d.Model == "" {
		return fault(path+".model", "must be given")
	}
	if d.Replicas < 1 || d.Replicas > maxReplicas {
		return fault(path+".replicas", "must be between 1 and %d, is %d", maxReplicas, d.Replicas)
	}
	if cv := d.Latency.Jitter.CV; !(cv >= 0) || cv > maxCV {
		return fault(path+".latency.jitter.cv", "must be between 0 and %d, is %g", maxCV, cv)
	}
	return nil
}

func (e *Engine) validate(path string, fault fault) error {
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
			return fault(path+"."+v.name, "must be between %d and %d, is %d", v.min, v.max, v.value)
		}
	}
	switch {
	case e.GPUs() > maxGPUs:
		return fault(path+".tensor_parallel_size", "a replica of %d GPUs is too large, at most %d", e.GPUs(), maxGPUs)
	case !(e.GPUMemoryUtilization > 0) || e.GPUMemoryUtilization > 1:
		return fault(path+".gpu_memory_utilization", "must be above 0 and at most 1, is %g", e.GPUMemoryUtilization)
	case !(e.Watermark >= 0) || e.Watermark >= 1:
		return fault(path+".watermark", "must be at least 0 and below 1, is %g", e.Watermark)
	case !(e.SwapSpace >= 0):
		return fault(path+".swap_space", "must be at least 0, is %g", e.SwapSpace)
	case e.PreemptionMode != "recompute":
		return fault(path+".preemption_mode", "must be recompute, is %q", e.PreemptionMode)
	case e.ChunkSize > 0 && e.LongPrefillTokenThreshold > 0 && e.ChunkSize != e.LongPrefillTokenThreshold:
		return fault(path+".chunk_size", "is another name for long_prefill_token_threshold, which is %d", e.LongPrefillTokenThreshold)
	}
	if slots := int64(e.NumGPUBlocksOverride) * int64(e.DataParallelSize) * int64(e.BlockSize); slots > maxCacheTokens {
		return fault(path+".num_gpu_blocks_override", "a cache of %d tokens is too large, at most %d", slots, maxCacheTokens)
	}
	return nil
}

// maxCV is far beyond any noise; a lognormal of it still has finite sums.
const maxCV = 10

// LatencyModel makes the deployment's latency model, without its jitter.
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
