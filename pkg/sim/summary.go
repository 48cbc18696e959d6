package sim

import (
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// summary is the metrics record of the finished run. Replicas are up from the first arrival on.
func summary(s *simulation, all *metrics.Accumulator, used coverages) *metrics.Record {
	for i := range s.replicas {
		r := &s.replicas[i]
		d := &s.deployments[r.deployment]
		e := r.engine.Stats()
		all.AddReplica(metrics.ReplicaTotals{Deployment: d.id, Index: r.index, GPUs: int64(d.gpus),
			Requests: r.requests, Completed: r.completed,
			PrefillTokens: e.PrefillTokens, DecodeTokens: e.DecodeTokens, QueriedTokens: e.QueriedTokens,
			CachedTokens: e.CachedTokens,
			Preemptions:  e.Preemptions, PeakQueue: int64(e.PeakWaiting), PeakBatch: int64(e.PeakRunning),
			BlockUS: e.BlockUS, PeakBlocks: int64(e.PeakBlocks), Blocks: int64(r.engine.Cache().Total()),
			UpUS: s.now - s.events.firstArrival, BusyUS: e.BusyUS})
	}
	all.SetControl(control(s))
	raw := all.Raw()
	raw.Warnings = append(used.caveats(s), raw.Warnings...)
	return &metrics.Record{Kind: stream.KindMetrics, Raw: *raw}
}

// control is the summary of the control plane, nil if it is empty.
func control(s *simulation) *metrics.Control {
	c := &metrics.Control{Delays: s.router.traffic.delays}
	nonEmpty := c.Delays > 0
	if a := s.telemetry.ages; a.count > 0 {
		c.SignalAgeMS = &metrics.Age{Mean: float64(a.sum) / float64(a.count) / 1000, Max: float64(a.oldest) / 1000}
		nonEmpty = true
	}
	if f := s.router.flow.stats; len(s.router.flow.queues) > 0 {
		c.Flow = &metrics.Flow{Queued: f.queued, Peak: f.peak, Rejected: f.rejected, Expired: f.expired}
		nonEmpty = true
	}
	for _, r := range s.router.policies.Rules() {
		c.Rules = append(c.Rules, metrics.Rule{Path: r.Path, Rule: r.Source, Evaluated: r.Evaluated, Hits: r.Hits,
			Failed: r.Failed})
		c.Fallbacks += r.Failed
		nonEmpty = true
	}
	if !nonEmpty {
		return nil
	}
	return c
}
