package sim

import "blis/pkg/policy"

// The router's own counts of the requests in flight at each replica. They are never stale.

// countSent counts a request that was sent to the chosen replica.
func (r *router) countSent(s *simulation, q *request, chosen *policy.Replica) {
	s.telemetry.states[chosen.Index].Inflight++
	s.telemetry.extremes.Changed(chosen.Index)
	if r.needs.all&policy.NeedPrefillTokens != 0 {
		q.prefillTokens = r.uncached(s, q, chosen)
		chosen.Stats.PrefillTokens += q.prefillTokens
	}
	if r.active != nil {
		r.active.Add(chosen.Index, q.path, int(q.out.InputTokens))
	}
}

// uncached returns how many tokens of a prompt the router expects the chosen replica to compute, from the
// block index or else the caches that its policies see.
func (r *router) uncached(s *simulation, q *request, chosen *policy.Replica) int64 {
	if r.needs.all&policy.NeedBlockIndex != 0 {
		return chosen.Stats.Prefix.Uncached(q.out.InputTokens)
	}
	cached := int64(chosen.Cached) * s.deployments[s.replicas[chosen.Index].deployment].limits.blockSize
	return max(0, q.out.InputTokens-cached)
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
	if r.active != nil {
		r.active.Remove(q.replica, q.path, int(q.out.InputTokens))
	}
	r.countLeftReplica(s, q.replica)
}

// countLeftReplica counts one request less in flight at a replica.
func (r *router) countLeftReplica(s *simulation, replica int32) {
	s.telemetry.states[replica].Inflight--
	s.telemetry.extremes.Changed(replica)
}
