package sim

import (
	"blis/pkg/cluster"
	"blis/pkg/engine"
	"blis/pkg/latency"
	"blis/pkg/policy"
)

// policyEngine is what auto-scaling policies know of the replicas of d, whose steps take the time of m. prefills: d is
// a prefill pool.
func policyEngine(d *cluster.Deployment, m latency.Model, prefills bool) *policy.Engine {
	cfg, cache := engineConfig(d), cacheConfig(d)
	e := &policy.Engine{Stage: policy.WholeRequest, MaxBatchedTokens: int64(cfg.MaxNumBatchedTokens),
		MaxSeqs: int64(cfg.MaxNumSeqs), KVTokens: int64(cache.Blocks) * int64(cache.BlockSize),
		StepUS: func(prefill, decode, context int64) int64 {
			return int64(m.Step(engine.EvenBatch(prefill, decode, context, cfg.Window)))
		}}
	switch {
	case prefills:
		e.Stage = policy.PrefillStage
	case d.Disaggregates():
		e.Stage = policy.DecodeStage
	}
	return e
}
