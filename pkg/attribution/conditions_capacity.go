package attribution

import (
	"fmt"
	"slices"

	"blis/pkg/llmtext"
	"blis/pkg/stream"
)

// Thresholds of conditions about the capacity of replicas.
const (
	longWaitUS     = 100_000
	manyRunning    = 32   // a full cache that holds this many requests is full because of their number
	fullCacheShare = 0.9  // of the blocks
	fullBatchShare = 0.95 // of the batch slots
	idleCacheShare = 0.2  // of the blocks: five times as many requests would fit
)

var unservable = Condition{Name: "unservable", Component: engineComponent, rank: rankMechanism,
	parts: setOf(PartLimits),
	Doc:   "rejected on arrival: too long for every replica, or no deployment serves its model",
	cause: func(p *Pattern) string {
		if models := p.unknownModels(); models != "" {
			return "rejected on arrival: no deployment serves " + models
		}
		return "rejected on arrival by engine limits, before admission"
	},
	Hint: "raise max_model_len or the cache, or send long requests to a deployment that can hold them; deploy every" +
		" model that requests name",
	change: (*proposal).longerLimits,
	holds:  (*Analyzer).unservable}

var serverLimit = Condition{Name: "server_limit", Component: engineComponent, rank: rankCapacity, parts: anyPart,
	Doc: "rejected by the server, which had max_num_queued_reqs requests or prompts of max_num_queued_tokens tokens",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("rejected by the server: %d by max_num_queued_reqs, %d by max_num_queued_tokens",
			p.rejectedBy(stream.ReasonQueuedReqs), p.rejectedBy(stream.ReasonQueuedTokens))
	},
	Hint:       "add replicas, or raise the limits of the server (max_num_queued_reqs, max_num_queued_tokens)",
	change:     (*proposal).moreReplicas,
	isAbsolute: true,
	holds: func(a *Analyzer, r *request) bool {
		return a.isRejectedBy(r, stream.ReasonQueuedReqs) || a.isRejectedBy(r, stream.ReasonQueuedTokens)
	}}

// rejectedBy counts the losing requests that were rejected for a reason.
func (p *Pattern) rejectedBy(reason string) (n int) {
	for _, r := range p.losing {
		if p.run.isRejectedBy(r, reason) {
			n++
		}
	}
	return n
}

func (a *Analyzer) isRejectedBy(r *request, reason string) bool {
	return a.names.list[r.labels.state] == stream.StateRejected && a.names.list[r.labels.reason] == reason
}

// unknownModels names the model without a deployment that most of the losing requests name, "" if most were rejected
// for another reason.
func (p *Pattern) unknownModels() string {
	counts, most := map[int32]int{}, int32(-1)
	for _, r := range p.losing {
		if p.run.names.list[r.labels.reason] != stream.ReasonNoDeployment {
			continue
		}
		counts[r.labels.model]++
		if most < 0 || counts[r.labels.model] > counts[most] {
			most = r.labels.model
		}
	}
	if most < 0 || 2*counts[most] < len(p.losing) {
		return ""
	}
	return llmtext.Short(p.run.names.list[most], maxNameLength)
}

var cacheFull = Condition{Name: "cache_full", Component: cacheComponent, rank: rankCapacity, parts: inQueue,
	Doc: "waited at least 100 ms for a batch while fewer than 32 running requests held at least 90 % of its" +
		" replica's KV blocks, or of those below the watermark: the engine had too few in most of the wait, by means" +
		" where that is not recorded; no queue was much shorter, or replicas of the same model have at least twice as" +
		" many blocks",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("waited for a batch while %s running requests held %s of the KV blocks (%s)",
			p.mean(running), blocksHeld(p)+p.watermark(), p.stoppedText(func(s stopped) int64 { return s.blocks }))
	},
	Hint:   "add cache (gpu_memory_utilization, num_gpu_blocks_override, more replicas), or admit fewer at once",
	change: (*proposal).moreBlocks,
	others: append([]remedy{{"store weights in 8 bits (quantization): more memory is left for blocks",
		(*proposal).fewerBitsForBlocks}}, shorterQueues...),
	isAbsolute: true,
	took:       func(_ *Analyzer, r *request) taken { return taken{before: float64(r.stopped.blocks)} },
	holds: func(a *Analyzer, r *request) bool {
		waited := r.waitedLong() && (!r.longerQueue() || a.peersHaveTwice(r, (*deployment).usableBlocks))
		return waited && a.blocksFull(r) && r.contention.running < manyRunning
	}}

