package attribution

import (
	"fmt"
	"math"

	"blis/pkg/stream"
)

// Thresholds of conditions about what happens in batches.
const (
	fixedShareLimit = 0.4 // of the longest prefill step: a larger budget would compute the same much faster
	smallBudget     = 512 // tokens, where the fixed share of a step is not known
	peakFactor      = 2.5
	waveFactor      = 1.8
)

var targetOutOfReach = Condition{Name: "hardware_too_slow", Component: engineComponent, rank: rankCapacity,
	parts: inDecode,
	Doc: "missed its TPOT target, which even the fastest request of its model missed, or met by less than 10 %; or by" +
		" less than 30 %, and its own TPOT was at most 1.6 times as high",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("TPOT %s ms, %s ms of the fastest request of the model; target %s ms (means)",
			p.mean(p.run.tpotMS), p.mean(p.run.fastestTPOT), p.mean(p.run.targetTPOT))
	},
	Hint:   fasterDecode,
	change: (*proposal).moreParallel,
	others: decodeRemedies,
	holds: func(a *Analyzer, r *request) bool {
		target := a.targetTPOT(r)
		fastest, tpot := a.fastestTPOT(r), a.tpotMS(r)
		return target > 0 && tpot > 0 && (fastest >= 0.9*target || fastest >= 0.7*target && tpot <= 1.6*fastest)
	}}

var slowPrefill = Condition{Name: "slow_prefill", Component: engineComponent, rank: rankCapacity,
	parts: setOf(PartPrefill, PartQueue, PartFrontend),
	Doc: "missed its TTFT target, of which computing its own prompt takes at least 60 % even alone (where step times" +
		" are known), more than the queue took",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("computing %s prompt tokens takes %s ms alone; TTFT %s ms, target %s ms (means)",
			p.mean(uncachedTokens), p.mean(p.run.ownPrefillMS), p.mean(ttftMS),
			p.mean(func(r *request) float64 { return p.run.targets(r).TTFTMS }))
	},
	Hint: "compute prompts faster: more GPUs per replica (tensor_parallel_size), faster GPUs, fewer bits; or send" +
		" shorter prompts, or cache prefixes",
	change: (*proposal).moreParallel,
	others: decodeRemedies,
	holds: func(a *Analyzer, r *request) bool {
		target, own := a.targets(r).TTFTMS, a.ownPrefillMS(r)
		return target > 0 && r.verdict.missed&missedTTFT != 0 && own >= 0.6*target &&
			1000*own >= float64(r.split()[PartQueue])
	}}

// ownPrefillMS is the time to compute the prompt of r alone, in steps as large as they may be; 0 where step times are
// not known.
func (a *Analyzer) ownPrefillMS(r *request) float64 {
	if r.replica == missing {
		return 0
	}
	d := a.topology.deploymentOf(r.replica)
	steps, known := a.stats.steps[d.ID]
	if !known {
		return 0
	}
	tokens, budget := uncachedTokens(r), float64(max(1, d.Engine.MaxNumBatchedTokens))
	return (float64(steps.token*tokens) + float64(steps.fixed*math.Ceil(tokens/budget))) / 1000
}

var decodeTime = Condition{Name: "slow_decode", Component: engineComponent, rank: rankCapacity, parts: inDecode,
	Doc: "missed its E2E target, of which its output takes at least 70 % even at the TPOT of the fastest request of" +
		" its model",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("outputs of %s tokens need %s ms at %s ms a token, the TPOT of the fastest request; the E2E"+
			" target is %s ms (means)", p.mean(outputTokens), p.mean(p.run.bestDecodeMS), p.mean(p.run.fastestTPOT),
			p.mean(func(r *request) float64 { return p.run.targets(r).E2EMS }))
	},
	Hint:   fasterDecode + ", or bound outputs (max_tokens)",
	change: (*proposal).moreParallel,
	others: decodeRemedies,
	holds: func(a *Analyzer, r *request) bool {
		target := a.targets(r).E2EMS
		return target > 0 && a.bestDecodeMS(r) >= 0.7*target
	}}

