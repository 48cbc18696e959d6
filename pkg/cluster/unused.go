package cluster

import (
	"blis/pkg/policy"
)

// warnIdle names what is said of the control plane and its policies, other than by
// default, and has no effect.
func (c *Config) warnIdle(plane *policy.Plane, warn func(string)) {
	tell := func(path, why string) { warn(path + " has no effect: " + why) }
	byPriority := c.ControlPlane.FlowControl != nil && c.ControlPlane.FlowControl.Order == "priority"
	for _, idle := range plane.Unused {
		if idle.Path != policy.PriorityPath || !byPriority {
			tell("policies."+idle.Path, idle.Reason)
		}
	}
	p := &c.ControlPlane
	if p.MaxDelays != defaultControlPlane().MaxDelays && !plane.Delays {
		tell("control_plane.max_delays", "admission never delays")
	}
	needs := plane.Needs()
	if p.FlowControl != nil {
		needs |= policy.FlowNeeds
	}
	if needs&policy.NeedShadow == 0 {
		const why = "no policy looks at the router's shadow of prefixes"
		if p.ShadowBlocks != defaultControlPlane().ShadowBlocks {
			tell("control_plane.shadow_blocks", why)
		}
		if p.ShadowEvictions {
			tell("control_plane.shadow_evictions", why)
		}
	}
	p.Snapshots.idle(needs, tell)
}

// idle tells of fields that nobody looks at and of a default that no other takes.
func (s *Snapshots) idle(needs policy.Needs, tell func(path, why string)) {
	var plain Snapshots
	plain.Fill()
	taken := false // the default
	for f, refresh := range s.Fields() {
		switch r := *refresh; {
		case r == s.Default:
			taken = taken || needs.Has(policy.Field(f))
		case r != *plain.Fields()[f] && !needs.Has(policy.Field(f)):
			tell("control_plane.snapshots."+policy.FieldNames[f], "no policy looks at it")
		}
	}
	if s.Default != "" && !taken {
		tell("control_plane.snapshots.default", "no policy looks at a field that has it")
	}
}
