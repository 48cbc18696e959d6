package attribution

import (
	"fmt"
	"math"
	"strings"

	"blis/pkg/hardware"
)

// fasterGPU proposes the GPU with the lowest memory bandwidth that brings the geometric mean of TPOT and fastest
// TPOT to two thirds of the target, or the one with the highest; nil where step times do not depend on the GPU.
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
	need := 1.5 * own.MemoryGBPerS * mean(x.p.losing, func(r *request) float64 {
		fastest := x.fastestTPOT(r)
		return math.Sqrt(fastest*max(fastest, x.tpotMS(r))) / max(1e-9, x.targetTPOT(r))
	})
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

// avoidSlow proposes to filter replicas by their recent TPOT before the present policy routes: those pass whose TPOT is
// below the geometric mean of that of slow replicas and that of their peers, and below 0.9 times the TPOT target.
func (x *proposal) avoidSlow() []Change {
	var peers []float64
	slow, model, limit := map[int32]bool{}, x.deployment().Model, math.Inf(1)
	for _, r := range x.p.losing {
		slow[r.replica] = true
		if target := x.targetTPOT(r); target > 0 {
			limit = min(limit, 0.9*target)
		}
	}
	for _, r := range x.requests {
		if r.replica == missing || slow[r.replica] || x.topology.deploymentOf(r.replica).Model != model {
			continue
		}
		if tpot := x.tpotMS(r); tpot > 0 {
			peers = append(peers, tpot)
		}
	}
	now, _ := x.config("policies.routing").(map[string]any)
	filter, _ := now["filter"].(string)
	if len(peers) == 0 || now == nil || strings.Contains(filter, "recent_tpot_ms") {
		return nil
	}
	own := median(peers)
	factor := mean(x.p.losing, func(r *request) float64 { return r.evidence.slower })
	limit = math.Round(10*min(limit, own*math.Sqrt(factor))) / 10
	if limit <= own {
		return nil
	}
	return []Change{x.set("policies.routing", map[string]any{"type": "filter", "use": now,
		"filter": fmt.Sprintf("replica.recent_tpot_ms < %g", limit)})}
}
