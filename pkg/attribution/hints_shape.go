package attribution

import "math"

// Remedies that use the GPUs of a cluster in another way.

// shardOtherwise helps where replicas use their GPUs badly.
var shardOtherwise = remedy{"use the same GPUs in another way (tensor_parallel_size, pipeline_parallel_size, replicas)",
	(*proposal).reshard}

// reshard proposes tensor parallelism instead of pipeline stages; without these half as many GPUs for each replica and
// twice as many replicas.
func (x *proposal) reshard() []Change {
	d := x.deployment()
	if d.Engine.PipelineParallel > 1 {
		return x.moreParallel()
	}
	at := "deployments." + d.ID + "."
	now := x.number(at + "engine.tensor_parallel_size")
	if now < 2 || d.scales() || d.Prefill != nil {
		return nil
	}
	return []Change{x.set(at+"engine.tensor_parallel_size", now/2), x.set(at+"replicas", float64(2*d.Replicas))}
}

// moreOrOtherReplicas proposes tensor parallelism instead of pipeline stages; without these replicas.
func (x *proposal) moreOrOtherReplicas() []Change {
	if x.deployment().Engine.PipelineParallel > 1 {
		return x.reshard()
	}
	return x.moreReplicas()
}

// moveReplicas helps where another deployment has replicas to spare.
var moveReplicas = remedy{"move replicas from a deployment that has some to spare", (*proposal).replicasFromOthers}

// replicasFromOthers proposes to give half of the replicas that another deployment of the same GPU may spare to that of
// the losing requests. It may spare what is not needed for the requests that it has, at most two thirds.
func (x *proposal) replicasFromOthers() []Change {
	d, best, spare := x.deployment(), (*deployment)(nil), 0.0
	rows := x.f.Deployments
	for i := range x.topology.Deployments {
		o := &x.topology.Deployments[i]
		if o.ID == d.ID || o.GPU != d.GPU || o.gpus() > d.gpus() || o.scales() || d.scales() || o.Prefill != nil ||
			d.Prefill != nil {
			continue
		}
		for k := range rows {
			if rows[k].Name == o.ID && rows[k].LossRate() < 0.02 && rows[k].Judged > 0 {
				if free := float64(o.Replicas-1) * 2 / 3; free > spare {
					best, spare = o, free
				}
			}
		}
	}
	if best == nil {
		return nil
	}
	each := float64(d.gpus()) / float64(best.gpus()) // replicas of the other one for one more
	more := math.Max(1, math.Round(spare/each/2))
	left := float64(best.Replicas) - math.Ceil(more*each)
	if left < 1 {
		return nil
	}
	return []Change{x.set("deployments."+d.ID+".replicas", float64(d.Replicas)+more),
		x.set("deployments."+best.ID+".replicas", left)}
}

// movePool helps where the other pool of a disaggregated deployment has replicas to spare.
var movePool = remedy{"move replicas from the other pool of the deployment", (*proposal).replicasFromPool}

// idlePool is the share of the time in which a pool with replicas to spare computes at most.
const idlePool = 0.5

// replicasFromPool proposes to move as many replicas from the prefill pool as it does not need, where it computes at
// most half of the time, if requests wait for room to decode; else half of those that decode, where these are not full.
func (x *proposal) replicasFromPool() []Change {
	d := x.deployment()
	if d.Prefill == nil || d.scales() || len(x.p.losing) == 0 {
		return nil
	}
	at := "deployments." + d.ID + "."
	busy, n := x.prefillBusy(x.p.losing[0]), float64(d.Prefill.Replicas)
	if x.p.Condition.Name == "prefill_pool_full" {
		more := math.Floor(float64(d.Replicas) / 2)
		if more < 1 || mean(x.p.losing, fewestResident) >= fullQueue {
			return nil
		}
		return []Change{x.set(at+"prefill.replicas", n+more), x.set(at+"replicas", float64(d.Replicas)-more)}
	}
	left := max(1, math.Ceil(float64(n*busy)/idlePool))
	if left >= n {
		return nil
	}
	return []Change{x.set(at+"prefill.replicas", left), x.set(at+"replicas", float64(d.Replicas)+n-left)}
}

// gpus is the number of GPUs of a replica.
func (d *deployment) gpus() int64 {
	return max(1, d.Engine.TensorParallel) * max(1, d.Engine.PipelineParallel)
}
