package sim

import (
	"cmp"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/policy"
)

// TestReferenceOnRouters is TestReference with the routers of llm-d and Dynamo, and with an expression that
// has variables and random numbers.
func TestReferenceOnRouters(t *testing.T) {
	compareSeeds(t, 300, 60, reference.RandomRouters)
}

// setNamedRouter sets the parameters of the routers with the names of other projects.
func setNamedRouter(one *cluster.Config, c *reference.Config) {
	r := &one.Policies.Routing
	n := c.Named
	switch c.Routing {
	case "llm-d":
		r.Params = nil
		if c.Picker == "random" || c.Picker == "weighted-random" {
			weight := func(x float64) map[string]any { return map[string]any{"weight": x} }
			r.Of = []policy.Spec{{Type: "queue-scorer", Params: weight(2)},
				{Type: "kv-cache-utilization-scorer", Params: weight(2)},
				{Type: "prefix-cache-scorer", Params: weight(3)}, {Type: c.Picker + "-picker"}}
		}
	case "stateful":
		r.Type = "expression"
		r.Score = "rand() < 0.3 ? rand() * 4 : state.mean - replica.inflight + " +
			"(replica.index == state.last && state.turn > 0 ? 1 : 0)"
		r.State = map[string]policy.Variable{"last": {Init: -1, Update: "replica.index"},
			"mean": {Init: 2, Update: "ema(state.mean, replica.inflight + state.last, 0.25)"},
			"turn": {Update: "(state.turn + 1) % 3"}}
	case "dynamo-kv":
		r.Params = map[string]any{"overlap_score_credit": n.Credit, "overlap_score_credit_decay": n.Decay,
			"prefill_load_scale": n.PrefillScale, "decode_active_request_weight": n.RequestCost,
			"router_temperature": n.Temperature, "tie": cmp.Or(c.Tie, "first")}
	}
}

// pickerPath is the path of the part of the routing policy that draws.
func pickerPath(c *reference.Config) string {
	if c.Routing == "llm-d" && c.Picker != "max-score" {
		return ".of[3]" // the picker follows the scorers
	}
	return ""
}