var batchSlotsFull = Condition{Name: "batch_slots_full",
	Component: engineComponent, rank: rankCapacity, parts: inQueue,
	Doc: "waited at least 100 ms for a batch while at least 95 % of the batch slots (max_num_seqs) were taken, but" +
		" less than 20 % of its replica's KV blocks: the engine had no free slot in most of the wait, by means where" +
		" that is not recorded; no queue was much shorter, or replicas of the same model have at least twice as many" +
		" slots",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("waited for a batch while %s requests filled all slots with %s of the KV blocks (%s)",
			p.mean(running), blocksHeld(p), p.stoppedText(func(s stopped) int64 { return s.slots }))
	},
	Hint:       "raise max_num_seqs: the cache has room",
	change:     (*proposal).moreSlots,
	others:     shorterQueues,
	isAbsolute: true,
	took:       func(_ *Analyzer, r *request) taken { return taken{before: float64(r.stopped.slots)} },
	holds: func(a *Analyzer, r *request) bool {
		c := &r.contention
		waited := r.waitedLong() && (!r.longerQueue() || a.peersHaveTwice(r, (*deployment).slots))
		inverted := a.topology.policy("priority") != "constant" && c.ahead.total > 0 &&
			2*c.ahead.lowerPriority >= c.ahead.total
		return waited && a.slotsFull(r) && c.kvShare > 0 && c.kvShare < idleCacheShare && !inverted
	}}

var evicted = Condition{Name: "evicted", Component: cacheComponent, rank: rankMechanism, parts: afterAdmitted,
	Doc: "recomputed at least 256 tokens and 30 % of its prompt that the router expected to be cached, or" +
		" such tokens of others started during its wait (30 % of at least 2000); no queue was much shorter",
	cause: func(p *Pattern) string {
		if mean(p.losing, expectedTokens) < 1 { // the router does not say
			return fmt.Sprintf("recomputed %s of %s prompt tokens that had been computed there before; %s (means)",
				p.mean(recomputedTokens), p.mean(inputTokens), recomputedMeanwhile(p))
		}
		found := min(mean(p.losing, cachedTokens), mean(p.losing, expectedTokens))
		return fmt.Sprintf("%s of %s expected cached tokens found; %s (means)",
			llmtext.Number(found), p.mean(expectedTokens), recomputedMeanwhile(p))
	},
	Hint:   "spread prefixes over fewer replicas each, report evictions to the router (shadow_evictions), or add cache",
	change: (*proposal).moreBlocks,
	others: append([]remedy{{"keep evicted blocks in the memory of the host (kv_tiers)", (*proposal).addTier}},
		shorterQueues...),
	took:  (*Analyzer).recomputing,
	holds: func(a *Analyzer, r *request) bool { return a.lostPrefixes(r) && !a.hasTiers(r) }}

// lostPrefixes reports whether r recomputed much of its prompt that was expected to be there, or waited for others that
// did.
func (a *Analyzer) lostPrefixes(r *request) bool {
	lost := r.contention.recomputed >= minPrefixTokens && r.tokens.cached < r.tokens.expected/2
	expected := r.tokens.expected >= minPrefixTokens || !a.indexSmall(r)
	return expected && !a.cachingOff(r) && (lost || !r.longerQueue()) && (!r.prefixIgnored() || a.keepsSessions) &&
		r.recomputes()
}

// hasTiers reports whether the replica of r has KV tiers.
func (a *Analyzer) hasTiers(r *request) bool {
	return len(a.topology.deploymentOf(r.replica).KVTiers) > 0
}

var prefixCachingOff = Condition{Name: "prefix_caching_off", Component: cacheComponent, rank: rankCapacity,
	parts: afterAdmitted,
	Doc: "on a replica without prefix caching, where at least 30 % of what delayed it was prompt tokens that the" +
		" router knew to be computed there before: of its prompt and the work of others that started during its wait," +
		" if its first token took half of its TTFT target (100 ms without one), or else of the prompts that slowed" +
		" down its decoding; or, where the router did not know that, at least 2000 tokens of others started during" +
		" its wait, most of them of prompts, and no queue was much shorter",
	cause: func(p *Pattern) string {
		recomputed, all := 0.0, 0.0
		for _, r := range p.losing {
			recomputed += float64(r.contention.recomputed)
			all += uncachedTokens(r)
		}
		if recomputed == 0 {
			return fmt.Sprintf("prefix caching is off; waited while %s prompt tokens started (mean); whether prompts"+
				" repeat is not recorded", p.mean(promptsAhead))
		}
		return fmt.Sprintf("prefix caching is off: %s of the tokens of their prompts had been computed there before;"+
			" %s (means)", llmtext.Percent(recomputed/all), recomputedMeanwhile(p))
	},
	Hint:   "set enable_prefix_caching if prompts share prefixes (blis-summarize WORKLOAD says so)",
	change: setEngine("enable_prefix_caching", true),
	holds: func(a *Analyzer, r *request) bool {
		if !a.cachingOff(r) {
			return false
		}
		c := &r.contention
		isUnknown := r.seen().chosen.Replica == missing || r.prefixIgnored() || a.indexSmall(r)
		return a.delayedBy(r, repeated{c.recomputed, c.ahead.recomputed, c.interferingRecomputed}) ||
			isUnknown && r.behindPrompts()
	}}

// repeated are prompt tokens that need not have been computed: those of a request, those among the work that it waited
// behind, and those among the prompts that were computed while it decoded.
type repeated struct{ own, ahead, interfering int64 }

