package sim

import (
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/policy"
)

// estimateOf estimates what candidate i would have been for r, at the instant of
// the decision.
func (s *simulation) estimateOf(r *request, v *policy.View, i int) estimate {
	c := &v.Replicas[i]
	at := &s.replicas[c.Index]
	d := &s.deployments[at.deployment]
	since := s.now - des.Time(r.out.ArrivalUS) + d.model.Queueing(r.out.InputTokens) + d.model.Output()
	o := at.engine.Outlook(s.now, r.path, int(r.out.InputTokens))
	e := estimate{candidate: i, replica: c.Index}
	e.first, e.last = o.Estimate(d.model, r.out.InputTokens, r.out.OutputTokens)
	believed := s.believed(c, d, v)
	_, e.viewed = believed.Estimate(d.model, r.out.InputTokens, max(1, int64(v.Request.Predicted)))
	e.first, e.last, e.viewed = e.first+since, e.last+since, e.viewed+since
	return e
}

// believed is the outlook of a candidate as far as the policy could know it: from
// the fields that it was shown, else from the router's own count. Those before the
// request are taken to be like it.
func (s *simulation) believed(c *policy.Replica, d *deployment, v *policy.View) engine.Outlook {
	needs := s.router.routing
	seats := int64(s.replicas[c.Index].seats)
	queued, running := max(0, int64(c.Inflight)-seats), min(int64(c.Inflight), seats)
	if needs&policy.NeedQueueDepth != 0 {
		queued = int64(c.QueueDepth)
	}
	if needs&policy.NeedRunning != 0 {
		running = int64(c.Running)
	}
	o := engine.Outlook{Queued: queued, Decode: running, Budget: d.budget}
	switch {
	case needs&policy.NeedShadow != 0:
		o.Cached = int64(c.Matched) * d.limits.blockSize
	case needs&policy.NeedCache != 0:
		o.Cached = int64(c.Cached) * d.limits.blockSize
	}
	o.Ahead = queued * max(1, v.Request.InputTokens-o.Cached)
	o.Context = running * (v.Request.InputTokens + int64(v.Request.Predicted)/2)
	return o
}
