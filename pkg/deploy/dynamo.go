package deploy

import (
	"fmt"
	"strings"

	"blis/pkg/cluster"
)

// dynamoFlags are the flags for the parameters of the policy dynamo-kv (Dynamo 1.6.1,
// dynamo/common/configuration/groups/kv_router_args.py).
var dynamoFlags = []struct{ param, flag string }{
	{"overlap_score_credit", "router-kv-overlap-score-credit"},
	{"overlap_score_credit_decay", "router-kv-overlap-score-credit-decay"},
	{"prefill_load_scale", "router-prefill-load-scale"},
	{"decode_active_request_weight", "router-decode-active-request-weight"},
	{"router_temperature", "router-temperature"},
	{"router_track_prefill_tokens", "router-track-prefill-tokens"},
	{"router_track_active_blocks", "router-track-active-blocks"},
}

// dynamoRouter returns the flags of dynamo.frontend.
func dynamoRouter(c *cluster.Config) (string, error) {
	if err := plainCluster(c); err != nil {
		return "", err
	}
	if t := c.Policies.Admission.Type; t != "always-admit" {
		return "", unmapped("policies.admission", "is %s; Dynamo's router has always-admit", t)
	}
	if c.ControlPlane.FlowControl != nil {
		return "", unmapped("control_plane.flow_control", "is not exported")
	}
	f := flags{}
	switch s := &c.Policies.Routing; s.Type {
	case "round-robin", "random":
		f.add("router-mode", s.Type)
	case "least-loaded", "power-of-two":
		if s.Params["load"] != "inflight" {
			return "", fmt.Errorf("policies.routing.params.load %w", errSnapshot)
		}
		f.add("router-mode", s.Type)
	case "dynamo-kv":
		f.add("router-mode", "kv")
		f.add("kv-cache-block-size", c.Deployments[0].Engine.BlockSize)
		for _, m := range dynamoFlags {
			if on, ok := s.Params[m.param].(bool); ok {
				f.toggle(m.flag, on)
			} else {
				f.add(m.flag, number(s, m.param))
			}
		}
	default:
		return "", unmapped("policies.routing", "is %s; Dynamo has dynamo-kv, round-robin, random, least-loaded and "+
			"power-of-two", s.Type)
	}
	for i := range c.Deployments {
		if c.Deployments[i].Engine.BlockSize != c.Deployments[0].Engine.BlockSize {
			return "", unmapped("deployments."+c.Deployments[i].ID+".engine.block_size",
				"differs from that of deployments.%s; Dynamo's router has one", c.Deployments[0].ID)
		}
	}
	return "# For Dynamo 1.6.1.\npython -m dynamo.frontend " + strings.Join(f, " ") + "\n", nil
}