// delayedBy reports whether tokens were much of what delayed r: at least 30 % of its own prompt and the work that
// started during its wait, if its first token took half of its TTFT target (100 ms without one), or else 30 % of the
// prompts that slowed down its decoding.
func (a *Analyzer) delayedBy(r *request, t repeated) bool {
	c, target := &r.contention, int64(1000*a.classes[a.names.list[r.labels.class]].Targets.TTFTMS)
	if target == 0 {
		target = 2 * longWaitUS
	}
	if until := r.firstTokenOrEnd(); until != never && r.enqueued() != never &&
		2*int64(until-r.enqueued()) >= target {
		return 10*(t.own+t.ahead) >= 3*(int64(r.tokens.input-r.tokens.cached)+c.ahead.total)
	}
	return r.isSlowedDown() && 10*t.interfering >= 3*c.interfering
}

// cachingOff reports whether the replica of r has no prefix cache.
func (a *Analyzer) cachingOff(r *request) bool {
	on := a.topology.deploymentOf(r.replica).Engine.PrefixCaching
	return on != nil && !*on
}

// behindPrompts reports whether many tokens of others started while r waited, most of them of prompts.
func (r *request) behindPrompts() bool {
	return !r.longerQueue() && r.evidence.promptsAhead >= manyTokensAhead && 2*r.evidence.promptsAhead >= allAhead(r)
}

// largeBlock tokens are many for a block; fewBlocks are few for a prompt.
const largeBlock, fewBlocks = 128, 4

var blocksTooLarge = Condition{Name: "blocks_too_large", Component: cacheComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "waited for KV blocks, or behind at least 2000 tokens, most of them of prompts, or decoded while the" +
		" replica prefilled at least 500" +
		" for each output token, on a replica with KV blocks of at least 128" +
		" tokens, of which its prompt has less than four; less than half of it was cached; no queue was much shorter",
	cause: func(p *Pattern) string {
		size := func(r *request) float64 { return float64(p.run.topology.blockSize(r.replica)) }
		return fmt.Sprintf("only full blocks of %s tokens are cached: %s of %s prompt tokens found; the replica"+
			" computed %s"+
			" prompt tokens of others meanwhile (means); whether prompts repeat is not recorded", p.mean(size),
			p.mean(cachedTokens), p.mean(inputTokens), p.mean(promptsHere))
	},
	Hint:   "use smaller blocks (block_size) if prompts share prefixes (blis-summarize WORKLOAD says so)",
	change: setEngine("block_size", 16),
	holds: func(a *Analyzer, r *request) bool {
		size, input := a.topology.blockSize(r.replica), int64(r.tokens.input)
		return size >= largeBlock && input < fewBlocks*size && 2*int64(r.tokens.cached) < input && !a.cachingOff(r) &&
			(r.behindPrompts() || r.isSlowedDown() || a.stats.hasStops && r.waitedLong() && r.mostly(r.stopped.blocks))
	}}

var preempted = Condition{Name: "preempted", Component: cacheComponent, rank: rankMechanism, parts: afterAdmitted,
	Doc: "preempted at least once",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("preempted %s times and queued again for %s ms (means)", p.mean(preemptions),
			p.mean(preemptedMS))
	},
	Hint:   "admit less to the cache at once (watermark, max_num_seqs), or add cache",
	change: (*proposal).moreBlocks,
	holds:  when(func(r *request) bool { return r.preemptions > 0 })}

// blocksHeld is the mean share of the KV blocks that running requests held.
func blocksHeld(p *Pattern) string { return llmtext.Percent(min(1, mean(p.losing, kvShare))) }

// watermark says which share of the blocks is kept free, "" where it is small.
func (p *Pattern) watermark() string {
	if len(p.losing) == 0 {
		return ""
	}
	share := p.run.topology.deploymentOf(p.losing[0].replica).Engine.Watermark
	if share < 0.05 {
		return ""
	}
	return fmt.Sprintf(" (watermark %g)", share)
}

// unservableReasons are the reasons of rejections by the limits of engines.
var unservableReasons = []string{stream.ReasonNoDeployment, stream.ReasonTooLongForModel, stream.ReasonTooLongForCache,
	stream.ReasonTooLongForBudget, stream.ReasonNoLoRA, stream.ReasonNoStructuredOutput, stream.ReasonNoEncoder,
	stream.ReasonTooLongForEncoder}

// unservable reports whether r was rejected because no replica can serve it.
func (a *Analyzer) unservable(r *request) bool {
	return slices.Contains(unservableReasons, a.names.list[r.labels.reason])
}

// waitedForBatch reports whether r waited long for a batch, and not because another queue was
// much shorter.
func (r *request) waitedForBatch() bool { return r.waitedLong() && !r.longerQueue() }

// waitedLong reports whether r waited long for a batch.
func (r *request) waitedLong() bool {
	return r.contention.running > 0 && r.leftQueue()-r.enqueued() >= longWaitUS
}

// peersHaveTwice reports whether replicas of the same model have at least twice as much of something as that of r.
func (a *Analyzer) peersHaveTwice(r *request, amount func(*deployment) int64) bool {
	own := a.topology.deploymentOf(r.replica)
	return slices.ContainsFunc(a.topology.Deployments, func(d deployment) bool {
		return d.Model == own.Model && amount(&d) >= max(1, 2*amount(own))
	})
}
