package cluster

import (
	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// DataParallel says how the DataParallelSize ranks of a server run. Each rank is an engine core with its own queue,
// batches and KV cache. Those of a model with experts run their steps together and wait for the slowest one
// (DPEngineCoreProc in vllm/v1/engine/core.py, v0.33.0); those of a dense model are independent.
type DataParallel struct {
	// MergeDataParallelRanks simulates the ranks of a server as one engine with the batch slots, token budget and
	// blocks of all, as if requests spread evenly over them. A sequence is limited to the budget of one rank in a step
	// and to the blocks of one. It is a simplification of the simulator, not a setting of vLLM.
	MergeDataParallelRanks bool `yaml:"merge_data_parallel_ranks" json:"merge_data_parallel_ranks,omitempty"`
	// DataParallelExternalLB makes each rank a candidate of the router. Without it the front end of the server chooses
	// the rank, and the router sees of each server the rank that it would choose.
	DataParallelExternalLB bool `yaml:"data_parallel_external_lb" json:"data_parallel_external_lb,omitempty"`
	// DPSyncInterval is the number of steps after which ranks with experts ask if any has work. Until then those
	// without work run dummy batches. 0 is vLLM's default.
	DPSyncInterval int `yaml:"dp_sync_interval" json:"dp_sync_interval,omitempty"`
}

// Ranks is the number of ranks of a server that are simulated as replicas, 1 without data parallelism or if its ranks
// are merged.
func (p *Parallel) Ranks() int {
	if p.MergeDataParallelRanks {
		return 1
	}
	return p.DataParallelSize
}

// MergedRanks is the number of ranks that are simulated as one engine.
func (p *Parallel) MergedRanks() int { return p.DataParallelSize / p.Ranks() }

// SeparateRanks reports whether the ranks of a server are simulated as replicas.
func (p *Parallel) SeparateRanks() bool { return p.Ranks() > 1 }

// Lockstep reports whether the ranks of a server wait for each other in each step.
func (d *Deployment) Lockstep() bool { return d.Computed.Lockstep }

// syncInterval is vLLM's default of dp_sync_interval (vllm/config/parallel.py, v0.33.0). v0.19.1 has 32
// (step_counter in vllm/v1/engine/core.py) and no setting.
const (
	syncInterval    = 16
	oldSyncInterval = 32
)

// validate returns an error for the first invalid value.
func (p *DataParallel) validate(path string, size int, errorf strictyaml.Errorf) error {
	settings := []setting{{"data_parallel_external_lb", p.DataParallelExternalLB},
		{"dp_sync_interval", p.DPSyncInterval != 0}}
	if size == 1 {
		settings = append([]setting{{"merge_data_parallel_ranks", p.MergeDataParallelRanks}}, settings...)
		if err := unset(path, "data_parallel_size above 1", errorf, settings...); err != nil {
			return err
		}
	}
	for _, f := range settings {
		if f.set && p.MergeDataParallelRanks {
			return errorf(path+"."+f.name, "must not be set with merge_data_parallel_ranks")
		}
	}
	return strictyaml.Between[int](errorf, path+".")("dp_sync_interval", p.DPSyncInterval, 0, 1<<20)
}

// dataParallel resolves how ranks run, and checks that the rest of the deployment goes with it.
func (c *resolver) dataParallel(d *Deployment, at string, arch *model.Architecture) error {
	e := &d.Engine
	if !e.SeparateRanks() {
		return nil
	}
	d.Computed.Lockstep = arch != nil && arch.Work().ExpertLayers > 0
	size := at + ".engine.data_parallel_size"
	const merge = "; merge_data_parallel_ranks simulates the ranks as one engine"
	switch {
	case arch == nil:
		return c.errorf(size, "must be 1 for a model whose architecture is unknown, since ranks with experts wait for "+
			"each other: set model_config"+merge)
	case d.Architecture != "":
		return c.errorf(size, "above 1 is not supported for a disaggregated deployment"+merge)
	case len(d.KVTiers) > 0:
		return c.errorf(size, "above 1 is not supported with kv_tiers"+merge)
	case d.MaxReplicas > 0:
		return c.errorf(size, "above 1 is not supported with max_replicas"+merge)
	case e.rejects():
		return c.errorf(at+".engine."+e.FrontDoor.rejecting(),
			"is not supported with data_parallel_size above 1, since it counts the requests of all ranks"+merge)
	case e.PipelineParallelSize > 1 && d.Lockstep():
		return c.errorf(at+".engine.pipeline_parallel_size",
			"must be 1 for a model with experts and data_parallel_size above 1, is %d"+merge, e.PipelineParallelSize)
	case e.DPSyncInterval > 0 && !d.Lockstep():
		return c.errorf(at+".engine.dp_sync_interval", "must not be set for a model without experts, whose ranks do "+
			"not wait for each other")
	}
	if d.Lockstep() && e.DPSyncInterval == 0 {
		e.DPSyncInterval = syncInterval
		if d.before("0.20") {
			e.DPSyncInterval = oldSyncInterval
		}
		d.markDerived("engine.dp_sync_interval")
	}
	return nil
}

// validateRanks checks that replicas that are ranks do not fail.
func (c *Config) validateRanks(errorf strictyaml.Errorf) error {
	for i := range c.Deployments {
		if c.Failures != nil && c.Deployments[i].Engine.SeparateRanks() {
			return errorf(deploymentPath(i)+".engine.data_parallel_size", "above 1 is not supported with failures; "+
				"merge_data_parallel_ranks simulates the ranks as one engine")
		}
	}
	return nil
}