// fasterDecode is what helps where each output token takes too long whatever the load.
const fasterDecode = "decode faster: more GPUs per replica (tensor_parallel_size), a GPU with more memory bandwidth," +
	" fewer bits (quantization) or a smaller model"

var decodeRemedies = []remedy{
	shardOtherwise,
	{"use a GPU with more memory bandwidth", (*proposal).fasterGPU},
	{"store weights in 8 bits (quantization)", (*proposal).fewerBits},
}

// bestDecodeMS is the time that the output of r takes at the TPOT of the fastest request of its model.
func (a *Analyzer) bestDecodeMS(r *request) float64 {
	return a.fastestTPOT(r) * float64(r.tokens.output-1)
}

// targets are those of the class of r.
func (a *Analyzer) targets(r *request) stream.Targets {
	return a.classes[a.names.list[r.labels.class]].Targets
}

// targetTPOT is the TPOT target of r in ms, 0 without one.
func (a *Analyzer) targetTPOT(r *request) float64 { return a.targets(r).TPOTMS }

// fastestTPOT is the TPOT in ms of the fastest request of the model of r.
func (a *Analyzer) fastestTPOT(r *request) float64 {
	if r.replica == missing {
		return 0
	}
	return a.stats.speeds.fastest[a.topology.deploymentOf(r.replica).Model]
}

var tokenBudgetFull = Condition{Name: "token_budget_full", Component: engineComponent, rank: rankCapacity,
	parts: setOf(PartQueue, PartPrefill, PartPreempted),
	Doc: "waited at least 100 ms for a batch that had free slots and blocks, where at least 40 % of the longest" +
		" prefill step does not depend on its tokens (budgets of at most 512 tokens, where that is not known)",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("waited for the token budget (max_num_batched_tokens) while %s requests ran with %s of"+
			" the KV blocks; %s prompt tokens went ahead (%s)",
			p.mean(running), blocksHeld(p), p.mean(promptsAhead),
			p.stoppedText(func(s stopped) int64 { return s.budget }))
	},
	Hint:       "raise max_num_batched_tokens: steps are short, and most of their time does not depend on their tokens",
	change:     (*proposal).moreBudget,
	isAbsolute: true,
	took:       func(_ *Analyzer, r *request) taken { return taken{before: float64(r.stopped.budget)} },
	holds: func(a *Analyzer, r *request) bool {
		d := a.topology.deploymentOf(r.replica)
		share, budget := d.fixedStepShare(), d.Engine.MaxNumBatchedTokens
		small := share >= fixedShareLimit || share == 0 && budget > 0 && budget <= smallBudget
		return small && r.waitedForBatch() && !a.slotsFull(r) && !a.blocksFull(r)
	}}

var eagerSteps = Condition{Name: "eager_steps", Component: engineComponent, rank: rankCapacity, parts: inDecode,
	Doc: "missed its TPOT target, or an E2E target by decoding, where kernels are launched one by one, without CUDA" +
		" graphs: enforce_eager, or more requests decode than the largest graph has (max_cudagraph_capture_size);" +
		" known for step times of the operators model",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("TPOT %s ms with %s requests in the batch (means), without CUDA"+
			" graphs", p.mean(p.run.tpotMS),
			p.mean(concurrent))
	},
	Hint:       "use CUDA graphs (enforce_eager: false, max_cudagraph_capture_size); they take memory from KV blocks",
	change:     (*proposal).captureGraphs,
	isAbsolute: true,
	isWrong:    true,
	holds: func(a *Analyzer, r *request) bool {
		return a.isEager(r) && r.verdict.missed&(missedTPOT|missedE2E) != 0
	}}

func concurrent(r *request) float64 { return r.contention.concurrent }

// isEager reports whether most of what r decoded ran without CUDA graphs, and the step times of its replica know that.
func (a *Analyzer) isEager(r *request) bool {
	d := a.topology.deploymentOf(r.replica)
	most := d.Latency.Kernels.MaxCaptureSize
	return d.Latency.Model == "operators" && (d.Engine.EnforceEager || most > 0 && r.contention.concurrent > most)
}

