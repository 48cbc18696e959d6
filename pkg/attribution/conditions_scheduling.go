package attribution

import "fmt"

// Thresholds of conditions about scheduling.
const (
	manyTokensAhead       = 2000
	prefillPerOutputToken = 500 // prompt tokens that slow decoding down
)

var behindLowerClass = Condition{Name: "behind_lower_class", Component: schedulingComponent, rank: rankCapacity,
	parts: beforeToken,
	Doc: "waited behind at least 2000 tokens, at least 30 % of them from classes of lower priority; no queue" +
		" was much shorter",
	cause: func(p *Pattern) string { return waitedBehind(p, lowerPriorityAhead, "lower classes") },
	Hint: "order the queue by class: priority slo-based, scheduler priority-fcfs;" +
		" reject or delay lower classes under load",
	change: classesFirst,
	others: append(shorterQueues[:len(shorterQueues):len(shorterQueues)],
		remedy{"send this class to replicas of its own (pools)", (*proposal).lossesApart}),
	holds: when(func(r *request) bool { return !r.longerQueue() && r.mostlyBehind(r.contention.ahead.lowerPriority) })}

var prefillInterference = Condition{Name: "prefill_interference", Component: schedulingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "decoded while its replica prefilled at least 500 prompt tokens of others for each output token;" +
		" missed its TPOT target only",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("decoded %s tokens while the replica prefilled %s of other requests (means)",
			p.mean(outputTokens), p.mean(interferingTokens))
	},
	Hint: "bound prefill in a step (long_prefill_token_threshold, max_num_batched_tokens)," +
		" or send long prompts elsewhere",
	// It slows decoding: it cannot explain a late first token.
	change: (*proposal).lessBudget,
	others: []remedy{ownReplicas},
	holds: when(func(r *request) bool {
		missed, output := r.verdict.missed, int64(r.tokens.output)
		return output > 1 && (missed == 0 || missed == missedTPOT) &&
			r.contention.interfering >= prefillPerOutputToken*(output-1)
	})}

// mostlyBehind reports whether r waited behind many tokens and at least 30 % of them are these.
func (r *request) mostlyBehind(tokens int64) bool {
	total := r.contention.ahead.total
	return total >= manyTokensAhead && 10*tokens >= 3*total
}
