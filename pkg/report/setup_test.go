package report

import (
	"encoding/json"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// setupOf is the section about a configuration, without its first line.
func setupOf(t *testing.T, config string) string {
	t.Helper()
	var c map[string]any
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	w := &writer{Input: &Input{Header: &stream.Header{Run: &stream.RunHeader{Config: c}}}, Options: &Options{},
		limit: maxSectionLength}
	setup.write(w)
	return string(w.text)
}

const (
	testEngine = `"engine": {"max_num_seqs": 256, "max_num_batched_tokens": 2048, "block_size": 16},
		"computed": {"kv_blocks": 28090}`
	smallEngine = `"engine": {"max_num_seqs": 64, "max_num_batched_tokens": 8192, "block_size": 16},
		"computed": {"kv_blocks": 9000}`
	engineLine = "max_num_seqs 256, max_num_batched_tokens 2048, 28090 KV blocks of 16"
)

// The setup has a fourth line for what only some clusters have.
func TestSetup(t *testing.T) {
	for _, test := range []struct {
		name, config string
		want         []string
	}{
		{"plain", `{"deployments": [{"id": "main", "model": "m", "gpu": "H100", "replicas": 3, ` + testEngine + `}]}`,
			[]string{"policies: others default", "engine: main " + engineLine,
				"cluster: main 3 x H100 with m; snapshots"}},
		{"pools", `{"policies": {"prefill_routing": {"type": "least-loaded", "params": {"tie": "first"}}},
			"deployments": [{"id": "main", "model": "m", "gpu": "H100", "replicas": 3, "architecture": "disaggregated",
			"prefill": {"gpu": "H200", "replicas": 2, ` + smallEngine + `},
			"decider": {"type": "prefix-based", "non_cached_tokens": 256, "prompt_tokens": 0},
			"transfer": {"latency_us": 205, "out_gb_per_s": 50, "in_gb_per_s": 12.5, "granularity": "chunk",
			"pipeline": true},
			"backpressure": {"max_waiting": 4}, ` + testEngine + `}]}`,
			[]string{"policies: prefill_routing least-loaded {tie: first}; others default",
				"engine: main " + engineLine +
					", its prefill pool max_num_seqs 64, max_num_batched_tokens 8192, 9000 KV blocks of 16",
				"cluster: main prefill 2 x H200 + decode 3 x H100 with m; snapshots",
				"also: pools: decider prefix-based (prefill pool from 256 tokens not cached), " +
					"links 50 GB/s out and 12.5 in, 205 us, granularity chunk, pipeline, " +
					"backpressure from 4 waiting"}},
		{"tiers of one of two deployments", `{"deployments": [
			{"id": "a", "model": "m", "gpu": "H100", "replicas": 3, ` + testEngine + `},
			{"id": "b", "model": "m", "gpu": "H100", "replicas": 1, "kv_tiers": [{"tier": "cpu", "gib": 20,
			"load": {"gb_per_s": 25}}], "kv_offload": {"policy": "threshold", "threshold": 0.9, "eviction": "arc",
			"min_load_blocks": 8}, ` + testEngine + `}]}`,
			[]string{"policies: others default", "engine: a " + engineLine + ", b " + engineLine,
				"cluster: a 3 x H100 with m, b 1 x H100 with m; snapshots",
				"also: KV tier of b: cpu 20 GiB a replica, loads 25 GB/s, offload threshold 0.9, " +
					"eviction arc, min_load_blocks 8"}},
		{"tiers of pools", `{"deployments": [{"id": "main", "model": "m", "gpu": "H100", "replicas": 3,
			"kv_tiers": [{"tier": "cpu", "gib": 64, "load": {"gb_per_s": 25}}],
			"kv_offload": {"policy": "eager", "eviction": "lru"}, "decider": {"type": "always"},
			"transfer": {"latency_us": 205, "out_gb_per_s": 50, "in_gb_per_s": 50},
			"prefill": {"gpu": "H200", "replicas": 2, "max_replicas": 5,
				"kv_tiers": [{"tier": "cpu", "gib": 8, "load": {"gb_per_s": 10}}],
			"kv_offload": {"policy": "eager", "eviction": "arc"}, ` + testEngine + `}, ` + testEngine + `}]}`,
			[]string{"policies: others default", "engine: main " + engineLine,
				"cluster: main prefill 2 (1-5) x H200 + decode 3 x H100 with m; snapshots",
				"also: pools: decider always, links 50 GB/s out and 50 in, 205 us; KV tier at prefill replicas: " +
					"cpu 8 GiB a replica, loads 10 GB/s, offload eager, eviction arc; KV tier at decode replicas: " +
					"cpu 64 GiB a replica, loads 25 GB/s, offload eager, eviction lru"}},
		{"scaling", `{"policies": {"autoscale": {"type": "queue-depth", "params": {"target": 10}, "interval": "15s",
			"stabilization": {"up": "0s", "down": "300s"},
			"actuation": {"provision": {"type": "constant", "params": {"value": "30s"}}}}},
			"deployments": [{"id": "main", "model": "m", "gpu": "H100", "replicas": 2, "max_replicas": 6,
			` + testEngine + `}]}`,
			[]string{"policies: others default", "engine: main " + engineLine,
				"cluster: main 2 (1-6) x H100 with m; snapshots",
				"also: autoscale queue-depth {target: 10} every 15s, provision 30s, scale-down window 300s"}},
		{"scaling by a trigger from zero", `{"policies": {"autoscale": {"type": "expression", "desired": "3.0",
			"trigger": {"when": "fleet.waiting > 4.0", "for": "2s"}, "stabilization": {"up": "0s", "down": "0s"},
			"actuation": {"provision": {"type": "exponential", "params": {"mean": "30s"}}}}},
			"deployments": [{"id": "main", "model": "m", "gpu": "H100", "replicas": 2, "min_replicas": 0,
			"max_replicas": 6, ` + testEngine + `}]}`,
			[]string{"policies: others default", "engine: main " + engineLine,
				"cluster: main 2 (0-6) x H100 with m; snapshots",
				"also: autoscale expression {desired: 3.0} when fleet.waiting > 4.0 for 2s, " +
					"provision exponential {mean: 30s}"}},
		{"failures", `{"control_plane": {"health_check": {"interval": "500ms", "failures": 2}}, "failures": {"events": [
			{"at": "2s", "kind": "down", "deployment": "main", "replica": 1, "for": "3s", "inflight": "redirect"},
			{"at": "12s", "kind": "slow", "deployment": "main", "replica": 0, "factor": 3},
			{"at": "20s", "kind": "partition", "deployment": "main", "replica": 0, "for": "5s"}],
			"random": {"mtbf": "10m", "mttr": "30s", "inflight": "fail"}},
			"deployments": [{"id": "main", "model": "m", "gpu": "H100", "replicas": 2, ` + testEngine + `}]}`,
			[]string{"policies: others default", "engine: main " + engineLine,
				"cluster: main 2 x H100 with m; snapshots",
				"also: failures: replica 1 down at 2s for 3s (its requests: redirect), replica 0 slow x3 at 12s, " +
					"1 more, random MTBF 10m MTTR 30s (requests: fail); health checks every 500ms, a replica is " +
					"out after 2 failed"}},
	} {
		if got, want := setupOf(t, test.config), strings.Join(test.want, "\n")+"\n"; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, want)
		}
	}
}

// The lines of large clusters are cut, so that the section keeps its limit.
func TestSetupOfLargeClustersIsCut(t *testing.T) {
	d := `{"id": "a deployment with a name that is long", "model": "an organization/a model with a name that is long",
		"gpu": "H100", "replicas": 3, "max_replicas": 9, "prefill": {"gpu": "H200", "replicas": 2, ` + smallEngine + `},
		"decider": {"type": "always"}, "transfer": {"latency_us": 205, "out_gb_per_s": 50, "in_gb_per_s": 12.5},
		` + testEngine + `}`
	text := setupOf(t, `{"deployments": [`+strings.Repeat(d+", ", 5)+d+`]}`)
	if n := strings.Count(text, "\n"); n != 4 || len(text) > maxSectionLength {
		t.Errorf("%d lines with %d characters:\n%s", n, len(text), text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 2*maxSetupLine+len("cluster: ; \n") {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}
