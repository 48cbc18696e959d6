package sim

import (
	"blis/pkg/metrics"
	"blis/pkg/record"
)

// summary is the metrics record of the finished run. A replica is up from the
// first arrival on.
func (s *simulation) summary() *metrics.Record {
	for i := range s.replicas {
		r := &s.replicas[i]
		d := &s.deployments[r.deployment]
		e := r.engine.Stats()
		s.metrics.Replica(metrics.ReplicaTotals{Deployment: d.id, Index: r.index, GPUs: int64(d.gpus),
			Requests: r.requests, Completed: r.completed,
			PrefillTokens: e.PrefillTokens, DecodeTokens: e.DecodeTokens, QueriedTokens: e.QueriedTokens, CachedTokens: e.CachedTokens,
			Preemptions: e.Preemptions, PeakQueue: int64(e.PeakWaiting), PeakBatch: int64(e.PeakRunning),
			BlockUS: e.BlockUS, PeakBlocks: int64(e.PeakBlocks), Blocks: int64(r.engine.Cache().Total()),
			UpUS: s.now - s.first, BusyUS: e.BusyUS})
	}
	raw := s.metrics.Raw()
	raw.Warnings = append(s.caveats(), raw.Warnings...)
	return &metrics.Record{Kind: record.KindMetrics, Raw: *raw}
}
