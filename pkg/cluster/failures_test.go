package cluster

import (
	"strings"
	"testing"
)

// failingCluster is a cluster with failures.
func failingCluster(deployment, failures string) string {
	return `version: 1
deployments:
  - {id: main, model: m, replicas: 2, ` + deployment + `engine: {num_gpu_blocks_override: 100, kv_bytes_per_block: 9},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1, 1, 1]}}
` + failures + "\n"
}

func TestFailureErrors(t *testing.T) {
	const down, load = "{at: 1s, kind: down}", "restart: {load: 1s}"
	for _, c := range []struct{ failures, want string }{
		{"failures: {events: [" + down + "]}", "failures.restart.load"},
		{"failures: {events: [{kind: down}], " + load + "}", "failures.events[0].at"},
		{"failures: {events: [{at: 1, kind: down}], " + load + "}", `must be a duration in whole µs`},
		{"failures: {events: [{at: 1s, kind: burn}], " + load + "}", `unknown kind "burn"`},
		{"failures: {events: [{at: 1s, kind: down, deployment: x}], " + load + "}", `unknown deployment "x"`},
		{"failures: {events: [{at: 1s, kind: down, replica: 2}], " + load + "}", "must be between 0 and 1, is 2"},
		{"failures: {events: [{at: 1s, kind: down, for: 0s}], " + load + "}", "must be above 0; without it"},
		{"failures: {events: [{at: 1s, kind: down, inflight: keep}], " + load + "}", `unknown choice "keep"`},
		{"failures: {events: [{at: 1s, kind: down, until: 2s}], " + load + "}", "until"},
		{"failures: {events: [{at: 1s, kind: slow, factor: 0.5}], " + load + "}", "must be between 1 and 1000, is 0.5"},
		{"failures: {events: [{at: 1s, kind: slow, factor: 2, inflight: fail}], " + load + "}",
			"inflight: has no effect"},
		{"failures: {events: [{at: 1s, kind: down, factor: 2}], " + load + "}", "factor: has no effect"},
		{"failures: {events: [{at: 1s, kind: partition}], " + load + "}", "must be set for a partition"},
		{"failures: {random: {mtbf: 1h}, " + load + "}", "failures.random.mttr"},
		{"failures: {random: {mtbf: 1us, mttr: 1s}, " + load + "}", "must be at least 1ms, is 1us"},
		{"failures: {random: {mtbf: 1s, mttr: 1s, inflight: keep}, " + load + "}", `unknown choice "keep"`},
		{"failures: {restart: {load: 1s, warmup: {factor: 0}}, events: [" + down + "]}",
			"failures.restart.warmup.factor"},
		{"control_plane: {health_check: {interval: 0s}}", "health_check.interval: must be above 0"},
		{"control_plane: {health_check: {failures: 0}}", "must be between 1 and 1000, is 0"},
	} {
		_, err := parse(failingCluster("", c.failures), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.failures, err, c.want)
		}
	}
}

// TestFailuresOfPools: a prefill pool has an id of its own, and its own number of replicas.
func TestFailuresOfPools(t *testing.T) {
	const pools = "architecture: disaggregated, prefill: {replicas: 3}, "
	for _, c := range []struct{ pools, event, want string }{
		{pools, "deployment: main.prefill, replica: 2", ""},
		{pools, "replica: 1", ""}, // of the decode pool
		{pools, "replica: 2", "failures.events[0].replica: must be between 0 and 1, is 2"},
		{pools, "deployment: main.prefill, replica: 3", "failures.events[0].replica: must be between 0 and 2, is 3"},
		{pools, "deployment: main.decode", `unknown deployment "main.decode"`},
		{pools + "transfer: {granularity: block}, ", "replica: 0",
			"transfer.granularity: block is not supported with failures"},
		{pools + "transfer: {pipeline: true}, ", "replica: 0",
			"transfer.pipeline: true is not supported with failures"},
	} {
		events := "failures: {restart: {load: 1s}, events: [{at: 1s, kind: down, for: 1s, " + c.event + "}]}"
		_, err := parse(failingCluster(c.pools, events), Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.event, err, c.want)
		}
	}
}

func TestFailureWarnings(t *testing.T) {
	for _, c := range []struct{ failures, want string }{
		{"failures: {events: []}", "failures has no effect: it has no events and no random"},
		{"control_plane: {health_check: {}}", "control_plane.health_check has no effect: there are no failures"},
	} {
		var warnings []string
		warn := func(w string) { warnings = append(warnings, w) }
		_, err := parse(failingCluster("", c.failures), Options{Warn: warn})
		if all := strings.Join(warnings, "\n"); err != nil || !strings.Contains(all, c.want) {
			t.Errorf("%s: error %v, warnings %q, want %q", c.failures, err, all, c.want)
		}
	}
}
