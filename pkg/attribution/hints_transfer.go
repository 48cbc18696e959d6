package attribution

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// morePrefill proposes prefill replicas for the arrivals while the losing requests came, by what was computed then.
func (x *proposal) morePrefill() []Change {
	at := "deployments." + x.deployment().ID + ".prefill.replicas"
	now := max(1, x.number(at))
	arrived, computed := x.duringLoss(func(r *request) bool {
		p := r.prefill
		return p != nil && p.computed != never
	})
	factor := min(4, max(2, 1.5*arrived/max(1, computed)))
	return []Change{x.set(at, math.Ceil(factor*now))}
}

// fasterPrefill proposes the usual token budget for prefill replicas with a small one, else prefill replicas.
func (x *proposal) fasterPrefill() []Change {
	d := x.deployment()
	if few := d.Backpressure != nil && d.Backpressure.MaxWaiting <= fewWaiting; few {
		if changes := x.moreWaiting(); len(changes) > 0 {
			return changes
		}
	}
	if !d.hasShortPrefillSteps() {
		return x.morePrefill()
	}
	return []Change{x.set("deployments."+d.ID+".prefill.engine.max_num_batched_tokens",
		max(usualBudget, d.Engine.MaxNumBatchedTokens))}
}

// fewWaiting requests are few for backpressure to allow at a replica.
const fewWaiting = 2

// usualBudget is the default of max_num_batched_tokens.
const usualBudget = 2048

// hasShortPrefillSteps reports whether prefill replicas compute few tokens in a step.
func (d *deployment) hasShortPrefillSteps() bool {
	return d.Prefill != nil && d.Prefill.Engine.MaxNumBatchedTokens > 0 &&
		d.Prefill.Engine.MaxNumBatchedTokens <= smallBudget
}

// prefillSteps says how small the steps of the prefill replicas are, "" where they are not.
func (a *Analyzer) prefillSteps(p *Pattern) string {
	if len(p.losing) == 0 || !a.deploymentFor(p.losing[0]).hasShortPrefillSteps() {
		return ""
	}
	return fmt.Sprintf(", which computes at most %d tokens in a step (max_num_batched_tokens)",
		a.deploymentFor(p.losing[0]).Prefill.Engine.MaxNumBatchedTokens)
}

// duringLoss counts the requests that arrived between the first and the last of the losing requests, and those of them
// that got somewhere in that time.
func (x *proposal) duringLoss(got func(*request) bool) (arrived, done float64) {
	arrivals := x.lossArrivals()
	for _, r := range x.requests.all() {
		if r.arrival() < arrivals.from || r.arrival() > arrivals.until {
			continue
		}
		arrived++
		if got(r) && r.prefill.computed <= arrivals.until {
			done++
		}
	}
	return arrived, done
}

// lossArrivals is the time from the first to the last arrival of a losing request.
func (x *proposal) lossArrivals() (arrivals span) {
	for _, r := range x.p.losing {
		arrivals.add(r.arrival(), r.arrival())
	}
	return arrivals
}

// disaggregate proposes that prefill replicas compute prompts as by default.
func (x *proposal) disaggregate() []Change {
	at := "deployments." + x.deployment().ID + ".decider"
	if x.config(at+".type") == "prefix-based" {
		return []Change{x.set(at+".type", "always")}
	}
	return []Change{x.set(at, map[string]any{"type": "prefix-based"})}
}

// waitThere helps where backpressure holds requests back.
var waitThere = remedy{"let more requests wait at the replicas that decode (backpressure)", (*proposal).moreWaiting}

// moreWaiting proposes no backpressure where it took most of the wait.
func (x *proposal) moreWaiting() []Change {
	at := "deployments." + x.deployment().ID + ".backpressure"
	if x.config(at) == nil || 2*mean(x.p.losing, heldMS) < mean(x.p.losing, ttftMS) {
		return nil
	}
	return []Change{x.set(at+".max_waiting", 16*max(1, x.number(at+".max_waiting")))}
}

// neverDisaggregate proposes that the replicas that decode compute the prompts, too.
func (x *proposal) neverDisaggregate() []Change {
	return []Change{x.set("deployments."+x.deployment().ID+".decider.type", "never")}
}

// fasterTransfer proposes links that move the blocks of a request in a tenth of the TTFT target.
func (x *proposal) fasterTransfer() (changes []Change) {
	factor := max(4, mean(x.p.losing, transferMS)/(shareOfTarget*x.ttftTarget()))
	for _, field := range []string{"out_gb_per_s", "in_gb_per_s"} {
		at := "deployments." + x.deployment().ID + ".transfer." + field
		if now := x.number(at); now > 0 {
			changes = append(changes, x.set(at, math.Min(900, math.Ceil(factor*now))))
		}
	}
	return changes
}

