package attribution

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"blis/pkg/hardware"
)

// tooSlow is the geometric mean of the TPOT of r and that of the fastest request, over the TPOT that meets its targets.
func (x *proposal) tooSlow(r *request) float64 {
	fastest, target := x.fastestTPOT(r), x.targetTPOT(r)
	if e2e := x.targets(r).E2EMS; target == 0 && r.tokens.output > 1 {
		target = e2e / float64(r.tokens.output-1)
	}
	return math.Sqrt(fastest*max(fastest, x.tpotMS(r))) / max(1e-9, target)
}

// moreParallel proposes as many GPUs for each layer as bring the TPOT to two thirds of the target; those that computed
// other layers first.
func (x *proposal) moreParallel() []Change {
	at := "deployments." + x.deployment().ID + ".engine."
	now, stages := max(1, x.number(at+"tensor_parallel_size")), max(1, x.number(at+"pipeline_parallel_size"))
	if stages > 1 {
		return []Change{x.set(at+"tensor_parallel_size", stages*now), x.set(at+"pipeline_parallel_size", 1.0)}
	}
	over := mean(x.p.losing, x.tooSlow)
	return []Change{x.set(at+"tensor_parallel_size", powerOf2(min(8, max(2*now, 1.5*now*over))))}
}

// captureGraphs proposes CUDA graphs, for as many requests as decoded together.
func (x *proposal) captureGraphs() []Change {
	d := x.deployment()
	if d.Engine.EnforceEager {
		return []Change{x.engine("enforce_eager", false)}
	}
	most := 0.0
	for _, r := range x.p.losing {
		most = max(most, r.contention.concurrent)
	}
	return []Change{x.set("deployments."+d.ID+".latency.kernels.max_cudagraph_capture_size", powerOf2(1.25*most))}
}

// fewerBits proposes to store weights in 8 bits, where they are in 16.
func (x *proposal) fewerBits() []Change {
	d := x.deployment()
	if d.Engine.Quantization != "" || quantized.MatchString(d.Model) {
		return nil
	}
	return []Change{x.engine("quantization", "fp8")}
}

// fewerBitsForBlocks is fewerBits where that leaves more memory for blocks: their number is not set.
func (x *proposal) fewerBitsForBlocks() []Change {
	if x.number("deployments."+x.deployment().ID+".engine.num_gpu_blocks_override") > 0 {
		return nil
	}
	return x.fewerBits()
}

// quantized matches names of models with fewer than 16 bits for a weight.
var quantized = regexp.MustCompile(`(?i)fp8|fp4|int[48]|w[48]a|awq|gptq|gpt-oss|bnb|gguf`)

// fasterGPU proposes the GPU with the lowest memory bandwidth that brings the TPOT to two thirds of the target, or the
// one with the highest; nil where step times do not depend on the GPU.
func (x *proposal) fasterGPU() []Change {
	d := x.deployment()
	catalog, err := hardware.Open()
	if err != nil || d.Latency.Model == "linear" && !x.isDerived(d, "latency.beta_us") {
		return nil
	}
	own, err := catalog.GPU(d.GPU)
	if err != nil {
		return nil // one of the user's own
	}
	need := 1.5 * own.MemoryGBPerS * mean(x.p.losing, x.tooSlow)
	best := own
	for _, g := range catalog.GPUs() {
		isNext := best.MemoryGBPerS < need && g.MemoryGBPerS > best.MemoryGBPerS ||
			g.MemoryGBPerS >= need && g.MemoryGBPerS < best.MemoryGBPerS
		if g.MemoryGiB >= own.MemoryGiB && isNext {
			best = g
		}
	}
	return []Change{x.set("deployments."+d.ID+".gpu", best.ID)}
}

// spareReplicas proposes replicas where the peers of a slow one were full.
func (x *proposal) spareReplicas() []Change {
	if 2*x.p.elsewhere() <= len(x.p.losing) {
		return nil
	}
	return x.moreReplicas()
}

// avoidSlow proposes to filter replicas by their recent TPOT before the present policy routes: those pass whose TPOT is
// below the geometric mean of that of slow replicas and that of their peers, and below 0.9 times the TPOT target if
// their peers are.
func (x *proposal) avoidSlow() []Change {
	var peers []float64
	slow, model, limit := map[int32]bool{}, x.deployment().Model, math.Inf(1)
	for _, r := range x.p.losing {
		slow[r.evidence.slowReplica] = true
		if target := x.targetTPOT(r); target > 0 {
			limit = min(limit, 0.9*target)
		}
	}
	for _, r := range x.requests.all() {
		if r.replica == missing || slow[r.replica] || x.topology.deploymentOf(r.replica).Model != model {
			continue
		}
		if tpot := x.tpotMS(r); tpot > 0 {
			peers = append(peers, tpot)
		}
	}
	now, _ := x.config("policies.routing").(map[string]any)
	filter, _ := now["filter"].(string)
	isFull := 2*x.p.elsewhere() > len(x.p.losing)
	if isFull || len(peers) == 0 || now == nil || strings.Contains(filter, "recent_tpot_ms") {
		return nil
	}
	own := median(peers)
	factor := mean(x.p.losing, func(r *request) float64 { return r.evidence.slower })
	between := own * math.Sqrt(factor)
	if limit > own {
		between = min(between, limit)
	}
	between = math.Round(10*between) / 10
	return []Change{x.set("policies.routing", map[string]any{"type": "filter", "use": now,
		"filter": fmt.Sprintf("replica.recent_tpot_ms < %g", between)})}
}