var smallChunks = Condition{Name: "small_chunks", Component: engineComponent, rank: rankCapacity,
	parts: setOf(PartPrefill, PartQueue),
	Doc: "computed its prompt in at least four chunks of long_prefill_token_threshold tokens, or such prompts of" +
		" others started during its wait",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("%s prompt tokens in chunks of long_prefill_token_threshold took %s ms (means)",
			p.mean(uncachedTokens), p.mean(prefillMS))
	},
	Hint:   "raise long_prefill_token_threshold, or set it to 0",
	change: setEngine("long_prefill_token_threshold", 0),
	holds: func(a *Analyzer, r *request) bool {
		n := a.topology.deploymentOf(r.replica).Engine.PrefillThreshold
		return n > 0 && int64(r.tokens.input-r.tokens.cached) >= 4*n && prefillMS(r)*1000 >= longWaitUS
	}}

var behindLongPrompts = Condition{Name: "behind_long_prompts", Component: schedulingComponent, rank: rankCapacity,
	parts: beforeToken,
	Doc: "waited while its replica computed at least 2000 tokens of long prompts of others (4 times the median, at" +
		" least 4096 tokens), at least half of all prompt tokens then; no queue was much shorter",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("waited while %s of %s prompt tokens computed were of long prompts; own prompt %s (means)",
			p.mean(longAhead), p.mean(promptsAhead), p.mean(inputTokens))
	},
	Hint:   "bound the chunks of long prompts (long_prefill_token_threshold), or send them to replicas of their own",
	change: (*proposal).chunkLongPrompts,
	others: append(shorterQueues[:len(shorterQueues):len(shorterQueues)], ownReplicas),
	holds: func(a *Analyzer, r *request) bool {
		e := &r.evidence
		return !r.longerQueue() && !a.isLong(r) && e.longAhead >= manyTokensAhead && 2*e.longAhead >= e.promptsAhead
	}}

var overtaken = Condition{Name: "overtaken", Component: schedulingComponent, rank: rankCapacity, parts: beforeToken,
	Doc: "at least 2000 tokens of others started during its wait, at least half of them from requests of no higher" +
		" priority that joined the queue later; no queue was much shorter, and it did not mostly wait for loads" +
		" from a tier (slow_tier)",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("%s, %s of them from requests that came later and are not more urgent (means)", meanwhile(p),
			p.mean(func(r *request) float64 { return float64(r.evidence.overtaken) }))
	},
	Hint:    "serve these requests earlier: priority slo-based with scheduler priority-fcfs, or another order",
	change:  (*proposal).inOrder,
	others:  shorterQueues,
	isWrong: true,
	holds: when(func(r *request) bool {
		return !r.longerQueue() && r.contention.ahead.total >= manyTokensAhead &&
			2*r.evidence.overtaken >= r.contention.ahead.total && !r.takesHalf(r.evidence.tierUS)
	})}

var loadPeak = Condition{Name: "load_peak", Component: workloadComponent, rank: rankOverload, parts: afterAdmitted,
	Doc: "routed when every queue held at least 8 requests, or every replica 32 or too many for its TPOT" +
		" target; requests of the last 2 s arrived at least 2.5 times as fast as in the whole run, or those of the" +
		" last 15 s at least 1.8 times",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("arrived at %s times the mean rate of the run (%s over 15 s)%s; the emptiest replica had %s"+
			" (means)", p.mean(func(r *request) float64 { return r.evidence.peak }),
			p.mean(func(r *request) float64 { return r.evidence.wave }), p.shortestQueueText(), p.mean(fewestResident))
	},
	Hint:   "delay or reject in the peak what can wait, or have replicas for the peak",
	change: (*proposal).moreReplicas,
	others: shorterQueues,
	took:   inPart(PartQueue),
	holds: func(a *Analyzer, r *request) bool {
		isFull := r.allReplicasFull() || a.tooManyEverywhere(r)
		return r.contention.shortest >= fullQueue && r.evidence.peak >= peakFactor || isFull && r.inWave()
	}}

