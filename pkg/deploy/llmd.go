package deploy

import (
	"fmt"

	"blis/pkg/cluster"
	"blis/pkg/llmd"
	"blis/pkg/policy"
)

// llmdRouter returns the configuration of llm-d's router. Priorities are not part of it.
func llmdRouter(c *cluster.Config) (string, error) {
	if err := plainCluster(c); err != nil {
		return "", err
	}
	r, notes := new(llmd.Router), []string{"For llm-d-router v0.10.0."}
	var err error
	if r.Routing, err = profileOf(&c.Policies.Routing); err != nil {
		return "", err
	}
	switch a := &c.Policies.Admission; a.Type {
	case "always-admit":
	case "probabilistic-admitter":
		r.Admission = a
	default:
		return "", unmapped("policies.admission", "is %s; llm-d has always-admit and probabilistic-admitter", a.Type)
	}
	if p := &c.Policies.Priority; p.Type != "constant" {
		if p.Type != "slo-based" {
			return "", unmapped("policies.priority", "is %s; priorities of llm-d are those of InferenceObjectives: "+
				"have constant, slo-based", p.Type)
		}
		notes = append(notes, "Priorities are those of InferenceObjectives, one for each SLO class.")
	}
	if f := c.ControlPlane.FlowControl; f != nil {
		var more []string
		if r.Flow, more, err = flowOf(f, c.Policies.Priority.Type != "constant"); err != nil {
			return "", err
		}
		notes = append(notes, more...)
	}
	if c.Policies.Routing.Type == "weighted" && number(&c.Policies.Routing, "prefix-affinity") > 0 {
		notes = append(notes, "prefix-affinity matches blocks of the engine, prefix-cache-scorer those of at least "+
			"64 tokens.")
	}
	return r.Text(notes), nil
}

// scorersOf are llm-d's scorers for those of the policy weighted, in the order of the profile.
var scorersOf = []struct{ scorer, plugin string }{
	{"queue-depth", "queue-scorer"}, {"kv-utilization", "kv-cache-utilization-scorer"},
	{"prefix-affinity", "prefix-cache-scorer"}, {"precise-prefix", "precise-prefix-cache-scorer"},
	{"running-requests", "running-requests-size-scorer"}, {"active-requests", "active-request-scorer"},
	{"load-aware", "load-aware-scorer"}, {"session-affinity", "session-affinity-scorer"},
	{"no-hit-lru", "no-hit-lru-scorer"},
}

// pickersOf are llm-d's pickers for those of the policy weighted.
var pickersOf = map[any]string{"max-score": "max-score-picker", "random": "random-picker",
	"weighted-random": "weighted-random-picker"}

// profileOf returns a routing policy as a profile.
func profileOf(s *policy.Spec) (policy.Spec, error) {
	p := policy.Spec{Type: "llm-d"}
	if tie, ok := s.Params["tie"]; ok && tie != "random" {
		return p, unmapped("policies.routing.params.tie", "is %v; llm-d has random", tie)
	}
	switch s.Type {
	case "llm-d":
		for i, of := range s.Of {
			if llmd.ReadsAttributes(of.Type) {
				return p, unmapped(fmt.Sprintf("policies.routing.of[%d]", i), "is %s, which reads signals of replicas "+
					"here, and attributes of llm-d's data layer there", of.Type)
			}
		}
		return *s, nil
	case "weighted":
		if number(s, "tiered-prefix") > 0 {
			return p, unmapped("policies.routing.params.tiered-prefix", "has a weight; llm-d weighs the tiers of a "+
				"block in the configuration of its index (kvCacheBackendConfigs), which is not exported")
		}
		for _, m := range scorersOf {
			if w := number(s, m.scorer); w > 0 {
				p.Of = append(p.Of, policy.Spec{Type: m.plugin, Params: map[string]any{"weight": w}})
			}
		}
		p.Of = append(p.Of, policy.Spec{Type: pickersOf[s.Params["picker"]]})
		return p, nil
	case "random":
		p.Of = []policy.Spec{{Type: "random-picker"}}
		return p, nil
	case "least-loaded":
		if s.Params["load"] != "inflight" {
			return p, fmt.Errorf("policies.routing.params.load %w", errSnapshot)
		}
		// Its score falls with the requests in flight, so the highest one is at the replica with the fewest.
		p.Of = []policy.Spec{{Type: "active-request-scorer", Params: map[string]any{"weight": 1.0}},
			{Type: "max-score-picker"}}
		return p, nil
	}
	return p, unmapped("policies.routing", "is %s, which llm-d does not have; have llm-d, weighted, least-loaded, "+
		"random", s.Type)
}

// flowOf returns flow control. Its bands are priorities.
func flowOf(f *cluster.FlowControl, hasPriorities bool) (*llmd.Flow, []string, error) {
	out := &llmd.Flow{Order: f.Order, Fairness: f.Fairness, Capacity: f.Capacity, TTLUS: f.TTLUS,
		UsageLimit: f.UsageLimit}
	var notes []string
	switch f.Order {
	case "fifo":
		out.Order = "fcfs-ordering-policy"
	case "priority", "deadline":
		return nil, nil, unmapped("control_plane.flow_control.order", "is %s; llm-d has priority_bands, "+
			"fcfs-ordering-policy, edf-ordering-policy and slo-deadline-ordering-policy", f.Order)
	}
	switch f.Fairness {
	case "none":
		out.Fairness = "global-strict-fairness-policy"
	case "round-robin":
		return nil, nil, unmapped("control_plane.flow_control.fairness", "is round-robin; llm-d has "+
			"round-robin-fairness-policy and global-strict-fairness-policy")
	}
	if hasPriorities && !f.PriorityBands {
		return nil, nil, unmapped("control_plane.flow_control.priority_bands", "is false; llm-d has a band for each "+
			"priority")
	}
	if f.Detector != nil {
		out.Detector = *f.Detector
	} else {
		out.Detector = policy.Spec{Type: "utilization-detector"}
		notes = append(notes, "The simulated saturation counts requests sent since the last report, "+
			"utilization-detector does not.")
	}
	if f.UsageLimit == nil && f.Saturation != 1 {
		out.UsageLimit = &policy.Spec{Type: "static-usage-limit-policy",
			Params: map[string]any{"threshold": f.Saturation}}
	}
	return out, notes, nil
}
