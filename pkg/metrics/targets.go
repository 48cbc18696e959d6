package metrics

import "maps"

// WithTargets returns the tree with everything that depends on targets replaced from by,
// the metrics of the same requests under other targets.
func (r *Raw) WithTargets(by *Raw) *Raw {
	judged := *r
	judged.Goodput = by.Goodput
	if r.Sessions != nil && by.Sessions != nil {
		sessions := *r.Sessions
		sessions.Attainment = by.Sessions.Attainment
		judged.Sessions = &sessions
	}
	judged.Cls, judged.Tenants, judged.Models = groupsWithTargets(r.Cls, by.Cls), groupsWithTargets(r.Tenants,
		by.Tenants),
		groupsWithTargets(r.Models, by.Models)
	return &judged
}

func groupsWithTargets(groups, by map[string]*Group) map[string]*Group {
	groups = maps.Clone(groups)
	for name, g := range groups {
		group := *g
		group.Goodput = nil
		if other := by[name]; other != nil {
			group.Goodput = other.Goodput
		}
		groups[name] = &group
	}
	return groups
}
