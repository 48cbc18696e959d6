package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/policy"
)

// TestReferenceOnRouters is TestReference with the routers of llm-d and Dynamo, and with an expression that
// has variables and random numbers.
func TestReferenceOnRouters(t *testing.T) {
	compareSeeds(t, 300, 60, reference.RandomRouters, 41, 80, 91, 123, 168)
}

// TestReferenceOnFleets is TestReference with more than a hundred replicas. Where decisions are traced, routers look at
// each of them; where not, the metrics must be the same.
func TestReferenceOnFleets(t *testing.T) {
	for seed := range randomCases(40, 10) {
		c, requests := reference.RandomFleet(seed)
		if diff := compare(t, c, requests); diff != "" {
			t.Fatalf("seed %d: the reference (-) and the simulator (+) differ:\n%s", seed, diff)
		}
		checkMetrics(t, func(trace string, out io.Writer) error {
			o := testOptions(c)
			o.Trace, o.ITL = trace, false
			return runCluster(t.Context(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)), out, o)
		})
	}
}

// TestBusyFleets is TestReferenceOnFleets without the reference, for a longer time.
func TestBusyFleets(t *testing.T) {
	workload := benchWorkload(4000, 128*4)
	for _, routing := range []string{"least-loaded", "prefix"} {
		file := benchCluster(t, 128, routing)
		checkMetrics(t, func(trace string, out io.Writer) error {
			o := Options{Cluster: file, Trace: trace, Plain: true}
			return Run(t.Context(), bytes.NewReader(workload), out, o)
		})
	}
}

// checkMetrics checks that a run has the same metrics at all trace levels. Only at level full do the routers of many
// replicas look at each of them.
func checkMetrics(t *testing.T, run func(trace string, out io.Writer) error) {
	t.Helper()
	var want []byte
	for _, trace := range []string{"full", "decisions", "minimal"} {
		var out bytes.Buffer
		if err := run(trace, &out); err != nil {
			t.Fatal(err)
		}
		record := regexp.MustCompile(`(?m)^{"kind":"metrics".*$`).Find(out.Bytes())
		got := regexp.MustCompile(`"anomalies":{[^}]*},?`).ReplaceAll(record, nil) // only with outcomes
		if want == nil {
			want = got
		}
		if len(got) == 0 || !bytes.Equal(want, got) {
			t.Fatalf("at level full the metrics are\n%s\nand at level %s\n%s", want, trace, got)
		}
	}
}

// TestReferenceOnAttributes is TestReference with a router that compares what replicas report.
func TestReferenceOnAttributes(t *testing.T) {
	compareSeeds(t, 240, 60, reference.RandomAttributes, 32, 104, 178, 479)
}

// TestReferenceOnProfiles is TestReference with random profiles of llm-d, for each plugin some that have it.
func TestReferenceOnProfiles(t *testing.T) {
	plugins := reference.Plugins()
	for i, plugin := range plugins {
		t.Run(plugin, func(t *testing.T) {
			compareSeeds(t, 60, 10, func(seed uint64) (reference.Config, []reference.Request) {
				return reference.RandomProfiles(seed*uint64(len(plugins))+uint64(i), plugin)
			}, 71, 82, 83, 94)
		})
	}
}

// TestReferenceOnAdmissions is TestReference with llm-d's probabilistic admitter.
func TestReferenceOnAdmissions(t *testing.T) {
	compareSeeds(t, 300, 60, reference.RandomAdmissions)
}

// TestReferenceOnTenantLimits is TestReference with admission that limits tenants.
func TestReferenceOnTenantLimits(t *testing.T) {
	compareSeeds(t, 400, 60, reference.RandomTenantLimits)
}

// tenantLimitsOf converts the reference's limits of tenants.
func tenantLimitsOf(l *reference.TenantLimits) policy.Spec {
	table := func(of map[string]float64) map[string]any {
		t := map[string]any{}
		for tenant, x := range of {
			t[tenant] = x
		}
		return t
	}
	switch l.Policy {
	case "token-bucket":
		unit := "requests"
		if l.InputTokens {
			unit = "input_tokens"
		}
		return policy.Spec{Type: l.Policy, Params: map[string]any{"unit": unit, "per_tenant": true, "capacity": l.Limit,
			"refill_per_s": l.PerSecond, "capacities": table(l.Own), "refills_per_s": table(l.OwnRefills)}}
	case "rate-limit":
		return policy.Spec{Type: l.Policy, Params: map[string]any{"key": "tenant", "limit": l.Limit,
			"window_s": (float64(l.WindowUS) + 0.5) / 1e6, "limits": table(l.Own)}}
	}
	s := policy.Spec{Type: l.Policy, Params: map[string]any{"min_inflight": l.MinInflight, "shares": table(l.Own)}}
	if l.Limit > 0 {
		s.Params["share"] = l.Limit
	}
	return s
}