// shorterHop proposes a hop between the pools of a tenth of the TTFT target.
func (x *proposal) shorterHop() []Change {
	at := "deployments." + x.deployment().ID + ".transfer.hop_us"
	now, most := x.number(at), math.Round(shareOfTarget*1000*x.ttftTarget())
	if now <= most {
		return nil // the time is that of alpha
	}
	return []Change{x.set(at, most)}
}

// usualLeaseS is the default of transfer.lease_s.
const usualLeaseS = 30

// longerLease proposes the usual lease of computed blocks, or four times a longer one.
func (x *proposal) longerLease() []Change {
	at := "deployments." + x.deployment().ID + ".transfer.lease_s"
	now := x.number(at)
	if now < usualLeaseS {
		return []Change{x.set(at, usualLeaseS)}
	}
	return []Change{x.set(at, 4*now)}
}

// fasterTier proposes a link to the tier that loads the blocks of a request in a tenth of the TTFT target.
func (x *proposal) fasterTier() []Change {
	at := "deployments." + x.deployment().ID + ".kv_tiers"
	tiers, _ := x.config(at).([]any)
	factor := max(4, mean(x.p.losing, tierMS)/(shareOfTarget*x.ttftTarget()))
	var to []any
	for _, t := range tiers {
		tier := cloned(t)
		load := cloned(tier["load"])
		load["gb_per_s"] = math.Min(900, math.Ceil(factor*number(load["gb_per_s"])))
		tier["load"] = load
		to = append(to, tier)
	}
	if len(to) == 0 {
		return nil
	}
	return []Change{x.set(at, to)}
}

// addTier proposes a tier in host memory of four times the size of the KV cache, behind PCIe, where there is none.
func (x *proposal) addTier() []Change {
	d := x.deployment()
	bytes := x.number("deployments." + d.ID + ".computed.memory.block_bytes")
	gib := 4 * float64(d.usableBlocks()) * bytes / (1 << 30)
	if len(d.KVTiers) > 0 || d.Prefill != nil || gib < 1 {
		return nil
	}
	link := map[string]any{"gb_per_s": 25.0}
	return []Change{x.set("deployments."+d.ID+".kv_tiers", []any{map[string]any{"tier": "cpu", "gib": math.Ceil(gib),
		"load": link, "store": link}})}
}

// largerTier proposes four times the blocks of the last tier.
func (x *proposal) largerTier() []Change {
	at := "deployments." + x.deployment().ID + ".kv_tiers"
	tiers, _ := x.config(at).([]any)
	if len(tiers) == 0 {
		return nil
	}
	to := slices.Clone(tiers)
	last := cloned(to[len(to)-1])
	for _, size := range []string{"gib", "blocks"} {
		if n := number(last[size]); n > 0 {
			last[size] = 4 * n
		}
	}
	to[len(to)-1] = last
	return []Change{x.set(at, to)}
}

// longerLoads proposes to load only more blocks than the losing requests load on average.
func (x *proposal) longerLoads() []Change {
	d := x.deployment()
	blocks := math.Ceil(mean(x.p.losing, loadedTokens) / float64(max(1, d.Engine.BlockSize)))
	if blocks == 0 {
		return nil
	}
	return []Change{x.set("deployments."+d.ID+".kv_offload.min_load_blocks", blocks+1)}
}

// noTier proposes to have no tier.
func (x *proposal) noTier() []Change {
	return []Change{x.set("deployments."+x.deployment().ID+".kv_tiers", []any{})}
}

// cloned is a copy of a mapping.
func cloned(v any) map[string]any {
	out := map[string]any{}
	old, _ := v.(map[string]any)
	maps.Copy(out, old)
	return out
}

// moreRoomToDecode proposes slots where these stopped the queue for longer than blocks did and blocks are left, else
// what gives requests more blocks. Where most requests miss the TPOT target already, more of them at once are slower
// still: then it proposes replicas.
func (x *proposal) moreRoomToDecode() []Change {
	slow := 0
	for _, r := range x.p.losing {
		if r.verdict.missed&missedTPOT != 0 {
			slow++
		}
	}
	if 2*slow > len(x.p.losing) {
		return x.moreReplicas()
	}
	slots := mean(x.p.losing, func(r *request) float64 { return float64(r.stopped.slots) })
	blocks := mean(x.p.losing, func(r *request) float64 { return float64(r.stopped.blocks) })
	if slots > blocks {
		return x.moreSlots()
	}
	return x.moreBlocks()
}
