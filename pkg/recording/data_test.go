package recording

import (
	"context"
	"path/filepath"
	"testing"

	"blis/pkg/source"
)

// data is a file of public recordings; the test is skipped without it.
func data(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../shared/data", name)
	if !source.Exists(path) {
		t.Skipf("needs %s, which is not there", path)
	}
	return path
}

// Recordings are read whole, with the runs and stages that they have.
func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		file, format string
		runs, n      int
	}{
		{"vllm/requests/20260217-202857-llama-2-70b-tp4-general.csv.zst", "csv", 1, 16800},
		{"vllm/lmbench/requests.csv", "lmbench", 37, 252},
		{"vllm/otel/jan20-codellama-train-1/traces.json.zst", "otlp", 1, 280},
		{"vllm/otel/jan21-llama7b-train-1/traces.json.zst", "otlp", 1, 282},
		{"vllm/phases/dec11-train-qwen3b-1.vllm_phases.csv", "vllm-phases", 1, 239},
		{"vllm/bench/RTXPRO6000_Llama-3.1-8B/requests.jsonl", "llmservingsim", 1, 300},
		{"formats/aiperf_profile_export.sample.jsonl", "aiperf", 1, 1},
		{"formats/blis_tracev2_real_sample.csv", "tracev2", 1, 6},
		{"formats/guidellm_v0_5_real.trimmed.json", "guidellm", 2, 2},
		{"formats/inference-perf_v0_5_0_per_request_lifecycle_metrics.json", "inference-perf", 1, 6},
		{"formats/vllm_bench_serve_detailed.sample.json", "vllm-bench", 1, 2},
		{"formats/vllm_otlp_traces.sample.jsonl", "otlp", 1, 4},
		{"steps/llmservingsim_composed_steps.csv.zst", "steps", 0, 47371},
		{"steps/splitwise_steps.csv.zst", "steps", 0, 2520},
	} {
		r, err := Open(context.Background(), data(t, c.file), "")
		if err != nil {
			t.Error(err)
			continue
		}
		n := len(r.Steps)
		if len(r.Runs) > 0 {
			n = len(r.Runs[0].Outcomes)
		}
		if r.Format != c.format || len(r.Runs) != c.runs || n != c.n {
			t.Errorf("%s: %s, %d runs, %d requests", c.file, r.Format, len(r.Runs), n)
		}
		t.Log(r.Path, r.Warnings)
		for _, run := range r.Runs[:min(3, len(r.Runs))] {
			t.Logf("%q %+v %q %q %d %g", run.Name, run.Stages, run.Model, run.Engine, run.TensorParallel, run.TargetRPS)
			t.Logf("%+v %q", run.Outcomes[min(1, len(run.Outcomes)-1)], run.Warnings)
		}
	}
	if _, err := Open(context.Background(), data(t, "formats/guidellm_report_v2.json"), ""); err == nil {
		t.Error("no error")
	} else {
		t.Log(err)
	}
}
