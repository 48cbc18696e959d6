package sim

import "blis/pkg/policy"

// The router's own counts of the requests in flight at each replica. They are never stale.

// countSent counts a request that was sent to the chosen replica.
func (r *router) countSent(s *simulation, q *request, chosen *policy.Replica) {
	s.telemetry.states[chosen.Index].Inflight++
	if r.needs.all&policy.NeedPrefillTokens != 0 {
		q.prefillTokens = chosen.Stats.Prefix.Uncached(q.out.InputTokens)
		chosen.Stats.PrefillTokens += q.prefillTokens
	}
}

// countPrefilled counts a request that has its first token.
func (r *router) countPrefilled(s *simulation, q *request) {
	if q.prefillTokens != 0 {
		s.telemetry.stats[q.replica].PrefillTokens -= q.prefillTokens
		q.prefillTokens = 0
	}
}

// countLeft counts a request that has left its replica.
func (r *router) countLeft(s *simulation, q *request) {
	r.countPrefilled(s, q)
	s.telemetry.states[q.replica].Inflight--
}
