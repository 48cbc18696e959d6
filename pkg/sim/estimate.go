package sim

import (
	"slices"

	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/policy"
	"blis/pkg/portable"
	"blis/pkg/stream"
)

// oracle estimates how a request would fare on each replica, from the true state and from what the
// policy saw.
type oracle struct {
	rates []rateEWMA // by replica
	// sent are the requests, by replica, that were sent to it and have not reached its queue.
	sent [][]int32
	// Scratch.
	estimates []estimate
	forecasts []engine.Forecast
	inTransit []engine.InTransit
}

func newOracle(replicas int) *oracle {
	return &oracle{rates: make([]rateEWMA, replicas), sent: make([][]int32, replicas)}
}

// estimate is the predicted result of a request on a candidate, in µs from its arrival: TTFT and E2E
// latency from the true state, and E2E latency from what the policy saw.
type estimate struct {
	candidate            int
	replica              int32
	ttft, e2e, viewedE2E des.Time
}

// clone returns an independent copy.
func (g *oracle) clone() *oracle {
	c := &oracle{rates: slices.Clone(g.rates), sent: slices.Clone(g.sent)}
	for i := range c.sent {
		c.sent[i] = slices.Clone(c.sent[i])
	}
	return c
}

func (g *oracle) hooks() []hook { return []hook{onDecision, onSend, onEnqueue, onFinal} }

// observe keeps track of the requests on their way to a replica, the prefill replica if there is one.
func (g *oracle) observe(s *simulation, h hook, slot int32) error {
	r := s.request(slot)
	at := r.replica
	if r.handoff.stage == prefilling {
		at = r.handoff.replica
	}
	switch {
	case h == onDecision:
		if s.decisions.last.stage == stream.StagePrefillRouting {
			g.arrived(r.replica, slot)
			g.sent[at] = append(g.sent[at], slot)
		}
	case at == missing:
	case h == onSend:
		g.sent[at] = append(g.sent[at], slot)
	default:
		g.arrived(at, slot)
	}
	return nil
}

// arrived removes a request from those on their way to a replica.
func (g *oracle) arrived(at, slot int32) {
	if i := slices.Index(g.sent[at], slot); i >= 0 {
		g.sent[at] = slices.Delete(g.sent[at], i, i+1)
	}
}

// estimate estimates each candidate at the time of the decision. The result is valid until the next
// call.
func (g *oracle) estimate(s *simulation, r *request, v *policy.View) []estimate {
	g.forecasts, g.estimates = g.forecasts[:0], g.estimates[:0]
	for i := range v.Replicas {
		g.forecasts = append(g.forecasts, g.trueForecast(s, r, &v.Replicas[i]))
	}
	g.setConcurrentRates(s, v)
	for i := range v.Replicas {
		c := &v.Replicas[i]
		if s.deployments[s.replicas[c.Index].deployment].isPool() {
			g.estimates = append(g.estimates, g.inPools(s, r, i, c))
			continue
		}
		m := s.deployments[s.replicas[c.Index].deployment].model
		since := s.now - des.Time(r.out.ArrivalUS) + m.Queueing(r.out.InputTokens)
		first, last := g.forecasts[i].Estimate(m, r.out.InputTokens, r.out.OutputTokens)
		forecast := viewedForecast(s, c, r)
		_, viewed := forecast.Estimate(m, r.out.InputTokens, max(1, int64(r.predicted)))
		g.estimates = append(g.estimates, estimate{i, c.Index, since + first, since + last, since + viewed})
	}
	return g.estimates
}

// trueForecast is the forecast of a candidate from its true state.
func (g *oracle) trueForecast(s *simulation, r *request, c *policy.Replica) engine.Forecast {
	at := &s.replicas[c.Index]
	m := s.deployments[at.deployment].model
	g.inTransit = g.inTransit[:0]
	enqueued := s.now + m.Queueing(r.out.InputTokens)
	for _, slot := range g.sent[c.Index] {
		if q := s.request(slot); q != r && des.Time(q.out.RoutedUS)+m.Queueing(q.out.InputTokens) <= enqueued {
			g.inTransit = append(g.inTransit, engine.InTransit{Path: q.path, Input: int(q.out.InputTokens)})
		}
	}
	o := at.engine.Forecast(s.now, engine.InTransit{Path: r.path, Input: int(r.out.InputTokens)}, g.inTransit)
	d := &s.deployments[at.deployment]
	at.engine.Speculate(&o, s.drafts(d, r))
	at.engine.Prepare(&o, s.now, &engine.Request{Adapter: r.adapter, Grammar: r.grammar.id, CompileUS: d.compileUS(r)})
	return o
}