// TestReferenceOnPools is TestReference with pools of replicas.
func TestReferenceOnPools(t *testing.T) {
	compareSeeds(t, 300, 60, reference.RandomPools)
}

// TestTiedPrefixes sends one prompt again and again. When its replica has too many requests in flight, others get
// the prompt, too, so that the longest prefixes tie.
func TestTiedPrefixes(t *testing.T) {
	for seed := range 8 {
		c := reference.Config{Replicas: 3, MaxNumSeqs: 4, MaxNumBatchedTokens: 32, BlockSize: 4, NumBlocks: 200 + seed,
			Chunked: true, PrefixCaching: true, Beta: []float64{100, 1, 1}, Routing: "prefix-affinity",
			HorizonUS: reference.Never, Choices: reference.Choices{Tie: "random"}}
		var requests []reference.Request
		for i := range 40 {
			requests = append(requests, reference.Request{ID: fmt.Sprint(i), ArrivalUS: int64(10 * i), Input: 18,
				Output: 4, Prompt: []reference.Segment{{ID: "p", Tokens: 16}}, DeadlineUS: reference.Never})
		}
		if diff := compare(t, c, requests); diff != "" {
			t.Fatalf("the reference (-) and the simulator (+) differ:\n%s", diff)
		}
	}
}

// setProfile sets the plugins of an llm-d profile.
func setProfile(r *policy.Spec, c *reference.Config) {
	r.Type, r.Params = "llm-d", nil
	for _, p := range c.Profile {
		params := map[string]any{}
		if p.Weight > 0 {
			params["weight"] = p.Weight
		}
		numbers := params
		if p.Name == "utilization-filter" {
			numbers = map[string]any{}
			params["conditions"] = numbers
		}
		for name, x := range p.Numbers {
			numbers[name] = x
		}
		for name, word := range p.Words {
			if params[name] = word; name == "fallbackOnEmpty" {
				params[name] = word == "true"
			}
		}
		r.Of = append(r.Of, policy.Spec{Type: p.Name, Params: params})
	}
	r.Of = append(r.Of, policy.Spec{Type: c.Picker + "-picker"})
	if n := c.Named; n.BlockTokens > 0 {
		r.Of = append(r.Of, policy.Spec{Type: "approx-prefix-cache-producer", Params: map[string]any{"autoTune": false,
			"blockSizeTokens": float64(n.BlockTokens), "lruCapacityPerServer": float64(n.Capacity),
			"maxPrefixTokensToMatch": float64(n.MaxTokens), "maxPrefixBlocksToMatch": float64(n.MaxBlocks)}})
	}
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
	case "pools":
		shares := map[string]any{}
		for i, bound := range c.Pools.Bounds {
			shares[fmt.Sprint(bound)] = c.Pools.Shares[i]
		}
		if r.Params["shares"] = shares; c.Pools.SpillAt > 0 {
			r.Params["spill_at"] = c.Pools.SpillAt
		}
	case "profile":
		setProfile(r, c)
	case "stateful":
		r.Type = "expression"
		r.Score = "rand() < 0.3 ? rand() * 4 : state.mean - replica.inflight + " +
			"(replica.index == state.last && state.turn > 0 ? 1 : 0)"
		r.State = map[string]policy.Variable{"last": {Init: -1, Update: "replica.index"},
			"mean": {Init: 2, Update: "ema(state.mean, replica.inflight + state.last, 0.25)"},
			"turn": {Update: "(state.turn + 1) % 3"}}
	case "attribute":
		r.Type = "expression"
		r.Score = fmt.Sprintf("%g * replica.%s", n.Sign, n.Attribute)
	case "dynamo-kv":
		r.Params = map[string]any{"overlap_score_credit": n.Credit, "overlap_score_credit_decay": n.Decay,
			"prefill_load_scale": n.PrefillScale, "decode_active_request_weight": n.RequestCost,
			"router_track_prefill_tokens": !n.NoPrefill, "router_track_active_blocks": !n.NoBlocks,
			"router_temperature": n.Temperature, "tie": cmp.Or(c.Tie, "first")}
	}
}

// pickerPath is the path of the part of the routing policy that draws.
func pickerPath(c *reference.Config) string {
	if c.Routing == "profile" {
		return fmt.Sprintf(".of[%d]", len(c.Profile))
	}
	if c.Routing == "llm-d" && c.Picker != "max-score" {
		return ".of[3]" // the picker follows the scorers
	}
	return ""
}
