package attribution

import "fmt"

// Thresholds of conditions about scheduling.
const (
	manyTokensAhead       = 2000
	prefillPerOutputToken = 500 // prompt tokens that slow decoding down
)

var behindLowerClass = Condition{Name: "behind_lower_class", Component: schedulingComponent, rank: rankCapacity,
	parts: beforeToken,
	Doc: "at least 2000 tokens of others started during its wait, at least 30 % of them from classes of lower" +
		" priority, and it would have met its TTFT target without these (or waited half as long); no queue was much" +
		" shorter",
	cause: func(p *Pattern) string { return startedMeanwhile(p, lowerPriorityAhead, "lower classes") },
	Hint: "order the queue by class: priority slo-based, scheduler priority-fcfs;" +
		" reject or delay lower classes under load",
	change: classesFirst,
	others: append(shorterQueues[:len(shorterQueues):len(shorterQueues)],
		remedy{"send this class to replicas of its own (pools)", (*proposal).lossesApart}),
	holds: func(a *Analyzer, r *request) bool {
		lower := r.contention.ahead.lowerPriority
		return !r.longerQueue() && r.mostlyBehind(lower) && a.mattersToWait(r, lower)
	}}

var prefillInterference = Condition{Name: "prefill_interference", Component: schedulingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "decoded while its replica prefilled at least 500 prompt tokens of others for each output token;" +
		" missed its TPOT target only, which it would have met without these prompts, and if the replica had computed" +
		" all that it did at an even rate (where step times are known)",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("decoded %s tokens while the replica prefilled %s of other requests (means)",
			p.mean(outputTokens), p.mean(interferingTokens))
	},
	Hint: "bound prefill in a step (long_prefill_token_threshold, max_num_batched_tokens)," +
		" or send long prompts elsewhere",
	// It slows decoding: it cannot explain a late first token.
	change: (*proposal).lessBudget,
	others: []remedy{ownReplicas, {"add replicas: each then has fewer prompts", (*proposal).moreReplicas}},
	holds: func(a *Analyzer, r *request) bool {
		slowed, tooMany := a.decodesAmidPrompts(r)
		return slowed && !tooMany && !a.imbalanced(r)
	}}

var promptsSaturate = Condition{Name: "prompts_saturate", Component: workloadComponent, rank: rankOverload,
	parts: afterAdmitted,
	Doc: "decoded while its replica prefilled at least 500 prompt tokens of others for each output token; missed its" +
		" TPOT target only, which it would have met without these prompts, but not if the replica had computed all" +
		" that it did at an even rate",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("their replicas computed %s prompt tokens a second (mean), more than the TPOT target"+
			" leaves room for at an even rate", p.mean(p.run.prefillPerS))
	},
	Hint:   "add replicas, or cache prefixes; where other replicas compute less, route by load",
	change: (*proposal).spreadPrompts,
	others: []remedy{{"bound prefill in a step: prompts of the other classes wait longer", (*proposal).laterPrompts},
		{"add replicas", (*proposal).moreReplicas}},
	holds: func(a *Analyzer, r *request) bool {
		slowed, tooMany := a.decodesAmidPrompts(r)
		return slowed && tooMany
	}}

// prefillPerS is how many prompt tokens a second the replica of r computed in the run.
func (a *Analyzer) prefillPerS(r *request) float64 {
	if r.replica == missing {
		return 0
	}
	return 1e6 * a.stats.prefillRates[r.replica]
}

// decodesAmidPrompts is slowedByPrompts for requests that missed at most their TPOT target and decoded while their
// replica computed many prompts.
func (a *Analyzer) decodesAmidPrompts(r *request) (slowed, tooMany bool) {
	if missed := r.verdict.missed; missed != 0 && missed != missedTPOT || !r.isSlowedDown() {
		return false, false
	}
	return a.slowedByPrompts(r)
}

// mattersToWait reports whether r would have met its TTFT target without a part of the work ahead of it, or, if that is
// not what it missed, would have waited at most half as long. Work of that share is then missing since the queue was
// empty: it is served so much earlier by what it saved until r joined the queue and in the wait of r.
func (a *Analyzer) mattersToWait(r *request, tokens int64) bool {
	share := float64(tokens) / float64(max(1, r.contention.ahead.total))
	wait := float64(r.leftQueue() - r.enqueued())
	left := max(0, wait-float64(share*(wait+float64(r.enqueued()-r.contention.busySince))))
	target := 1000 * a.classes[a.names.list[r.labels.class]].Targets.TTFTMS
	if r.verdict.missed&missedTTFT == 0 || target == 0 || r.firstToken() == never {
		return 2*left <= wait
	}
	return float64(r.firstToken()-r.arrival())-wait+left <= target
}

// isSlowedDown reports whether its replica prefilled much while r decoded.
func (r *request) isSlowedDown() bool {
	output := int64(r.tokens.output)
	return output > 1 && r.contention.interfering >= prefillPerOutputToken*(output-1)
}

// mostlyBehind reports whether many tokens of others started while r waited and at least 30 % of them are these.
func (r *request) mostlyBehind(tokens int64) bool {
	total := r.contention.ahead.total
	return total >= manyTokensAhead && 10*tokens >= 3*total
}
