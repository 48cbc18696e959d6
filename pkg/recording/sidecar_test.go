package recording

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The header file of a TraceV2 is validated under either name and describes the server; it is
// optional.
func TestTraceV2Header(t *testing.T) {
	table := samples(t)["tracev2"]
	for _, c := range []struct{ file, header, want string }{
		{"none", "", ""},
		{"t.header.yaml", "trace_version: 2\ntime_unit: us\nwarm_up_requests: 200\nserver:\n  type: vllm\n  model: " +
			"m\n  tensor_parallel_size: 4\n  time_unit: ms\n", ""},
		{"t.yaml", "trace_version: 2 # the second\ntime_unit: \"microseconds\"\n", ""},
		{"t.header.yaml", "mode: real\ntrace_version: 3\n", `t.header.yaml:2: trace_version must be 2, is "3"`},
		{"t.yaml", "time_unit: ms\n", `t.yaml:1: time_unit must be us or microseconds, is "ms"`},
		{"t.yaml", "server:\n  tensor_parallel_size: four\n",
			`t.yaml:2: tensor_parallel_size must be an integer of at least 1, is "four"`},
	} {
		path := filepath.Join(folder(t, map[string]string{"t.csv": table, c.file: c.header}), "t.csv")
		r, err := Open(context.Background(), path, "")
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: %v", c.header, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.header, err)
			continue
		}
		run := r.Runs[0]
		if known := strings.Contains(c.header, "server"); known != (run.Model == "m" && run.Engine == "vllm" &&
			run.TensorParallel == 4) {
			t.Errorf("%q: %+v", c.header, run)
		}
		if warm := strings.Contains(strings.Join(run.Warnings, " "),
			"the first 200 requests are not in the file"); warm != strings.Contains(c.header, "warm_up") {
			t.Errorf("%q: %q", c.header, run.Warnings)
		}
	}
}

// meta.json next to engine timestamps describes the engine.
func TestMetaFile(t *testing.T) {
	lines := samples(t)["llmservingsim"]
	dir := folder(t, map[string]string{"requests.jsonl": lines,
		"meta.json": `{"model": "m", "vllm_version": "0.19.0", "engine_kwargs": {"tensor_parallel_size": 2, ` +
			`"max_num_seqs": 128, "max_model_len": null, "seed": 42}, "kv_cache": {"num_gpu_blocks": 2588}}`})
	r, err := Open(context.Background(), filepath.Join(dir, "requests.jsonl"), "")
	if err != nil || r.Runs[0].Model != "m" || r.Runs[0].Engine != "vllm 0.19.0" || r.Runs[0].TensorParallel != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := strings.Join(r.Runs[0].Settings, " "); got != "max_num_seqs=128 num_gpu_blocks_override=2588" {
		t.Errorf("settings %q", got)
	}
	dir = folder(t, map[string]string{"requests.jsonl": lines, "meta.json": `{"model": 1}`})
	if _, err := Open(context.Background(), filepath.Join(dir, "requests.jsonl"), ""); err == nil ||
		!strings.Contains(err.Error(), "meta.json: model cannot be a number") {
		t.Errorf("a wrong meta.json: %v", err)
	}
}
