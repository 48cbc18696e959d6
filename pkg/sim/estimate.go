package sim

import (
	"cmp"
	"slices"

	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/policy"
)

// judge estimates what replicas are for a request, by their true state and by what
// its policy saw.
type judge struct {
	paces []pace // of replicas, by their numbers
	// What follows is scratch.
	estimates      []estimate
	true, believed []engine.Outlook
	coming         []engine.Coming
}

// estimate is what a candidate would be for a request: the times from its arrival
// to the first and the last token in µs, by the true state, and that to the last by
// what the policy saw.
type estimate struct {
	candidate           int
	replica             int32
	first, last, viewed des.Time
}

// clairvoyant chooses by the true state and the true length of the answer: the
// candidate where the request is estimated to end first.
func (g *judge) clairvoyant(s *simulation, r *request, v *policy.View) policy.Choice {
	g.estimate(s, r, v)
	best := slices.MinFunc(g.estimates, func(a, b estimate) int { return cmp.Compare(a.last, b.last) })
	for _, e := range g.estimates {
		v.Account.Load(e.candidate, float64(e.last)/1000)
	}
	return policy.Choice{Candidate: best.candidate, Score: float64(best.last) / 1000, Why: "ends first"}
}

// estimate estimates each candidate at the instant of the decision.
func (g *judge) estimate(s *simulation, r *request, v *policy.View) {
	g.true, g.believed, g.estimates = g.true[:0], g.believed[:0], g.estimates[:0]
	for i := range v.Replicas {
		g.true = append(g.true, g.outlook(s, r, &v.Replicas[i]))
		g.believed = append(g.believed, s.believed(&v.Replicas[i], r))
	}
	g.expect(s, v)
	for i := range v.Replicas {
		c := &v.Replicas[i]
		m := s.deployments[s.replicas[c.Index].deployment].model
		since := s.now - des.Time(r.out.ArrivalUS) + m.Queueing(r.out.InputTokens)
		first, last := g.true[i].Estimate(m, r.out.InputTokens, r.out.OutputTokens)
		_, viewed := g.believed[i].Estimate(m, r.out.InputTokens, max(1, int64(r.predicted)))
		g.estimates = append(g.estimates, estimate{i, c.Index, since + first, since + last, since + viewed})
	}
}

// outlook is the true one of a candidate.
func (g *judge) outlook(s *simulation, r *request, c *policy.Replica) engine.Outlook {
	at := &s.replicas[c.Index]
	m := s.deployments[at.deployment].model
	g.coming = g.coming[:0]
	enqueued := s.now + m.Queueing(r.out.InputTokens)
	for _, slot := range at.coming {
		if q := &s.slots[slot]; q != r && des.Time(q.out.RoutedUS)+m.Queueing(q.out.InputTokens) <= enqueued {
			g.coming = append(g.coming, engine.Coming{Path: q.path, Input: int(q.out.InputTokens)})
		}
	}
	return at.engine.Outlook(s.now, engine.Coming{Path: r.path, Input: int(r.out.InputTokens)}, g.coming)
}

// believed is the outlook of a candidate as far as the policy could know it: from
// the fields that it was shown, else from the router's own count. Those before the
// request are taken to be like it.
func (s *simulation) believed(c *policy.Replica, r *request) engine.Outlook {
	d := &s.deployments[s.replicas[c.Index].deployment]
	needs := s.router.routing
	seats := int64(s.replicas[c.Index].seats)
	queued, running := max(0, int64(c.Inflight)-seats), min(int64(c.Inflight), seats)
	if needs&policy.NeedQueueDepth != 0 {
		queued = int64(c.QueueDepth)
	}
	if needs&policy.NeedRunning != 0 {
		running = int64(c.Running)
	}
	o := engine.Outlook{Queued: queued, Decode: running, Budget: d.budget, Seats: seats}
	switch {
	case needs&policy.NeedShadow != 0:
		o.Cached = int64(c.Matched) * d.limits.blockSize
	case needs&policy.NeedCache != 0:
		o.Cached = int64(c.Cached) * d.limits.blockSize
	}
	o.Ahead = queued * max(1, r.out.InputTokens-o.Cached)
	o.Context = running * (r.out.InputTokens + int64(r.predicted)/2)
	return o
}
