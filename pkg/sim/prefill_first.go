package sim

import "blis/pkg/policy"

// With stage_order prefill-first the router works as Dynamo's does (lib/llm/src/kv_router/prefill_router): the prefill
// replica is chosen first, by prefixes, and then the decode replica, as if no cache had anything of the prompt. Before
// both, the decider asks which decode replica would be chosen by prefixes: if the prompt is not computed elsewhere, the
// request goes there.

// sendPrefillFirst routes a request of such a deployment.
func (s *simulation) sendPrefillFirst(slot int32) error {
	r, needs := s.request(slot), s.router.needs.routing
	d := &s.deployments[s.models[r.model].deployments[0]]
	decode := func() (*policy.View, policy.Choice, error) {
		v := s.router.views.viewOf(s, r, needs, s.router.views.reachable(s, r, needs))
		choice, err := s.router.chooser.choose(s, slot, v)
		return v, choice, err
	}
	if !d.pool.decider.ReadsCaches() && s.disaggregatesWith(d, r, 0) {
		return s.sendToBoth(slot, d, decode)
	}
	v, choice, err := decode()
	if err != nil {
		return err
	}
	expected, _ := s.router.prefixes.expected(s, r, &v.Replicas[choice.Candidate], needs)
	if s.disaggregatesWith(d, r, expected) {
		return s.sendToBoth(slot, d, decode)
	}
	if err := s.recordRoute(slot, v, choice); err != nil {
		return err
	}
	s.router.flow.recordSend(r.replica)
	if err := s.observers.notify(s, onSend, slot); err != nil {
		return err
	}
	if reason := s.rejects(r.replica); reason != "" {
		return s.rejectSent(slot, reason)
	}
	return s.leave(slot, d)
}

// sendToBoth chooses a prefill replica and then, by decode, the decode replica of a request.
func (s *simulation) sendToBoth(slot int32, d *deployment, decode func() (*policy.View, policy.Choice, error)) error {
	r := s.request(slot)
	v, choice, err := s.choosePrefill(slot, d)
	if err != nil {
		return err
	}
	prefill, expected := v.Replicas[choice.Candidate], r.out.ExpectedCachedTokens
	r.handoff.replica = prefill.Index
	if err := s.decidePrefill(slot, v, choice); err != nil {
		return err
	}
	s.router.views.noPrefixes = true
	v, choice, err = decode()
	s.router.views.noPrefixes = false
	if err != nil {
		return err
	}
	if err := s.recordRoute(slot, v, choice); err != nil {
		return err
	}
	r.out.ExpectedCachedTokens = expected
	if err := s.observers.notify(s, onSend, slot); err != nil {
		return err
	}
	if reason := s.rejects(r.replica); reason != "" {
		return s.rejectSent(slot, reason)
	}
	s.awaitPrefill(r, &prefill)
	return s.leaveForPrefill(slot, d, &prefill)
}
