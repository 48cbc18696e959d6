package calibrate

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// scattered are requests with prompts of 500 to 1500 tokens whose first tokens come up to
// 20 ms, uniformly, and 10 µs for each token of prompt later than simulated: what a phase
// inside a step, and a β1 that is too small, come to. Those of prompts that fill blocks of
// 16 come extra µs later still.
func scattered(seed uint64, n int, extra float64) *played {
	rng := dist.NewStream(seed, "whole")
	p := &played{run: &run{}}
	for i := range n {
		input := 500 + int64(1000*rng.Float64())
		late := 20e3*rng.Float64() + 10*float64(input)
		if input%16 == 0 {
			late += extra
		}
		p.run.requests = append(p.run.requests, stream.Request{ArrivalUS: stream.Micros(i), InputTokens: input})
		p.simulated = append(p.simulated, seen{ttft: 60e3})
		p.run.measured = append(p.run.measured, seen{ttft: 60e3 + late})
	}
	return p
}

// TestWholeBlocks: what prompts that fill blocks take longer is found within its error,
// and nothing is found where there is nothing, over lengths that a model gets wrong.
func TestWholeBlocks(t *testing.T) {
	inside := 0
	for seed := range uint64(100) {
		if w := wholeBlocksOf(scattered(seed, 4000, 0), 0, math.MaxInt64, 16); w.clear() {
			t.Errorf("seed %d: nothing is there, and %s", seed, w.text(16))
		}
		w := wholeBlocksOf(scattered(seed, 4000, 15e3), 0, math.MaxInt64, 16)
		if !w.clear() {
			t.Fatalf("seed %d: 15 ms are not found: %+v", seed, w)
		}
		if math.Abs(w.us-15e3) < 1.96*w.err {
			inside++
		}
		if w.whole+w.others > 4000 || w.whole < 200 {
			t.Fatalf("seed %d: %d and %d of 4000 are compared", seed, w.whole, w.others)
		}
	}
	if inside < 85 {
		t.Errorf("within twice the standard error %d times of 100", inside)
	}
	if w := wholeBlocksOf(scattered(1, 4000, -15e3), 0, math.MaxInt64, 16); !w.clear() || !strings.Contains(w.text(16), "sooner") {
		t.Errorf("sooner: %+v", w)
	}
	if w := wholeBlocksOf(scattered(1, 200, 15e3), 0, math.MaxInt64, 16); w != nil {
		t.Errorf("of a dozen prompts that fill blocks: %+v", w)
	}
}

// TestMedianByHand: of 0 to 99 the median is 49.5, and the ranks a standard deviation of 5
// about it are 54.5 and 44.5, rounded 55 and 45.
func TestMedianByHand(t *testing.T) {
	var values []float64
	for i := range 100 {
		values = append(values, float64(99-i))
	}
	if m, err := medianOf(values); m != 49.5 || err != 5 {
		t.Errorf("%g ± %g", m, err)
	}
	if m, err := medianOf([]float64{7}); m != 7 || err != 0 {
		t.Errorf("of one: %g ± %g", m, err)
	}
}

// TestWholeBlocksRecorded: in the second stage of Mixtral's recording, and in nothing else
// of the four, prompts that fill blocks come two steps late.
func TestWholeBlocksRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 67,000 requests")
	}
	const root = "../.."
	folder := filepath.Join(root, "../shared/data/vllm/requests")
	for _, c := range []struct {
		file, deployment string
		want             int
	}{
		{"20260218-130541-mixtral-8x7b-v0-1-tp2-general", "model: mistralai/Mixtral-8x7B-v0.1, engine: {preset: vllm-0.15, tensor_parallel_size: 2, max_num_seqs: 128, num_gpu_blocks_override: 27510}", 1},
		{"20260217-231439-llama-2-7b-tp1-general", "model: meta-llama/Llama-2-7b-hf, engine: {preset: vllm-0.15, max_num_seqs: 128, num_gpu_blocks_override: 7463}", 0},
		{"20260217-202857-llama-2-70b-tp4-general", "model: meta-llama/Llama-2-70b-hf, engine: {preset: vllm-0.15, tensor_parallel_size: 4, max_num_seqs: 128, num_gpu_blocks_override: 31356}", 0},
		{"20260218-150304-codellama-34b-tp2-general", "model: codellama/CodeLlama-34b-Instruct-hf, engine: {preset: vllm-0.15, tensor_parallel_size: 2, max_num_seqs: 128}", 0},
	} {
		recorded := filepath.Join(folder, c.file+".csv.zst")
		if _, err := os.Stat(recorded); err != nil {
			t.Skipf("no recordings of vLLM servers: %v", err)
		}
		server := filepath.Join(t.TempDir(), "server.yaml")
		if err := os.WriteFile(server, []byte("version: 1\ndeployments:\n  - {id: main, gpu: H100, "+c.deployment+"}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Run(t.Context(), &out, Options{Recordings: []string{recorded}, Cluster: server, OutputTokens: 248, Check: filepath.Join(root, "hardware/coefficients.yaml"), Format: "json"}); err != nil {
			t.Fatal(err)
		}
		var report struct{ Warnings []string }
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, w := range report.Warnings {
			if strings.Contains(w, "fill whole blocks") {
				told = append(told, w)
			}
		}
		t.Logf("%s: %s", c.file, told)
		if len(told) != c.want || c.want > 0 && !strings.Contains(told[0], "stage 1") {
			t.Errorf("%s: %q", c.file, told)
		}
	}
}
