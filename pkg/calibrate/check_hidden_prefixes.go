package calibrate

import (
	"math"

	"blis/pkg/latency"
)

// checkHiddenPrefixes counts requests whose first token came in less than half of the time
// that a roofline takes for their prompts, so that part of these was cached.
func checkHiddenPrefixes(r *report) {
	for _, run := range r.setup.replays {
		if run.period > 0 || run.hiddenPrefixes {
			continue
		}
		early, timed := 0, 0
		for i, q := range run.requests {
			if math.IsNaN(run.measured[i].ttft) || len(q.Prompt) > 0 {
				continue
			}
			timed++
			n := q.InputTokens
			us := r.setup.roofline.Step(latency.Batch{Prefill: n, Chunks: 1, Pairs: n * (n + 1) / 2})
			if run.measured[i].ttft < float64(us)/2 {
				early++
			}
		}
		if 50*early > timed {
			r.setup.warnf("%s: %d of %d requests got their first token in less than half of the "+
				"time to compute their prompts: these hit the prefix cache, but shared prefixes are not recorded; "+
				"the replay computes them and overestimates TTFT; state them in a column shared_prefix_tokens, or by "+
				"--shared-prefix N if all are the same", run.name, early, timed)
		}
	}
}
