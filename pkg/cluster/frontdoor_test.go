package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// limited is a deployment with these settings of the engine and these of the rest of the cluster.
func limited(engine, more string) string {
	return fmt.Sprintf("version: 1\ndeployments: [{id: main, model: Qwen/Qwen3-8B, gpu: H100, engine: {%s}%s", engine,
		more)
}

// TestFrontDoorErrors: what is not possible is an error that names the field.
func TestFrontDoorErrors(t *testing.T) {
	const end = "}]\n"
	for _, c := range []struct{ engine, more, want string }{
		{"max_num_queued_reqs: -1", end, "max_num_queued_reqs: must be between 0 and"},
		{"max_num_queued_tokens: -1", end, "max_num_queued_tokens: must be between 0 and"},
		{"max_num_active_seqs: -1", end, "max_num_active_seqs: must be between 0 and"},
		{"max_num_seqs: 8, max_num_active_seqs: 9", end, "max_num_active_seqs: must be at most max_num_seqs = 8, is 9"},
		{"preset: vllm-0.28, max_num_queued_reqs: 5", end,
			"max_num_queued_reqs: exists since vLLM 0.29, but engine.preset is vllm-0.28"},
		{"preset: vllm-0.28, max_num_queued_tokens: 5", end, "max_num_queued_tokens: exists since vLLM 0.29"},
		{"preset: vllm-0.30, max_num_active_seqs: 5", end, "max_num_active_seqs: exists since vLLM 0.31"},
		{"max_num_queued_reqs: 5", ", architecture: disaggregated, transfer: {out_gb_per_s: 1}" + end,
			"max_num_queued_reqs: is not supported for a disaggregated deployment"},
		{"max_num_queued_reqs: 5", end + "failures: {random: {mtbf: 1h, mttr: 1m, inflight: redirect}}",
			"max_num_queued_reqs: is not supported with requests that are redirected"},
		{"max_num_queued_tokens: 5", end + "failures: {events: [{at: 1s, kind: down, deployment: main, replica: 0, " +
			"inflight: redirect}]}", "max_num_queued_tokens: is not supported with requests that are redirected"},
		{"max_num_queued_reqs: 5", ", min_replicas: 1, max_replicas: 3" + end +
			"policies: {autoscale: {type: threshold, params: {signal: queue_depth, up: 5, down: 1}, " +
			"actuation: {drain: {mode: redirect}}}}",
			"max_num_queued_reqs: is not supported with requests that are redirected"},
	} {
		_, err := parseCluster(limited(c.engine, c.more))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: error %v, want %q", c.engine, c.more, err, c.want)
		}
	}
}

// TestFrontDoor: limits of 0 are limits, and the versions that have them know them.
func TestFrontDoor(t *testing.T) {
	for _, engine := range []string{"", "preset: vllm-0.29, ", "preset: latest, "} {
		c, err := parseCluster(limited(engine+"max_num_queued_reqs: 0, max_num_queued_tokens: 0", "}]"))
		if err != nil {
			t.Fatal(err)
		}
		if f := &c.Deployments[0].Engine.FrontDoor; f.MaxNumQueuedReqs == nil || *f.MaxNumQueuedReqs != 0 ||
			f.MaxNumQueuedTokens == nil || *f.MaxNumQueuedTokens != 0 {
			t.Errorf("%+v, want limits of 0", f)
		}
	}
	c, err := parseCluster(limited("preset: vllm-0.31, max_num_seqs: 9, max_num_active_seqs: 9", "}]"))
	if err != nil {
		t.Fatal(err)
	}
	if e := &c.Deployments[0].Engine; e.ActiveSeqs() != 9 || e.MaxNumQueuedReqs != nil || e.MaxNumQueuedTokens != nil {
		t.Errorf("%d requests may run, limits %v and %v", e.ActiveSeqs(), e.MaxNumQueuedReqs, e.MaxNumQueuedTokens)
	}
}