// viewedForecast is the forecast of a candidate from what the policy could know: the fields that it
// saw, else the router's own count. Requests ahead are assumed to resemble the new one.
func viewedForecast(s *simulation, c *policy.Replica, r *request) engine.Forecast {
	d := &s.deployments[s.replicas[c.Index].deployment]
	needs := s.router.needs.routing
	if d.prefills {
		needs = s.router.needs.prefill
	}
	maxSeqs := int64(s.replicas[c.Index].maxSeqs)
	queued, running := max(0, int64(c.Inflight)-maxSeqs), min(int64(c.Inflight), maxSeqs)
	if needs&policy.NeedQueueDepth != 0 {
		queued = int64(c.QueueDepth)
	}
	if needs&policy.NeedRunning != 0 {
		running = int64(c.Running)
	}
	o := engine.Forecast{Queued: queued, Decode: running, Budget: d.tokenBudget, MaxSeqs: maxSeqs}
	switch {
	case needs&policy.NeedShadow != 0:
		o.Cached = int64(c.Matched) * d.limits.blockSize
	case needs&policy.NeedBlockIndex != 0:
		o.Cached = min(blockIndexTokens(c), r.out.InputTokens)
	case needs&policy.NeedCache != 0:
		if o.Cached = int64(c.Cached) * d.limits.blockSize; needs&policy.NeedTierBlocks != 0 {
			o.Load = s.replicas[c.Index].engine.LoadAlone(c.Stats.Tiers.CPU, c.Stats.Tiers.Storage)
		}
	}
	o.QueuedTokens = queued * max(1, r.out.InputTokens-o.Cached)
	o.Context = running * (r.out.InputTokens + int64(r.predicted)/2)
	s.replicas[c.Index].engine.Speculate(&o, s.drafts(d, r))
	return o
}

// rateEWMA holds the recent prefill and decode rates of a replica in tokens per µs: exponential
// moving averages with time constant rateWindowUS.
type rateEWMA struct {
	at                          des.Time
	prefillTokens, decodeTokens int64 // computed until at
	prefillRate, decodeRate     float64
}

const rateWindowUS = 60_000_000

// update advances the averages to now.
func (p *rateEWMA) update(now des.Time, prefill, decode int64) {
	d := now - p.at
	if d == 0 {
		return
	}
	decay := portable.Exp(-float64(d) / rateWindowUS)
	weight := (1 - decay) / float64(d) // weight of a new token
	p.prefillRate = float64(p.prefillRate*decay) + float64(weight*float64(prefill-p.prefillTokens))
	p.decodeRate = float64(p.decodeRate*decay) + float64(weight*float64(decode-p.decodeTokens))
	p.at, p.prefillTokens, p.decodeTokens = now, prefill, decode
}

// setConcurrentRates sets the expected concurrent load in each candidate's true forecast: a weighted
// mean of its own rates and those of all candidates. The more replicas differ, the more their own
// rates count: a balancing router sends less to replicas that had more.
func (g *oracle) setConcurrentRates(s *simulation, v *policy.View) {
	correction := rateCorrection(s.now)
	var prefills, decodes, squares float64
	for i := range v.Replicas {
		p := &g.rates[v.Replicas[i].Index]
		stats := s.replicas[v.Replicas[i].Index].engine.Stats()
		p.update(s.now, stats.PrefillTokens, stats.DecodeTokens)
		prefills, decodes, squares = prefills+p.prefillRate, decodes+p.decodeRate,
			squares+float64(p.prefillRate*p.prefillRate)
	}
	n := float64(len(v.Replicas))
	mean := prefills / n
	ownWeight := 1.0
	if variance := max(0, squares/n-float64(mean*mean)); mean > 0 {
		ownWeight = variance / (variance + float64(halfWeightCV2*mean*mean))
	}
	for i := range v.Replicas {
		p := &g.rates[v.Replicas[i].Index]
		g.forecasts[i].PrefillRate = correction * (float64(ownWeight*p.prefillRate) + float64((1-ownWeight)*mean))
		g.forecasts[i].DecodeRate = correction *
			(float64(ownWeight*p.decodeRate) + float64((1-ownWeight)*decodes/n))
	}
}

// rateCorrection is the factor of averages over less than their time constant. A run counts as at least rateWindowUS/10
// old, so that its first requests are not extrapolated.
func rateCorrection(now des.Time) float64 {
	return 1 / (1 - portable.Exp(-max(0.1, float64(now)/rateWindowUS)))
}

// halfWeightCV2 is the squared coefficient of variation of the replicas' rates at which their own
// rates get half the weight. It was chosen on the Mooncake trace with a concentrating and a
// balancing router.
const halfWeightCV2 = 0.3
