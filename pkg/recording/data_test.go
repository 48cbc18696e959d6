package recording

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// data returns the path of a public recording; the test is skipped without it.
func data(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../shared/data", name)
	if !textio.Exists(path) {
		t.Skipf("needs %s, which is not there", path)
	}
	return path
}

// The folders of public recordings state the settings with which their servers were started, or lack some.
func TestPublicFolders(t *testing.T) {
	for _, c := range []struct{ folder, setup, settings, missing string }{
		{"vllm/bench/RTXPRO6000_Llama-3.1-8B", "meta-llama/Llama-3.1-8B RTXPRO6000 vllm 0.19.0 1",
			"data_parallel_size=1 dtype=bfloat16 enable_expert_parallel=false " +
				"max_num_batched_tokens=2048 max_num_seqs=128", ""},
		{"vllm/otel/jan21-llama7b-train-1", "meta-llama/Llama-2-7b-hf  vllm 1", "max_model_len=4096 " +
			"max_num_batched_tokens=4096 max_num_seqs=256", "gpu vllm_version"},
		{"vllm/requests#20260217-231439-llama-2-7b-tp1-general", "meta-llama/Llama-2-7b-hf H100-SXM-80GB vllm 0.15.1 1",
			"block_size=16 max_model_len=4096 max_num_batched_tokens=2048 max_num_seqs=128 " +
				"num_gpu_blocks_override=7462", ""},
	} {
		path, name, _ := strings.Cut(c.folder, "#")
		r, err := Open(context.Background(), data(t, path)+strings.TrimSuffix("#"+name, "#"), "")
		if err != nil {
			t.Error(err)
			continue
		}
		run := r.Runs[0]
		setup := fmt.Sprint(run.Model, " ", run.GPU, " ", run.Engine, " ", run.TensorParallel)
		settings, missing := strings.Join(run.Settings, " "), strings.Join(r.Folder.Missing(), " ")
		if setup != c.setup || settings != c.settings || missing != c.missing {
			t.Errorf("%s: %s; %s; missing %q", c.folder, setup, settings, missing)
		}
	}
}

// Public recordings are read completely, with their runs and stages.
func TestPublicRecordings(t *testing.T) {
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
	}
	_, err := Open(context.Background(), data(t, "formats/guidellm_report_v2.json"), "")
	if err == nil || !strings.Contains(err.Error(), "no benchmark contains requests") {
		t.Errorf("a report that kept no requests: %v", err)
	}
}

// published reads a table of published figures; the first columns are the key.
func published(t *testing.T, file string, keys ...string) map[string]map[string]string {
	t.Helper()
	f, err := os.Open(data(t, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := textio.NewTable(file, f, "")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]string{}
	for s.Read() == nil {
		row, key := map[string]string{}, ""
		for i, name := range s.Header {
			row[name] = strings.Clone(s.Row[i])
		}
		for _, k := range keys {
			key = strings.TrimSpace(key + " " + row[k])
		}
		all[key] = row
	}
	return all
}

// near compares a figure of a run with a published one at its precision.
func near(t *testing.T, what string, got float64, row map[string]string, column string) {
	t.Helper()
	want, err := strconv.ParseFloat(row[column], 64)
	if err != nil {
		t.Fatalf("%s: %s: %v", what, column, err)
	}
	_, digits, _ := strings.Cut(row[column], ".")
	if math.Abs(got-want) > 0.51*math.Pow(10, -float64(len(digits))) {
		t.Errorf("%s: %s is %g, published %s", what, column, got, row[column])
	}
}

// mean is the mean of a time of the completed requests, in ms, or of a count.
func mean(r *Run, of func(o *stream.Outcome) float64) float64 {
	sum, n := 0.0, 0.0
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.State == completed {
			sum, n = sum+of(o), n+1
		}
	}
	return sum / n
}

func ttft(o *stream.Outcome) float64  { return float64(o.FirstTokenUS-o.ArrivalUS) / 1e3 }
func e2e(o *stream.Outcome) float64   { return float64(o.CompletedUS-o.ArrivalUS) / 1e3 }
func input(o *stream.Outcome) float64 { return float64(o.InputTokens) }

