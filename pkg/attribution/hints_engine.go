package attribution

import (
	"math"

	"blis/pkg/stream"
)

// powerOf2 is the least power of 2 that is not below a number.
func powerOf2(n float64) int64 { return int64(math.Exp2(math.Ceil(math.Log2(max(1, n))))) }

// moreSlots proposes as many batch slots as requests were at the replica, as far as its blocks allow.
func (x *proposal) moreSlots() []Change {
	most := 0.0
	for _, r := range x.p.losing {
		most = max(most, float64(r.contention.resident))
	}
	slots := float64(x.deployment().slots())
	if held := mean(x.p.losing, kvShare); held > 0 {
		most = min(most*1.25, 0.9*slots/held)
	}
	to := min(1024, powerOf2(max(most, 2*slots)))
	changes := []Change{x.engine(x.deployment().slotLimit(), to)}
	if x.deployment().Engine.MaxNumActiveSeqs > 0 && float64(x.deployment().Engine.MaxNumSeqs) < float64(to) {
		changes = append(changes, x.engine("max_num_seqs", to))
	}
	if x.deployment().Engine.MaxNumBatchedTokens < to {
		changes = append(changes, x.engine("max_num_batched_tokens", to))
	}
	return changes
}

// fewerSlots proposes as many batch slots as meet the TPOT target, at an even rate of prompts, with a tenth to spare,
// where requests may wait for others to end: TTFT targets are met, and as long as requests take.
func (x *proposal) fewerSlots() []Change {
	steps, known := x.stats.steps[x.deployment().ID]
	patient := x.f.Loss.Missed.TTFT == 0 && mean(x.p.losing, lifetimeMS) <= x.ttftTarget()
	if !known || steps.sequence <= 0 || !patient {
		return nil
	}
	slots := math.Inf(1)
	for _, r := range x.p.losing {
		if target := x.targetTPOT(r); target > 0 && r.replica != missing {
			room := float64(900*target*(1-float64(steps.token*x.stats.prefillRates[r.replica]))) - steps.fixed
			slots = min(slots, math.Floor(room/steps.sequence))
		}
	}
	if slots < minSlots || slots >= float64(x.deployment().slots()) {
		return nil
	}
	return []Change{x.engine(x.deployment().slotLimit(), slots)}
}

// minSlots is the minimum for a hint.
const minSlots = 4

// moreBlocks proposes what gives requests more KV blocks: less watermark, what the memory holds, or replicas.
func (x *proposal) moreBlocks() []Change {
	d := x.deployment()
	at := "deployments." + d.ID + "."
	inMemory, override := x.number(at+"computed.memory.blocks"), x.number(at+"engine.num_gpu_blocks_override")
	used := x.number(at + "engine.gpu_memory_utilization")
	switch {
	case d.Engine.Watermark > 0.05:
		return []Change{x.engine("watermark", 0.01)}
	case override > 0 && inMemory > 1.5*override:
		return []Change{x.engine("num_gpu_blocks_override", inMemory)}
	case used > 0 && used < 0.85:
		return []Change{x.engine("gpu_memory_utilization", 0.9)}
	}
	return x.moreReplicas()
}

// moreBudget proposes the token budget at which a fifth of the longest prefill step does not depend on its tokens.
func (x *proposal) moreBudget() []Change {
	d, to := x.deployment(), int64(2048)
	if d.fixedStepShare() > 0 {
		to = powerOf2(4 * d.Latency.BetaUS[0] / d.Latency.BetaUS[1])
	}
	if d.Engine.MaxNumBatchedTokens == 0 || to <= d.Engine.MaxNumBatchedTokens {
		return nil
	}
	return []Change{x.engine("max_num_batched_tokens", to)}
}

// lessBudget proposes the token budget at which a step with the pattern's requests fits the TPOT target, where replicas
// can then still compute the prompts that come and more requests miss that target than wait too long for a first token.
func (x *proposal) lessBudget() []Change {
	if m := &x.f.Loss.Missed; m.TTFT > m.TPOT {
		return nil
	}
	return x.budgetForTPOT(x.carries)
}

// laterPrompts proposes that budget where replicas then compute fewer prompts than come, if most requests are of other
// classes than those that miss their TPOT target: their prompts wait.
func (x *proposal) laterPrompts() []Change {
	losing, others := map[int32]bool{}, 0
	for _, r := range x.p.losing {
		losing[r.labels.class] = true
	}
	for _, r := range x.requests.all() {
		if !losing[r.labels.class] {
			others++
		}
	}
	if 2*others <= x.requests.len() {
		return nil
	}
	return x.budgetForTPOT(func(int64) bool { return true })
}