// inWave reports whether requests arrived much faster than in the whole run for some time before r.
func (r *request) inWave() bool { return r.evidence.wave >= waveFactor }

var grammarCompiled = queueWait("grammar_compile", "for its grammar to be compiled",
	"use the same few grammars again, compile them before the load comes, or use simpler ones or a backend that"+
		" compiles faster",
	func(s stopped) int64 { return s.grammar })

var adaptersFull = queueWait("adapters_full", "since the running requests had max_loras other adapters",
	"raise max_loras, or send the requests of an adapter to the replicas that have it (lora-affinity-scorer)",
	func(s stopped) int64 { return s.adapters })

var encoderFull = queueWait("encoder_full", "for room in the encoder",
	"raise encoder_cache_size or max_num_encoder_input_tokens, or have encode replicas",
	func(s stopped) int64 { return s.encoder })

// queueWait is the condition that requests waited in the queue for something other than slots, blocks and tokens.
func queueWait(name, what, hint string, us func(stopped) int64) Condition {
	return Condition{Name: name, Component: engineComponent, rank: rankMechanism, parts: setOf(PartQueue),
		Doc: "waited at least 100 ms, and at least half of its time in the queue, " + what,
		cause: func(p *Pattern) string {
			return fmt.Sprintf("waited %s of %s ms in the queue %s (means)",
				p.mean(func(r *request) float64 { return float64(us(r.stopped)) / 1000 }),
				p.mean(func(r *request) float64 { return float64(r.leftQueue()-r.enqueued()) / 1000 }), what)
		},
		Hint:       hint,
		isAbsolute: true,
		took:       func(_ *Analyzer, r *request) taken { return taken{before: float64(us(r.stopped))} },
		holds: func(_ *Analyzer, r *request) bool {
			return us(r.stopped) >= longWaitUS && 2*us(r.stopped) >= int64(r.leftQueue()-r.enqueued())
		}}
}

// slotsFull reports whether nearly all batch slots were taken while r waited: as the engine saw it, in most of the
// time, or by the outcomes of others.
func (a *Analyzer) slotsFull(r *request) bool {
	if a.stats.hasStops {
		return r.mostly(r.stopped.slots)
	}
	slots := a.topology.deploymentOf(r.replica).slots()
	return slots > 0 && r.contention.running >= fullBatchShare*float64(slots)
}

// blocksFull reports whether nearly all KV blocks that a waiting request can get were taken while r waited; see
// slotsFull.
func (a *Analyzer) blocksFull(r *request) bool {
	if a.stats.hasStops {
		return r.mostly(r.stopped.blocks)
	}
	return r.contention.kvShare >= fullCacheShare*(1-a.topology.deploymentOf(r.replica).Engine.Watermark)
}

// mostly reports whether a time is most of that in which a limit stopped the queue of r, and at least half of its
// wait.
func (r *request) mostly(us int64) bool {
	return us >= max(r.stopped.slots, r.stopped.budget, r.stopped.blocks) &&
		2*us >= int64(r.leftQueue()-r.enqueued())
}

// stoppedText says how long the engine had no room of a kind while the requests of p waited, or that this is an
// estimate where records do not have it.
func (p *Pattern) stoppedText(of func(stopped) int64) string {
	stop := func(r *request) float64 { return float64(of(r.stopped)) / 1000 }
	if mean(p.losing, stop) == 0 {
		return "means, estimated"
	}
	wait := func(r *request) float64 { return float64(r.leftQueue()-r.enqueued()) / 1000 }
	return fmt.Sprintf("means; in %s of %s ms of waiting the engine had none left", p.mean(stop), p.mean(wait))
}

// Quantities of which causes name the mean.

func longAhead(r *request) float64      { return r.evidence.longAhead }
func promptsAhead(r *request) float64   { return r.evidence.promptsAhead }
func prefillMS(r *request) float64      { return float64(r.split()[PartPrefill]) / 1000 }
func uncachedTokens(r *request) float64 { return float64(r.tokens.input - r.tokens.cached) }
