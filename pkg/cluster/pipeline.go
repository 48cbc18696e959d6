package cluster

import (
	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// Pipelining are the rules of pipeline parallelism, which only an engine with several stages has. The version of vLLM
// decides what is not set.
type Pipelining struct {
	// UseV2ModelRunner is vLLM's VLLM_USE_V2_MODEL_RUNNER: with asynchronous scheduling one more batch than stages
	// is formed, and a request gets a token in every batch whose number is that of stages later. It is vLLM's
	// default since 0.31 at the latest. From then on, asynchronous scheduling needs it.
	UseV2ModelRunner *bool `yaml:"use_v2_model_runner" json:"use_v2_model_runner,omitempty"`
	// PipelineEmptyBatches: batches without tokens fill the queue of batches, as since vLLM 0.24 at the latest. Before,
	// the engine waits for the oldest batch when nothing can be scheduled.
	PipelineEmptyBatches *bool `yaml:"pipeline_empty_batches" json:"pipeline_empty_batches,omitempty"`
	// A batch is at the next stage PipelineHopUS + PipelineHopTokenUS for each of its tokens after it has left a
	// stage. The roofline and operators models have them from the GPU; with measured step times they are 0.
	PipelineHopUS      *float64 `yaml:"pipeline_hop_us" json:"pipeline_hop_us,omitempty"`
	PipelineHopTokenUS *float64 `yaml:"pipeline_hop_token_us" json:"pipeline_hop_token_us,omitempty"`
}

// validate returns an error for the first invalid value.
func (p *Pipelining) validate(path string, stages int, errorf strictyaml.Errorf) error {
	if stages == 1 {
		return unset(path, "pipeline_parallel_size above 1", errorf,
			setting{"use_v2_model_runner", p.UseV2ModelRunner != nil},
			setting{"pipeline_empty_batches", p.PipelineEmptyBatches != nil},
			setting{"pipeline_hop_us", p.PipelineHopUS != nil},
			setting{"pipeline_hop_token_us", p.PipelineHopTokenUS != nil})
	}
	between := strictyaml.Between[float64](errorf, path+".")
	for _, f := range []struct {
		name  string
		value *float64
	}{{"pipeline_hop_us", p.PipelineHopUS}, {"pipeline_hop_token_us", p.PipelineHopTokenUS}} {
		if f.value != nil {
			if err := between(f.name, *f.value, 0, maxLatencyUS); err != nil {
				return err
			}
		}
	}
	return nil
}

// pipeline checks whether several stages go with the rest of a deployment, and fills in what the version decides.
func (c *resolver) pipeline(d *Deployment, at string, arch *model.Architecture) error {
	e := &d.Engine
	stages := e.PipelineParallelSize
	if stages == 1 {
		return nil
	}
	at += ".engine."
	switch {
	case len(d.KVTiers) > 0:
		return c.errorf(at+"pipeline_parallel_size", "must be 1 with kv_tiers, is %d", stages)
	case d.Architecture != "": // a pool, too
		return c.errorf(at+"pipeline_parallel_size", "must be 1 in a disaggregated deployment, is %d", stages)
	case e.SpeculativeConfig != nil:
		return c.errorf(at+"pipeline_parallel_size", "must be 1 with speculative_config, is %d", stages)
	}
	if e.UseV2ModelRunner == nil {
		e.UseV2ModelRunner = new(!d.before("0.31"))
		d.markDerived("engine.use_v2_model_runner")
	}
	if !*e.UseV2ModelRunner && e.AsyncScheduling && !d.before("0.31") {
		return c.errorf(at+"use_v2_model_runner", "must be true with async_scheduling and pipeline_parallel_size "+
			"above 1: without it, vLLM 0.31 and later have no asynchronous scheduling")
	}
	if e.PipelineEmptyBatches == nil {
		e.PipelineEmptyBatches = new(!d.before("0.24"))
		d.markDerived("engine.pipeline_empty_batches")
	}
	layers := stages // an unknown model has stages of equal times
	if arch != nil {
		layers = arch.Work().Layers
	}
	d.Computed.PipelineLayers, d.Computed.MaxConcurrentBatches = partition(layers, stages), e.concurrentBatches()
	return nil
}

// partition divides layers into stages as vLLM does (get_pp_indices in vllm/distributed/utils.py, 0.33): what is left
// goes to the stages before the last one, the later ones first.
func partition(layers, stages int) []int {
	list := make([]int, stages)
	for i := range list {
		if list[i] = layers / stages; i >= stages-1-layers%stages && i < stages-1 {
			list[i]++
		}
	}
	return list
}

// concurrentBatches is vLLM's max_concurrent_batches (VllmConfig in vllm/config/vllm.py, 0.24 to 0.33) for an
// engine with several stages.
func (e *Engine) concurrentBatches() int {
	if e.AsyncScheduling && *e.UseV2ModelRunner {
		return e.PipelineParallelSize + 1
	}
	return e.PipelineParallelSize
}

// BatchCadence is how many batches lie between two tokens of a request at least, with asynchronous scheduling.
func (e *Engine) BatchCadence() int {
	if *e.UseV2ModelRunner {
		return e.PipelineParallelSize
	}
	return 1
}

// stageTensors is how many vectors of the hidden size a token has between two stages: hidden_states and residual
// (IntermediateTensors of vllm/model_executor/models/llama.py, 0.33).
const stageTensors = 2

// hops sets the times between stages that are not set.
func (c *resolver) hops(d *Deployment, arch *model.Architecture, gpu *hardware.GPU) {
	e := &d.Engine
	if e.PipelineParallelSize == 1 {
		return
	}
	var us, perToken float64
	if (d.Latency.Model == "roofline" || d.Latency.Model == "operators") && arch != nil && gpu != nil {
		us = gpu.Efficiency.CollectiveUS
		perToken = latency.VectorUS(arch.Work().Hidden*stageTensors, gpu.LinkBandwidth()*gpu.Efficiency.Link)
	}
	for _, f := range []struct {
		name  string
		value **float64
		us    float64
	}{{"pipeline_hop_us", &e.PipelineHopUS, us}, {"pipeline_hop_token_us", &e.PipelineHopTokenUS, perToken}} {
		if *f.value == nil {
			*f.value = new(f.us)
			d.markDerived("engine." + f.name)
		}
	}
}
