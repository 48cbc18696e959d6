package metrics

import "maps"

// Rejudged is the tree with what targets decide taken from another one, of the
// same requests judged by other targets.
func (r *Raw) Rejudged(by *Raw) *Raw {
	judged := *r
	judged.Goodput = by.Goodput
	if r.Sessions != nil && by.Sessions != nil {
		sessions := *r.Sessions
		sessions.Attainment = by.Sessions.Attainment
		judged.Sessions = &sessions
	}
	judged.Cls, judged.Tenant, judged.Model = rejudged(r.Cls, by.Cls), rejudged(r.Tenant, by.Tenant), rejudged(r.Model, by.Model)
	return &judged
}

func rejudged(groups, by map[string]*Group) map[string]*Group {
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
