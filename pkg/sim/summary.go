package sim

import (
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// summary is the metrics record of the finished run. Replicas are up from the first arrival on.
func (s *simulation) summary(all *metrics.Accumulator) *metrics.Record {
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
			UpUS: s.now - s.firstArrival, BusyUS: e.BusyUS})
	}
	all.SetControl(s.control())
	raw := all.Raw()
	raw.Warnings = append(s.caveats(), raw.Warnings...)
	return &metrics.Record{Kind: stream.KindMetrics, Raw: *raw}
}

// control is the summary of the control plane, nil if it is empty.
func (s *simulation) control() *metrics.Control {
	c := &metrics.Control{Delays: s.router.delays}
	nonEmpty := c.Delays > 0
	if o := s.telemetry; o.reads > 0 {
		c.SignalAgeMS = &metrics.Age{Mean: float64(o.ageUS) / float64(o.reads) / 1000, Max: float64(o.oldest) / 1000}
		nonEmpty = true
	}
	if f := s.router.flowStats; s.router.flows != nil {
		c.Flow = &metrics.Flow{Queued: f.queued, Peak: f.peak, Rejected: f.rejected, Expired: f.expired}
		nonEmpty = true
	}
	for _, r := range s.router.Rules() {
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
