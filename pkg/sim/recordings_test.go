package sim

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/record"
	"blis/pkg/stat"
)

// recording is what clients of a real server saw (inference-sim/training
// c4f03409, replay_data): vLLM 0.15.1 on H100s, at most 128 sequences and 2048
// tokens a step.
type recording struct {
	file, model string
	tp, blocks  int
	// The largest errors, in % of what was measured, that the shipped coefficients
	// and the roofline may have in the mean of E2E.
	coefficients, roofline float64
}

var recordings = []recording{
	{"20260217-231439-llama-2-7b-tp1-general", "meta-llama/Llama-2-7b-hf", 1, 7462, 2, 15},
	{"20260217-202857-llama-2-70b-tp4-general", "meta-llama/Llama-2-70b-hf", 4, 31356, 5, 10},
	{"20260218-150304-codellama-34b-tp2-general", "codellama/CodeLlama-34b-Instruct-hf", 2, 26602, 2, 15},
	{"20260218-130541-mixtral-8x7b-v0-1-tp2-general", "mistralai/Mixtral-8x7B-v0.1", 2, 27510, 3, 10},
}

// seen is one request: its stage (8 requests/s, then 20) and its times in ms.
type seen struct {
	stage     int
	ttft, e2e float64
}

// outputTokens is what every request asked for and got, with the end of text
// ignored; the client's counts are of text tokenized again.
const outputTokens = 248

// TestRecordings replays recordings with the coefficients that ship for them,
// which were fitted on them, and with the roofline, which knows only their token
// times. -v logs the errors.
func TestRecordings(t *testing.T) {
	if raceEnabled {
		t.Skip("plays 134,400 requests; run without -race")
	}
	for _, r := range recordings {
		workload, measured := r.read(t)
		for _, model := range []struct {
			latency string
			most    float64
		}{{"", r.coefficients}, {", latency: {model: roofline}", r.roofline}} {
			simulated := r.play(t, workload, measured, model.latency)
			for stage := range 2 {
				line := fmt.Sprintf("%-36s TP %d%-28s stage %d:", r.model, r.tp, model.latency, stage+1)
				for _, m := range []struct {
					name string
					of   func([]seen, int) float64
				}{
					{"TTFT mean", func(s []seen, g int) float64 { return mean(times(s, g, ttft)) }},
					{"p50", func(s []seen, g int) float64 { return stat.QuantileFloat(times(s, g, ttft), 50) }},
					{"p99", func(s []seen, g int) float64 { return stat.QuantileFloat(times(s, g, ttft), 99) }},
					{"TPOT p50", func(s []seen, g int) float64 { return stat.QuantileFloat(times(s, g, tpot), 50) }},
					{"E2E mean", func(s []seen, g int) float64 { return mean(times(s, g, e2e)) }},
				} {
					was, is := m.of(measured, stage), m.of(simulated, stage)
					off := 100 * (is/was - 1)
					line += fmt.Sprintf("  %s %.1f ms %+.1f %%", m.name, was, off)
					if m.name == "E2E mean" && math.Abs(off) > model.most {
						t.Errorf("%s%s, stage %d: mean E2E is %.0f ms, simulated %.0f: %+.1f %%", r.model, model.latency, stage+1, was, is, off)
					}
				}
				t.Log(line)
			}
		}
	}
}

func ttft(s seen) float64 { return s.ttft }
func e2e(s seen) float64  { return s.e2e }
func tpot(s seen) float64 { return (s.e2e - s.ttft) / (outputTokens - 1) }

// times are those of one stage, rising.
func times(all []seen, stage int, of func(seen) float64) []float64 {
	var list []float64
	for _, s := range all {
		if s.stage == stage {
			list = append(list, of(s))
		}
	}
	slices.Sort(list)
	return list
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// read returns a recording as a workload, and what the client saw. Prompts
// repeat with a period of 100.
func (r *recording) read(t *testing.T) ([]byte, []seen) {
	t.Helper()
	path := filepath.Join("../../../shared/data/vllm/requests", r.file+".csv.zst")
	f, err := record.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("needs %s, which is not there", path)
	}
	must(err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	must(err)
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	number := func(row []string, name string) float64 {
		v, err := strconv.ParseFloat(row[column[name]], 64)
		must(err)
		return v
	}
	var out bytes.Buffer
	var all []seen
	w := record.NewWriter(&out, true)
	must(w.Header(&record.Header{Stream: record.StreamWorkload, Schema: record.Schema, Tool: "test"}))
	for i, row := range rows[1:] {
		input := int64(number(row, "input_tokens"))
		must(w.Request(&record.Request{ID: strconv.Itoa(i), ArrivalUS: record.Micros(number(row, "arrival_s") * 1e6), DeadlineUS: record.Never,
			InputTokens: input, OutputTokens: outputTokens, Prompt: []record.Segment{{ID: fmt.Sprintf("prompt %d", i%100), Tokens: input}}}))
		all = append(all, seen{int(number(row, "stage")), number(row, "ttft_s") * 1e3, number(row, "e2e_s") * 1e3})
	}
	must(w.End(&record.End{}))
	must(w.Close())
	for i := range all {
		all[i].stage -= all[0].stage
	}
	return out.Bytes(), all
}

// play simulates a recording; what is not said of the cluster follows from the
// model and the GPU.
func (r *recording) play(t *testing.T, workload []byte, measured []seen, latency string) []seen {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	must(os.WriteFile(name, fmt.Appendf(nil, `version: 1
deployments:
  - {id: main, model: %s, gpu: H100, engine: {preset: vllm-0.15, tensor_parallel_size: %d, max_num_seqs: 128, max_num_batched_tokens: 2048,
      max_model_len: 4096, num_gpu_blocks_override: %d}%s}
`, r.model, r.tp, r.blocks, latency), 0o666))
	var warnings []string
	c, err := cluster.Load(name, cluster.Options{Warn: func(w string) { warnings = append(warnings, w) }})
	must(err)
	if (c.Deployments[0].Latency.Source != "") != (latency == "") || len(warnings) > 1 {
		t.Fatalf("coefficients %+v, warnings %q", c.Deployments[0].Latency, warnings)
	}
	var out bytes.Buffer
	must(runCluster(context.Background(), c, mustServe(c), bytes.NewReader(workload), &out, Options{Trace: "decisions", Plain: true}))
	all := make([]seen, len(measured))
	for _, o := range readOutcomes(t, out.Bytes()) {
		i, err := strconv.Atoi(o.ID)
		must(err)
		all[i] = seen{measured[i].stage, float64(o.FirstTokenUS-o.ArrivalUS) / 1e3, float64(o.CompletedUS-o.ArrivalUS) / 1e3}
	}
	return all
}
