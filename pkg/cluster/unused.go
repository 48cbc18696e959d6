package cluster

import (
	"blis/pkg/policy"
)

// warnUnused reports settings of the control plane and its policies that differ
// from the default and have no effect.
func (c *Config) warnUnused(plane *policy.Plane, warn func(string)) {
	report := func(path, why string) { warn(path + " has no effect: " + why) }
	byPriority := c.ControlPlane.FlowControl != nil && c.ControlPlane.FlowControl.Order == "priority"
	for _, unused := range plane.Unused {
		if unused.Path != policy.PriorityPath || !byPriority {
			report("policies."+unused.Path, unused.Reason)
		}
	}
	p := &c.ControlPlane
	if p.MaxDelays != defaultControlPlane().MaxDelays && !plane.Delays {
		report("control_plane.max_delays", "admission never delays")
	}
	needs := plane.Needs()
	if p.FlowControl != nil {
		needs |= policy.FlowNeeds
	}
	if needs&policy.NeedShadow == 0 {
		const why = "no policy uses the router's shadow of prefixes"
		if p.ShadowBlocks != defaultControlPlane().ShadowBlocks {
			report("control_plane.shadow_blocks", why)
		}
		if p.ShadowEvictions {
			report("control_plane.shadow_evictions", why)
		}
	}
	p.Snapshots.warnUnused(needs, report)
}

// warnUnused reports fields that no policy reads and a default that no field uses.
func (s *Snapshots) warnUnused(needs policy.Needs, warn func(path, why string)) {
	var plain Snapshots
	plain.SetDefaults()
	defaultUsed := false // whether a field that is read uses Default
	for f, refresh := range s.Fields() {
		switch r := *refresh; {
		case r == s.Default:
			defaultUsed = defaultUsed || needs.Has(policy.Field(f))
		case r != *plain.Fields()[f] && !needs.Has(policy.Field(f)):
			warn("control_plane.snapshots."+policy.FieldNames[f], "no policy reads it")
		}
	}
	if s.Default != "" && !defaultUsed {
		warn("control_plane.snapshots.default", "no policy reads a field that uses it")
	}
}
