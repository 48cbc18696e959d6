package calibrate

import (
	"fmt"
	"path/filepath"
	"slices"
)

// scheduling is the loss with the engine's setting of asynchronous scheduling, and with the
// other one.
type scheduling struct {
	Async       bool    `json:"async_scheduling"`
	Loss        float64 `json:"loss"`
	LossToggled float64 `json:"loss_toggled"`
}

func (s *scheduling) String() string {
	return fmt.Sprintf("async_scheduling %v: loss %.4g; with %v %.4g", s.Async, s.Loss, !s.Async, s.LossToggled)
}

// clearlyBetter is the fraction of the loss below which the other setting fits better.
const clearlyBetter = 0.95

func checkScheduling(r *report, warnf warner) {
	s := r.Scheduling
	if s == nil || s.LossToggled >= clearlyBetter*s.Loss {
		return
	}
	warnf("async_scheduling %v fits better than %v, the engine's setting (loss %.4g instead of %.4g): "+
		"check the engine settings", !s.Async, s.Async, s.LossToggled, s.Loss)
}

func checkSettings(r *report, warnf warner) {
	s, d := r.setup, r.setup.deployment
	e := &d.Engine
	derived := d.Derived != nil && slices.Contains(d.Derived.Values, "engine.async_scheduling")
	switch {
	case s.assumed:
		warnf("engine settings are unknown and assumed to be max_num_seqs %d, "+
			"max_num_batched_tokens %d, %d KV blocks, async_scheduling %v: give them by --cluster",
			e.MaxNumSeqs, e.MaxNumBatchedTokens, d.Blocks(), e.AsyncScheduling)
	case e.Preset == "" && len(s.replays) > 0 && derived:
		warnf("engine settings are unknown: %s has neither async_scheduling nor a preset; "+
			"assumed is async_scheduling %v", filepath.Base(s.options.Cluster), e.AsyncScheduling)
	}
	for _, run := range s.replays {
		if n := run.engine.replicas; n > 1 {
			warnf("%s: requests are assumed to be balanced over %d replicas by %s",
				run.name, n, s.routing)
		}
	}
}

// tolerance is by what factor a recording may exceed a capacity, as its times are rounded.
const tolerance = 1.02

func checkCapacity(r *report, warnf warner) {
	d := r.setup.deployment
	for _, run := range r.setup.replays {
		if len(run.requests) == 0 || run.period > 0 {
			continue
		}
		replicas := float64(run.engine.replicas)
		if n := run.decoding().Peak() / replicas; n > tolerance*float64(run.engine.maxSeqs) {
			warnf("%s: %.0f sequences decode concurrently, but max_num_seqs is %d: "+
				"the engine settings are not those recorded", run.name, n, run.engine.maxSeqs)
		}
		tokens := run.profile(run.measured, run.contextOf).Peak() / replicas
		if tokens > tolerance*float64(run.engine.kvTokens) && !run.hiddenPrefixes {
			warnf("%s: concurrent sequences hold %.0f KV blocks, but the engine has %d: "+
				"set num_gpu_blocks_override or gpu_memory_utilization as recorded, by --cluster",
				run.name, tokens/float64(d.Engine.BlockSize), d.Blocks()*d.Engine.DataParallelSize)
		}
	}
}
