package sim

import (
	"cmp"
	"slices"

	"blis/pkg/capacity"
	"blis/pkg/cluster"
	"blis/pkg/engine"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// metricsSink collects the metrics of a run.
type metricsSink struct {
	*metrics.Accumulator
	demand demand
}

func (m *metricsSink) hooks() []hook {
	return []hook{onTokens, onFinal, onSessionEnd, onTransfer, onEncode, onEmbeddings}
}

func (m *metricsSink) observe(s *simulation, h hook, i int32) error {
	switch h {
	case onTokens:
		m.addGaps(s.replicas[i].result)
	case onFinal:
		o := &s.request(i).out
		m.Add(o)
		if !o.Retried {
			m.demand.add(o)
		}
		m.ExtendTo(stream.Micros(s.now))
		return m.Err()
	case onTransfer:
		if t := &s.transfers.slots[i]; t.fromPrefill != missing && !t.failed {
			blocks := int64(t.Blocks)
			m.AddTransfer(t.Ended-t.Started, blocks, blocks*s.deployments[s.replicas[t.replica].deployment].blockBytes)
		}
	case onEncode:
		s.encoding.replicas[i].engine.Batch(func(t *engine.EncodeTask) { m.AddEncoderWait(s.now - t.Since) })
	case onEmbeddings:
		t := &s.encoding.transfers[i]
		m.AddEmbeddings(t.ended-t.asked, t.bytes(s))
	case onSessionEnd:
		m.AddSession(&s.sessions.open[i].out)
		m.AddNotIssued(&s.sessions.open[i].out)
	}
	return nil
}

// addGaps adds the inter-token latencies of the tokens of a step, or of the steps that a replica coasted.
func (m *metricsSink) addGaps(e *engine.StepResult) {
	if e.Decoding > 0 {
		m.AddGaps(e.DecodeGap, int64(e.Decoding))
	}
	for _, gap := range e.Gaps {
		m.AddGaps(gap, 1)
	}
	for _, run := range e.Coasted {
		m.AddGaps(run.Gap, run.Tokens)
	}
}

// demand is the load offered to a run: the token counts of its calls and the interval of their
// arrivals. Of a long run it keeps every second, fourth, eighth … call, to bound its memory.
type demand struct {
	calls []capacity.Call
	// n is the number of calls; every stride-th of them is kept.
	n, stride   int64
	first, last stream.Micros
}

// maxCalls suffice for three significant digits of the load.
const maxCalls = 1 << 14

func (d *demand) add(o *stream.Outcome) {
	if d.n == 0 {
		d.first, d.stride = o.Began(), 1
	}
	d.first, d.last = min(d.first, o.Began()), max(d.last, o.Began())
	d.n++
	if d.n%d.stride != 0 {
		return
	}
	cached := min(o.CachedTokens+o.LoadedTokens.Total(), o.InputTokens) // loaded ones are not computed, either
	d.calls = append(d.calls, capacity.Call{Model: o.Model, Input: o.InputTokens, Output: o.OutputTokens,
		Cached: cached})
	if len(d.calls) == maxCalls {
		for i := range maxCalls / 2 {
			d.calls[i] = d.calls[2*i+1]
		}
		d.calls, d.stride = d.calls[:maxCalls/2], 2*d.stride
	}
}

// load is the demand relative to the capacity of the cluster; nil if it is undefined.
func (d *demand) load(c *cluster.Config) (*metrics.Load, error) {
	if d.n == 0 || c.Disaggregated() { // the capacity of two pools is not computed
		return nil, nil
	}
	// The kept calls at the rate of all.
	us := int64(float64(d.last-d.first) * float64(len(d.calls)) / float64(d.n))
	load, err := capacity.Of(c, slices.Values(d.calls), us)
	if err != nil || load.Offered == nil {
		return nil, err
	}
	return &metrics.Load{Offered: *load.Offered, Uncached: *load.Uncached}, nil
}

// summary is the metrics record of the finished run. Replicas are up from the first arrival on.
func summary(s *simulation, p *plugins) (*metrics.Record, error) {
	all, used := p.metrics.Accumulator, p.used
	for i := range s.replicas {
		r := &s.replicas[i]
		d := &s.deployments[r.deployment]
		e := r.engine.Stats()
		all.AddReplica(metrics.ReplicaTotals{Deployment: d.id, Index: r.index, GPUs: int64(d.gpus),
			Requests: r.requests, Completed: r.completed, PrefillTokens: e.PrefillTokens,
			DecodeTokens: e.DecodeTokens, QueriedTokens: e.QueriedTokens, CachedTokens: e.CachedTokens,
			PulledTokens: e.PulledTokens,
			AdapterLoads: e.AdapterLoads, AdapterCopies: e.AdapterCopies, AdapterUS: e.AdapterUS,
			GrammarRequests: e.GrammarRequests, GrammarWaits: e.GrammarWaits, GrammarWaitUS: e.GrammarWaitUS,
			Compilations: e.Compilations, Masks: e.Masks, MaskUS: e.MaskUS, MaskWaitUS: e.MaskWaitUS,
			Stages: int64(d.stages), StageUS: e.StageUS,
			EncodedItems: e.EncodedItems, EncodedTokens: e.EncodedTokens, EncoderUS: e.EncoderUS,
			EncoderHits: e.EncoderHits, PrefixItems: e.PrefixItems, EncoderCuts: e.EncoderCuts,
			LoadedItems:   e.LoadedItems,
			Verifications: e.Verifications, DraftTokens: e.DraftTokens, AcceptedTokens: e.AcceptedTokens,
			Preemptions: e.Preemptions, PeakQueue: int64(e.PeakWaiting), PeakBatch: int64(e.PeakRunning),
			BlockUS: e.BlockUS, PeakBlocks: int64(e.PeakBlocks), Blocks: int64(r.engine.Cache().Total()),
			UpUS: s.upUS(i), BusyUS: e.BusyUS, PerGPUHour: d.perGPUHour, Tier: tierTotals(r.engine),
			Storage: s.storageTotals(i),
			Pool:    s.poolOf(r.deployment), Ranks: r.ranks.RankTotals, Energy: s.energyTotals(i)})
	}
	s.addEncoderTotals(all)
	if s.energy != nil {
		all.CountEnergy(s.energy.CarbonGPerKWh)
	}
	if s.scales() {
		var sum scaleStats
		for i := range s.deployments {
			if e := s.deployments[i].elastic; e != nil {
				sum.ups, sum.downs = sum.ups+e.stats.ups, sum.downs+e.stats.downs
				sum.oscillations += e.stats.oscillations
			}
		}
		all.SetScale(sum.ups, sum.downs, sum.oscillations, p.waits.us)
	}
	if s.failures != nil {
		all.SetFailures(s.failures.summary(s, p.recovery))
	}
	if t := s.transfers; t != nil {
		var b backpressureStats
		if s.backpressure != nil {
			b = s.backpressure.stats
		}
		all.SetBackpressure(b.held, b.peak, t.expired)
	}
	all.SetControl(control(s))
	raw := all.Raw()
	raw.Warnings = slices.Concat(used.caveats(s), s.unknownEnergy(), raw.Warnings)
	return &metrics.Record{Kind: stream.KindMetrics, Raw: *raw}, all.Err()
}

// control is the summary of the control plane, nil if it is empty.
func control(s *simulation) *metrics.Control {
	c := &metrics.Control{Delays: s.router.traffic.delays}
	if a := s.telemetry.ages; a.count > 0 {
		c.SignalAgeMS = &metrics.Age{Mean: float64(a.sum) / float64(a.count) / 1000, Max: float64(a.oldest) / 1000}
	}
	if f := s.router.flow.stats; len(s.router.flow.queues) > 0 {
		c.Flow = &metrics.Flow{Queued: f.queued, Peak: f.peak, Rejected: f.rejected, Expired: f.expired}
	}
	for _, r := range s.rules() {
		c.Rules = append(c.Rules, metrics.Rule{Path: r.Path, Rule: r.Source, Evaluated: r.Evaluated, Hits: r.Hits,
			Failed: r.Failed, Error: r.Error})
		c.Fallbacks += r.Failed
	}
	if c.Delays == 0 && c.SignalAgeMS == nil && c.Flow == nil && c.Rules == nil {
		return nil
	}
	return c
}

// rules are the rules of all policies. Each deployment has its own auto-scaler: their counts are added up.
func (s *simulation) rules() []*policy.Rule {
	all := s.router.policies.Rules()
	for i := range s.deployments {
		e := s.deployments[i].elastic
		if e == nil {
			continue
		}
		own := e.policy.Rules()
		if e.trigger != nil {
			own = append(own, e.trigger.Rules()...)
		}
		for k, r := range own {
			sum := *all[len(all)-len(own)+k]
			sum.Evaluated, sum.Hits, sum.Failed = sum.Evaluated+r.Evaluated, sum.Hits+r.Hits, sum.Failed+r.Failed
			sum.Error = cmp.Or(sum.Error, r.Error)
			all[len(all)-len(own)+k] = &sum
		}
	}
	return all
}
