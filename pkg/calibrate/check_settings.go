package calibrate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

func checkSettings(r *report) {
	s, d := r.setup, r.setup.deployment
	e := &d.Engine
	derived := d.Derived != nil && slices.Contains(d.Derived.Values, "engine.async_scheduling")
	switch {
	case s.assumed:
		stated := "engine settings are unknown and"
		if s.settings != nil {
			stated = fmt.Sprintf("the recording states %s; other engine settings are", strings.Join(s.settings, ", "))
		}
		assumed := s.assumedSettings()
		if assumed == nil {
			assumed = []string{"the engine's defaults"}
		}
		wanted := "them"
		if e.Preset == "" {
			wanted += ", or the server's version as engine.preset,"
		}
		s.warnf("%s assumed to be %s: give %s with --cluster", stated, strings.Join(assumed, ", "), wanted)
	case e.Preset == "" && len(s.replays) > 0 && derived:
		s.warnf("engine settings are unknown: %s has neither async_scheduling nor a preset; "+
			"assumed is async_scheduling %v", filepath.Base(s.options.Cluster), e.AsyncScheduling)
	}
	for _, run := range s.replays {
		if n := run.engine.replicas; n > 1 {
			s.warnf("%s: requests are assumed to be balanced over %d replicas by %s", run.name, n, s.routing)
		}
	}
}

// assumedSettings are the values of the settings with most effect on times that the recording does not state.
func (s *setup) assumedSettings() (assumed []string) {
	e := &s.deployment.Engine
	for _, setting := range []struct{ name, value string }{
		{"max_num_seqs", fmt.Sprintf("max_num_seqs %d", e.MaxNumSeqs)},
		{"max_num_batched_tokens", fmt.Sprintf("max_num_batched_tokens %d", e.MaxNumBatchedTokens)},
		{"num_gpu_blocks_override", fmt.Sprintf("%d KV blocks", s.deployment.Computed.KVBlocks)},
		{"async_scheduling", fmt.Sprintf("async_scheduling %v", e.AsyncScheduling)},
	} {
		isStated := func(text string) bool { return strings.HasPrefix(text, setting.name+"=") }
		if !slices.ContainsFunc(s.settings, isStated) {
			assumed = append(assumed, setting.value)
		}
	}
	return assumed
}
