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
		wanted := "them"
		if e.Preset == "" {
			wanted += ", or the server's version as engine.preset,"
		}
		s.warnf("%s assumed to be max_num_seqs %d, "+
			"max_num_batched_tokens %d, %d KV blocks, async_scheduling %v: give %s with --cluster", stated,
			e.MaxNumSeqs, e.MaxNumBatchedTokens, d.Computed.KVBlocks, e.AsyncScheduling, wanted)
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
