package report

// advice says for each condition what usually helps. It is shown with Hints only: the
// rest of the text is facts.
var advice = map[string]string{
	"impossible":         "raise max_model_len or the cache, or send what is too long to a deployment that can hold it",
	"cache_full":         "add cache (gpu_memory_utilization, num_gpu_blocks_override, more replicas), or admit fewer at once",
	"seats_full":         "raise max_num_seqs: the cache has room",
	"busier_batch":       "let running requests or inflight weigh in the routing score (running-requests, active-requests)",
	"delayed":            "delay fewer, or for a shorter time, or only classes that can wait",
	"crowded":            "refuse or delay what can wait, bound the batch (max_num_seqs), or add replicas",
	"stale_signal":       "refresh snapshots more often, or let inflight, which is never old, weigh in the routing score",
	"hot_prefix":         "lower the weight of prefixes against queues, or bound the imbalance (prefix-affinity's max_imbalance)",
	"queue_unseen":       "let the length of queues weigh in the routing score (queue-depth)",
	"queue_outweighed":   "raise the weight of queue-depth against the other scorers",
	"prefix_unseen":      "route with prefix-affinity or precise-prefix",
	"prefix_passed":      "raise the weight of prefixes, or keep requests with one prefix together",
	"rejected":           "admit more, or refuse classes that can wait first",
	"behind_lower_class": "order the queue by class: priority slo-based, scheduler priority-fcfs; refuse or delay lower classes under load",
	"behind_tenant":      "bound each tenant: tenant-quota, or token-bucket with per_tenant in input_tokens",
	"evicted":            "spread prefixes over fewer replicas each, tell the router of evictions (shadow_evictions), or add cache",
	"preempted":          "admit less at once to the cache (watermark, max_num_seqs), or add cache",
	"beside_prompts":     "bound prompts in a step (long_prefill_token_threshold, max_num_batched_tokens), or send long prompts elsewhere",
	"overload":           "refuse or delay what can wait before queues grow, or add replicas",
	"hot_replica":        "balance by active-requests or queue-depth",
	"burst":              "smooth bursts in admission: token-bucket, or delay",
	"long_prompt":        "send long prompts to replicas of their own, or lower long_prefill_token_threshold",
	"tenant":             "see what this tenant sends: --where 'tenant == ...'",
	"class":              "see what this class is promised: its targets may be out of reach",
}

var hints = section{"HINTS", func(w *writer) {
	if !w.Hints || w.Findings == nil {
		return
	}
	for i := range w.Findings.Patterns {
		p := &w.Findings.Patterns[i]
		if w.Component == "" || p.Component == w.Component {
			w.line("P%d: %s", i+1, advice[p.Condition])
		}
	}
}}
