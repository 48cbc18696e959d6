package calibrate

import (
	"fmt"
	"math"

	"blis/pkg/latency"
)

// checkHiddenPrefixes counts requests whose first token came in less than half of the time
// that a roofline takes for their prompts, so that part of these was cached.
func checkHiddenPrefixes(r *report, warnf warner) {
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
			warnf("%s: %d of %d requests got their first token in less than half of the "+
				"time to compute their prompts: these hit the prefix cache, but shared prefixes are not recorded; "+
				"the replay computes them and overestimates TTFT", run.name, early, timed)
		}
	}
}

// checkNewPrompts counts the fitted requests with new prompts where prompts repeat: only they
// are computed and identify beta[1], and they may be held out or excluded.
func checkNewPrompts(r *report, warnf warner) {
	for _, run := range r.replays {
		if run.period == 0 {
			continue
		}
		fitted, n := 0, min(run.period, len(run.requests))
		for _, in := range run.fitted[:n] {
			if in {
				fitted++
			}
		}
		text := fmt.Sprintf("only %d of the first %d requests, whose prompts are new, identify beta[1]", fitted, n)
		if fitted == 0 {
			text = fmt.Sprintf("none of the first %d requests, whose prompts are new, is fitted: "+
				"beta[1] is mostly the prior", n)
		}
		warnf("%s: %s; do not rely on it for new prompts of other lengths", run.name, text)
	}
}