// Recordings have the published counts and means.
func TestPublishedFigures(t *testing.T) {
	for name, row := range published(t, "vllm/requests/experiments.csv", "experiment") {
		r, err := Open(context.Background(), data(t, "vllm/requests/"+name+".csv.zst"), "")
		if err != nil {
			t.Fatal(err)
		}
		run := r.Runs[0]
		near(t, name, float64(len(run.Outcomes)), row, "requests")
		near(t, name, mean(run, input), row, "mean_input")
		near(t, name, mean(run, ttft), row, "ttft_mean_ms")
		near(t, name, mean(run, e2e), row, "e2e_mean_ms")
	}
	rows := published(t, "vllm/lmbench/runs.csv", "target_qps", "replicas")
	r, err := Open(context.Background(), data(t, "vllm/lmbench/requests.csv"), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(r.Runs) {
		t.Errorf("%d runs, published %d", len(r.Runs), len(rows))
	}
	for _, run := range r.Runs {
		row := rows[fmt.Sprintf("%g %d", run.TargetRPS, run.Replicas)]
		near(t, run.Name, float64(len(run.Outcomes)), row, "requests")
		near(t, run.Name, mean(run, input), row, "mean_input")
		near(t, run.Name, mean(run, ttft), row, "ttft_mean_ms")
		near(t, run.Name, mean(run, e2e), row, "e2e_mean_ms")
	}
	// The benchmark's summary measures from the time at which the engine queued a request.
	r, err = Open(context.Background(), data(t, "vllm/bench/RTXPRO6000_Llama-3.1-8B/requests.jsonl"), "")
	if err != nil {
		t.Fatal(err)
	}
	near(t, "summary",
		mean(r.Runs[0], func(o *stream.Outcome) float64 { return float64(o.FirstTokenUS-o.EnqueuedUS) / 1e3 }),
		map[string]string{"TTFT": "7097.2"}, "TTFT")
	near(t, "summary",
		mean(r.Runs[0], func(o *stream.Outcome) float64 { return float64(o.CompletedUS-o.EnqueuedUS) / 1e3 }),
		map[string]string{"latency": "28200.7"}, "latency")
}

// The prompts of the four recordings repeat with a period of 100, nearly all requests match, and no
// other recording shows a period. The output counts of three of the four are wrong, and those of no
// other recording.
func TestPeriodsAndOutputCountsOfPublicRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(data(t, "vllm/requests/experiments.csv")), "*.zst"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, other := range []string{"vllm/lmbench/requests.csv", "vllm/otel/jan20-codellama-train-1/traces.json.zst",
		"vllm/otel/jan21-llama7b-train-1/traces.json.zst",
		"vllm/bench/RTXPRO6000_Llama-3.1-8B/requests.jsonl", "vllm/phases/dec11-train-qwen3b-1.vllm_phases.csv",
		"vllm/phases/dec11-train-qwen7b-1.vllm_phases.csv"} {
		files = append(files, data(t, other))
	}
	for i, file := range files {
		if testing.Short() && i < 3 {
			continue // these take most of the time; the fourth has correct counts
		}
		r, err := Open(context.Background(), file, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range r.Runs {
			period, share := run.Period()
			if i >= 4 && period != 0 || i < 4 && (period != 100 || share < 0.98) {
				t.Errorf("%s %s: a period of %d, %.3f", file, run.Name, period, share)
			}
			warning := run.OutputCounts()
			if wrong := i < 4 && !strings.Contains(file, "codellama"); (warning != "") != wrong || wrong &&
				!strings.Contains(warning, "the others have about 249: ") {
				t.Errorf("%s %s: output counts: %q", file, run.Name, warning)
			}
			if run.SetOutputTokens(248); run.OutputCounts() != "" && i < 4 {
				t.Errorf("%s: with 248 output tokens: %s", file, run.OutputCounts())
			}
		}
	}
}
