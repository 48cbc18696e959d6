package sim

import (
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/latency"
	"blis/pkg/policy"
)

// Estimates for replicas of prefill and decode pools. Of a request whose prompt goes to a prefill replica they are
// those of its handoff: the prefill there, the transfer by links that no other one uses, and the load of the decode
// replica. An estimate of a decode replica assumes the prefill replica that would be the first to compute the prompt.

// inPools estimates candidate number i, a replica of a pool.
func (g *oracle) inPools(s *simulation, r *request, i int, c *policy.Replica) estimate {
	d := &s.deployments[s.replicas[c.Index].deployment]
	since, output, predicted := s.now-des.Time(r.out.ArrivalUS), r.out.OutputTokens, max(1, int64(r.predicted))
	e, viewed := estimate{candidate: i, replica: c.Index}, viewedForecast(s, c, r)
	switch {
	case d.prefills:
		decode := g.loadOf(s, r, r.replica)
		e.ttft, e.e2e = s.handoffTimes(r, r.replica, s.prefillTime(r, d.model, &g.forecasts[i]), decode, output)
		_, e.viewedE2E = s.handoffTimes(r, r.replica, s.prefillTime(r, d.model, &viewed), decode, predicted)
	case s.wouldDisaggregate(d, r, c):
		prefill := g.soonestPrefill(s, r, d)
		e.ttft, e.e2e = s.handoffTimes(r, c.Index, prefill, g.forecasts[i], output)
		_, e.viewedE2E = s.handoffTimes(r, c.Index, prefill, viewed, predicted)
	default:
		delay := d.model.Queueing(r.out.InputTokens)
		first, last := g.forecasts[i].Estimate(d.model, r.out.InputTokens, output)
		_, view := viewed.Estimate(d.model, r.out.InputTokens, predicted)
		e.ttft, e.e2e, e.viewedE2E = delay+first, delay+last, delay+view
	}
	e.ttft, e.e2e, e.viewedE2E = since+e.ttft, since+e.e2e, since+e.viewedE2E
	return e
}

// loadOf is the true forecast of a replica that is no candidate, with the load that it had lately.
func (g *oracle) loadOf(s *simulation, r *request, at int32) engine.Forecast {
	f, p := g.trueForecast(s, r, &policy.Replica{Index: at}), &g.rates[at]
	stats := s.replicas[at].engine.Stats()
	p.update(s.now, stats.PrefillTokens, stats.DecodeTokens)
	f.PrefillRate, f.DecodeRate = rateCorrection(s.now)*p.prefillRate, rateCorrection(s.now)*p.decodeRate
	return f
}

// soonestPrefill is how long it takes until a prompt is computed at the prefill replica of d that is the first to do
// so.
func (g *oracle) soonestPrefill(s *simulation, r *request, d *deployment) (us des.Time) {
	m := s.deployments[d.pool.prefill].model
	for i, c := range s.router.views.prefillCandidates(s, r, d, 0) {
		f := g.trueForecast(s, r, &c)
		if x := s.prefillTime(r, m, &f); i == 0 || x < us {
			us = x
		}
	}
	return us
}

// prefillTime is how long it takes until a prefill replica has computed a prompt, whose token no client gets.
func (s *simulation) prefillTime(r *request, m latency.Model, f *engine.Forecast) des.Time {
	first, _ := f.Estimate(m, r.out.InputTokens, 1)
	return m.Queueing(r.out.InputTokens) + first - m.Output(f.Decode)
}

// handoffTimes are the times until the client has the first and the last token if the prompt is computed in prefill µs
// and a decode replica has this load.
func (s *simulation) handoffTimes(r *request, at int32, prefill des.Time, f engine.Forecast,
	output int64) (first, last des.Time) {
	d := &s.deployments[s.replicas[at].deployment]
	size := d.limits.blockSize
	blocks := (r.out.InputTokens+size-1)/size - f.Cached/size
	ready := prefill + d.pool.hopUS + d.model.Queueing(r.out.InputTokens) +
		s.transfers.links[d.pool.link].fair.Alone(float64(float64(blocks)*float64(d.blockBytes)))
	// The last token of the prompt is computed again. Others are on their way to this replica, too.
	f.Cached, f.StepRemaining = r.out.InputTokens-1, max(0, f.StepRemaining-ready)
	f.Load = engine.TierLoad{} // the blocks come with the transfer
	f.Queued += int64(s.replicas[at].awaited.all)
	if r.handoff.stage == prefilling && r.replica == at {
		f.Queued--
	}
	first, last = f.Estimate(d.model, r.out.InputTokens, output)
	return ready + first, ready + last
}

// wouldDisaggregate reports whether a prefill replica computes the prompt of a request if it is routed to candidate c,
// a replica of d.
func (s *simulation) wouldDisaggregate(d *deployment, r *request, c *policy.Replica) bool {
	expected := r.out.ExpectedCachedTokens
	if c.Index != r.replica {
		expected, _ = s.router.prefixes.expected(s, r, c, s.router.needs.routing)
	}
	return s.disaggregatesWith(d, r, expected)
}
