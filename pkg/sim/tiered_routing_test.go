package sim

import (
	"bytes"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/stream"
)

// outcomesWith returns the outcomes of a run of the reference's cluster.
func outcomesWith(t *testing.T, c reference.Config, requests []reference.Request, scorer string) (lines []string) {
	t.Helper()
	config, o := clusterOf(c), testOptions(c)
	config.Policies.Routing.Params[scorer] = config.Policies.Routing.Params["tiered-prefix"]
	if scorer != "tiered-prefix" {
		for _, name := range []string{"tiered-prefix", "tiered_prefix_cpu", "tiered_prefix_storage"} {
			delete(config.Policies.Routing.Params, name)
		}
	}
	var out bytes.Buffer
	must(runCluster(t.Context(), config, testSpecs(c), bytes.NewReader(workloadOf(requests)), &out, o))
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, `{"kind":"outcome"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestTieredPrefixWithoutTiers: without tiers the scorer tiered-prefix is precise-prefix. With tiers whose weights are
// not 0 it differs.
func TestTieredPrefixWithoutTiers(t *testing.T) {
	differ := 0
	for seed := range randomCases(600, 60) {
		c, requests := reference.RandomTieredRouting(seed)
		c.TierWeights = [3]float64{1, 0.8, 0.3}
		if difference(outcomesWith(t, c, requests, "precise-prefix"),
			outcomesWith(t, c, requests, "tiered-prefix")) != "" {
			differ++
		}
		c.Host = nil
		if diff := difference(outcomesWith(t, c, requests, "precise-prefix"),
			outcomesWith(t, c, requests, "tiered-prefix")); diff != "" {
			t.Fatalf("seed %d: precise-prefix (-) and tiered-prefix (+) differ:\n%s", seed, diff)
		}
	}
	if differ < 3 {
		t.Errorf("with tiers %d runs differ", differ)
	}
}

// TestStaleTiers: X takes the blocks of A in the cache from 3 ms on, and the host keeps copies of them, so that they
// count 0.8 for B. What the router has read at 3 ms still has A in the cache, and what it has read at the start has
// nothing.
func TestStaleTiers(t *testing.T) {
	for refresh, want := range map[string]float64{"immediate": 0.8, "periodic 5ms": 0.8, "periodic 3ms": 1,
		"periodic 1s": 0} {
		c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - id: main
    model: m
    replicas: 1
    engine: {num_gpu_blocks_override: 6, block_size: 16, max_model_len: 96, kv_bytes_per_block: 2097152}
    latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1000, 10, 100]}
    kv_tiers: [{tier: cpu, blocks: 64, load: {latency_us: 50, gb_per_s: 25}, store: {latency_us: 50, gb_per_s: 25}}]
control_plane: {snapshots: {cache: `+refresh+`}}
policies: {routing: {type: weighted, params: {tiered-prefix: 1}}}
`), cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		must(runLoaded(t.Context(), c, strings.NewReader(`{"kind":"request","id":"a","arrival_us":0,"input_tokens":70,`+
			`"output_tokens":2,"prompt":[{"id":"p","tokens":64}]}
{"kind":"request","id":"x","arrival_us":3000,"input_tokens":80,"output_tokens":1}
{"kind":"request","id":"b","arrival_us":6000,"input_tokens":70,"output_tokens":2,"prompt":[{"id":"p","tokens":64}]}
`), &out, Options{Trace: "decisions", Plain: true}))
		var d stream.Decision
		var o stream.Outcome
		for r := stream.NewReader(&out); r.Next(); {
			switch r.Kind() {
			case stream.KindDecision:
				must(r.Decode(&d))
			case stream.KindOutcome:
				must(r.Outcome(&o))
			}
		}
		if d.Request != "b" || float64(d.Score) != want || o.LoadedTokens.Total() != 64 {
			t.Errorf("%s: the score of %s is %v, want %v; %d tokens are loaded", refresh, d.Request, d.Score, want,
				o.LoadedTokens.Total())
		}
	}
}
