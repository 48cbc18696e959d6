package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBundleInOtherWords: a bundle in the words of the first design loads where this package has the same
// under another name; each other part is an error that says what to write, and with all of that it loads.
func TestBundleInOtherWords(t *testing.T) {
	text := `admission: {type: token-bucket, params: {bucket_size: 1000, refill_rate: 100, per_tenant: true}}
priority: {type: slo-based, params: {realtime_score: 100, batch_score: 10, default_score: 50}}
routing: {type: weighted-scoring, params: {cache_affinity_weight: 0.6, load_balance_weight: 0.3,
  queue_depth_weight: 0.1, prefix_match_bonus: 0.5}}
scheduler: {type: priority-fcfs, params: {respect_priority: true,
  preemption_enabled: true, preemption_policy: lowest-priority}}
autoscale: {type: threshold, params: {scale_up_threshold: 0.8, scale_down_threshold: 0.3, cooldown_seconds: 60}}
`
	path := filepath.Join(t.TempDir(), "policies.yaml")
	load := func() (*Config, error) {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return parse(smallCluster, Options{PolicyFile: path})
	}
	for _, c := range []struct{ position, want, old, new string }{
		{":3:", `has no parameter "prefix_match_bonus": a longer match already scores higher`,
			", prefix_match_bonus: 0.5", ""},
		{":5:", `has no parameter "preemption_enabled": a replica always preempts`, "preemption_enabled: true, ", ""},
		{":5:", `has no parameter "preemption_policy": write preemption: {type: lowest-priority} next to scheduler`,
			"preemption_policy: lowest-priority}}", "}}\npreemption: {type: lowest-priority}"},
		{":5:", `has no parameter "respect_priority": priority-fcfs always respects priorities`,
			", params: {respect_priority: true,\n  }", ""},
		{":7:", `has no parameter "cooldown_seconds": write cooldown: 60s next to params`,
			", cooldown_seconds: 60}}", "}, cooldown: 60s}"},
	} {
		_, err := load()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path+c.position) {
			t.Fatalf("error %v, want %q at %s", err, c.want, c.position)
		}
		text = strings.Replace(text, c.old, c.new, 1)
	}
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	same, err := parse(smallCluster+`policies:
  admission: {type: token-bucket, params: {capacity: 1000, refill_per_s: 100, per_tenant: true}}
  priority: {type: slo-based, params: {scores: {realtime: 100, batch: 10}, default_score: 50}}
  routing: {type: weighted, params: {prefix-affinity: 0.6, active-requests: 0.3, queue-depth: 0.1}}
  scheduler: {type: priority-fcfs}
  preemption: {type: lowest-priority}
  autoscale: {type: threshold, params: {up: 0.8, down: 0.3}, cooldown: 60s}
`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := printedPolicies(t, loaded), printedPolicies(t, same); got != want {
		t.Errorf("the bundle is\n%s\nwant\n%s", got, want)
	}
}

func printedPolicies(t *testing.T, c *Config) string {
	t.Helper()
	text, err := json.Marshal(c.Policies)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
