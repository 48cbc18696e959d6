package cluster

import (
	"blis/pkg/model"
	"blis/pkg/operators"
	"blis/pkg/strictyaml"
)

// EPLB is the load balancer of experts, with vLLM's names (vllm/config/parallel.py, v0.33.0). It places experts, and
// copies of those with most tokens, so that all GPUs have about as many tokens. The loads are assumed to stay as they
// are. Moving experts takes no time: vLLM does so every 3000 steps, while it computes others.
type EPLB struct {
	EnableEPLB bool        `yaml:"enable_eplb" json:"enable_eplb,omitempty"`
	EPLBConfig *EPLBConfig `yaml:"eplb_config" json:"eplb_config,omitempty"`
}

// EPLBConfig has the number of copies of experts, in each layer on all GPUs together, besides one of each.
type EPLBConfig struct {
	NumRedundantExperts int `yaml:"num_redundant_experts" json:"num_redundant_experts"`
}

// redundant is the number of copies of experts besides one of each.
func (e *EPLB) redundant() int {
	if e.EPLBConfig == nil {
		return 0
	}
	return e.EPLBConfig.NumRedundantExperts
}

// ExpertImbalance is the number of tokens that the experts of the busiest GPU compute, divided by the mean of all GPUs:
// without the load balancer and with it.
type ExpertImbalance struct {
	Linear float64 `json:"linear"`
	EPLB   float64 `json:"eplb"`
}

// eplb checks that the balancer goes with the rest of a deployment.
func (c *resolver) eplb(d *Deployment, at string, arch *model.Architecture) error {
	e := &d.Engine
	at += ".engine"
	redundant := at + ".eplb_config.num_redundant_experts"
	if err := strictyaml.Between[int](c.errorf, redundant)("", e.redundant(), 0, maxGPUs); err != nil {
		return err
	}
	if !e.EnableEPLB {
		if e.EPLBConfig != nil {
			return c.errorf(at+".eplb_config", "must not be set without enable_eplb")
		}
		return nil
	}
	gpus := e.TensorParallelSize * e.DataParallelSize
	switch {
	case arch == nil || arch.Work().ExpertLayers == 0:
		return c.errorf(at+".enable_eplb", "needs a model with experts")
	case !e.expertParallel():
		return c.errorf(at+".enable_eplb", "needs enable_expert_parallel")
	case gpus == 1:
		return c.errorf(at+".enable_eplb", "needs tensor or data parallelism")
	}
	experts := arch.Work().Experts
	if (experts+e.redundant())%gpus != 0 {
		return c.errorf(redundant, "must be such that the model's %d experts and "+
			"these can be divided over %d GPUs, is %d", experts, gpus, e.redundant())
	}
	loads := operators.LoadsOf(operators.DistributionOf(d.Latency.Kernels.ExpertDistribution, experts), experts)
	d.Computed.ExpertImbalance = &ExpertImbalance{Linear: loads.Linear(gpus), EPLB: loads.Balanced(gpus, e.redundant())}
	return nil
}
