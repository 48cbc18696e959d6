package sim

import (
	"slices"

	"blis/pkg/policy"
	"blis/pkg/stream"
)

// What auto-scalers measure of the requests of their deployments.

// countTraffic counts a request that arrives for the deployments that scale of its model.
func (s *simulation) countTraffic(r *request) {
	for i := range s.deployments {
		if e := s.deployments[i].elastic; e != nil && e.lead == e && e.traffic != nil && e.model == r.model {
			e.traffic.Arrive(s.now)
		}
	}
}

// countEnded counts a request that is final for its deployment or, if it was sent to none, for all of its model.
func (s *simulation) countEnded(r *request) {
	o := &r.out
	for i := range s.deployments {
		e := s.deployments[i].elastic
		if e == nil || e.lead != e || e.traffic == nil || e.model != r.model ||
			o.Deployment != "" && !s.scalesOne(e, o.Deployment) {
			continue
		}
		x := policy.Ended{AtUS: s.now, Class: r.class.Name, HasTargets: o.SLOMet != nil,
			MetTargets: o.SLOMet != nil && *o.SLOMet, TTFTUS: -1, E2EUS: -1,
			Input: o.InputTokens, Output: o.GeneratedTokens, Cached: o.ExpectedCachedTokens}
		if !o.FirstTokenUS.IsZero() {
			x.TTFTUS = int64(o.FirstTokenUS - o.Began())
		}
		if o.State == stream.StateCompleted {
			x.E2EUS = int64(o.CompletedUS - o.Began())
		}
		e.traffic.End(&x)
	}
}

// scalesOne reports whether the auto-scaler of e scales the deployment of this id.
func (s *simulation) scalesOne(e *elastic, id string) bool {
	return slices.ContainsFunc(e.members, func(m int32) bool { return s.deployments[m].elastic.id == id })
}