// budgetForTPOT proposes the token budget at which a step with the pattern's requests fits the TPOT target, if that is
// a good one.
func (x *proposal) budgetForTPOT(isGood func(int64) bool) (changes []Change) {
	d, target := x.deployment(), 0.0
	for _, r := range x.p.losing {
		target = max(target, x.classes[x.names.list[r.labels.class]].Targets.TPOTMS)
	}
	to := d.Engine.MaxNumBatchedTokens / 4
	if d.fixedStepShare() > 0 && len(d.Latency.BetaUS) > 2 && target > 0 {
		b := d.Latency.BetaUS
		fits := (float64(1000*target) - b[0] - float64(b[2]*mean(x.p.losing, resident))) / b[1]
		to = powerOf2(fits) / 2
	}
	if to = max(to, 128, int64(d.Engine.MaxNumSeqs)); to >= d.Engine.MaxNumBatchedTokens || !isGood(to) {
		return nil
	}
	changes = []Change{x.engine("max_num_batched_tokens", to)}
	if x.config("deployments."+d.ID+".engine.enable_chunked_prefill") == false {
		changes = append([]Change{x.engine("enable_chunked_prefill", true)}, changes...)
	}
	return changes
}

// chunkLongPrompts proposes chunks of a quarter of the budget.
func (x *proposal) chunkLongPrompts() []Change {
	return []Change{x.engine("long_prefill_token_threshold", max(128, x.deployment().Engine.MaxNumBatchedTokens/4))}
}

// longerLimits proposes limits that hold the longest rejected request.
func (x *proposal) longerLimits() []Change {
	longest, reasons := int64(0), map[string]int{}
	for _, r := range x.p.losing {
		longest = max(longest, int64(r.tokens.input)+int64(r.tokens.output))
		reasons[x.names.list[r.labels.reason]]++
	}
	var changes []Change
	if reasons[stream.ReasonTooLongForModel] > 0 {
		changes = append(changes, x.engine("max_model_len", (longest+1023)/1024*1024))
		if x.sessions.broken > 0 {
			// Later calls were never issued, and their prompts are longer still.
			changes[0].To = min(powerOf2(float64(2*longest)), max(longest, x.deployment().cacheTokens()))
		}
	}
	if reasons[stream.ReasonTooLongForCache] > 0 {
		changes = append(changes, x.moreBlocks()...)
	}
	id := x.deployment().ID
	if len(changes) > 0 && x.config("deployments."+id+".engine.enable_chunked_prefill") == false ||
		reasons[stream.ReasonTooLongForBudget] > 0 {
		changes = append(changes, x.engine("enable_chunked_prefill", true))
	}
	return changes
}

// moreReplicas proposes replicas for the rate at which requests came together with the losing ones, by the rate at
// which the present ones completed requests until the last of these had ended.
func (x *proposal) moreReplicas() []Change {
	d := x.deployment()
	arrivals := x.lossArrivals()
	served := arrivals
	for _, r := range x.p.losing {
		if at := r.ended(); !at.IsZero() {
			served.add(at, at)
		}
	}
	arrived, completed := 0.0, 0.0
	for _, r := range x.requests.all() {
		if r.replica == missing || x.topology.replicas[r.replica].deployment != d.ID {
			continue
		}
		if r.arrival() >= arrivals.from && r.arrival() <= arrivals.until {
			arrived++
		}
		if x.completed(r) && r.ended() >= served.from && r.ended() <= served.until {
			completed++
		}
	}
	came := arrived / float64(max(1, arrivals.until-arrivals.from))
	left := max(1, completed) / float64(max(1, served.until-served.from))
	factor := min(4, max(1.5, 1.25*came/left))
	return x.replicas(d, math.Ceil(factor*float64(d.Replicas)))
}

// replicas sets the number of replicas of a deployment, and how many it may have if it scales.
func (x *proposal) replicas(d *deployment, n float64) []Change {
	at := "deployments." + d.ID + "."
	if d.MaxReplicas > 0 {
		return []Change{x.set(at+"max_replicas", max(n, 2*float64(d.MaxReplicas))),
			x.set(at+"replicas", max(n, float64(d.MaxReplicas)))}
	}
	return []Change{x.set(at+"replicas", n)}
}
