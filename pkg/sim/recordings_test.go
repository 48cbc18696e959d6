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
	"blis/pkg/hardware"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// recording is what clients of a real server measured (inference-sim/training c4f03409,
// replay_data): vLLM 0.15.1 on H100s, at most 128 sequences and 2048 tokens per step; 8 requests/s
// for ten minutes, then 20 requests/s for ten.
type recording struct {
	file, model, coefficients string
	tp, blocks                int
	// lowRateFit are coefficients fitted like the built-in ones, but on the ten minutes of 8
	// requests/s only.
	lowRateFit string
}

var recordings = []recording{
	{"20260217-231439-llama-2-7b-tp1-general", "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b", 1, 7462,
		"alpha_us: [6515.5, 0, 0], beta_us: [6016.2, 12.533, 17.543, 0.1565]"},
	{"20260217-202857-llama-2-70b-tp4-general", "meta-llama/Llama-2-70b-hf", "meta-llama/Llama-2-70b", 4, 31356,
		"alpha_us: [8232.4, 0, 0], beta_us: [16302, 47.739, 42.117, 0.02445]"},
	{"20260218-150304-codellama-34b-tp2-general", "codellama/CodeLlama-34b-Instruct-hf", "codellama/CodeLlama-34b", 2,
		26602,
		"alpha_us: [8193.4, 0, 0], beta_us: [13569, 36.481, 16.309, 0.02934]"},
	{"20260218-130541-mixtral-8x7b-v0-1-tp2-general", "mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-v0.1", 2,
		27510,
		"alpha_us: [8080.7, 0, 0], beta_us: [18049, 30.827, 9.3528, 0.01956]"},
}

// outputTokens is the output length of every request, with the end-of-text token ignored. The
// client's own counts come from tokenizing the text again.
const outputTokens = 248

// timing is one request: its stage (0 or 1), its arrival in s after the stage's first, and its
// latencies in ms.
type timing struct {
	stage         int
	at, ttft, e2e float64
}

func ttft(s timing) float64 { return s.ttft }
func e2e(s timing) float64  { return s.e2e }
func tpot(s timing) float64 { return (s.e2e - s.ttft) / (outputTokens - 1) }

// comparedMetrics are the metrics by which simulations are compared; one without a percentile is a
// mean.
var comparedMetrics = []struct {
	name    string
	of      func(timing) float64
	percent int64
}{
	{"ttft.mean", ttft, 0}, {"ttft.p50", ttft, 50}, {"ttft.p90", ttft, 90}, {"ttft.p99", ttft, 99},
	{"tpot.p50", tpot, 50}, {"e2e.mean", e2e, 0}, {"e2e.p99", e2e, 99},
}

// tolerance is the allowed difference, in percentage points, from the errors stated in
// hardware/coefficients.yaml. The coefficients there are rounded, and one more digit moves a 99th
// percentile by two percent.
var tolerance = map[int64]float64{0: 0.5, 50: 0.5, 90: 0.5, 99: 2.5}

// parts are the parts of a recording. The built-in coefficients were fitted on the first six minutes
// of both stages.
var parts = []struct {
	name     string
	stage    int
	from, to float64
}{
	{"8 requests/s, first 6 of 10 minutes", 0, 0, 360},
	{"8 requests/s, last 4 of 10 minutes", 0, 360, 1e9},
	{"20 requests/s, first 6 of 10 minutes", 1, 0, 360},
	{"20 requests/s, last 4 of 10 minutes", 1, 360, 1e9},
	{"8 requests/s", 0, 0, 1e9},
	{"20 requests/s", 1, 0, 1e9},
}

// simulations are the latency models for a recording: the built-in coefficients, those of its first
// stage, sums of measured kernels, and the roofline. The bounds are the largest errors in % of mean E2E
// and median TPOT in any part.
var simulations = []struct {
	name        string
	latency     func(recording) string
	first, last int // indices into parts
	e2e, tpot   float64
}{
	{"", func(recording) string { return "" }, 0, 3, 2, 2},
	{", of coefficients fitted on 8 requests/s alone", func(r recording) string {
		return ", latency: {model: linear, " +
			r.lowRateFit + "}"
	}, 4, 5, 9, 7},
	{", measured kernels", func(recording) string { return ", latency: {model: operators}" }, 4, 5, 7, 7},
	{", roofline", func(recording) string { return ", latency: {model: roofline}" }, 4, 5, 17, 17},
}

// TestRecordings simulates the recordings and bounds the errors, absolutely and by what
// hardware/coefficients.yaml states. -v logs the errors.
func TestRecordings(t *testing.T) {
	if raceEnabled {
		t.Skip("plays 201,600 requests; run without -race")
	}
	replayed := recordings
	if testing.Short() {
		replayed = recordings[:1]
	}
	known, err := hardware.Open()
	must(err)
	for _, r := range replayed {
		key := hardware.Key{Model: r.coefficients, GPU: "H100-SXM-80GB", TensorParallelSize: r.tp,
			PipelineParallelSize: 1, DataParallelSize: 1}
		sets := known.Sets()
		at := slices.IndexFunc(sets, func(s *hardware.Set) bool { return s.Key == key })
		if at < 0 || len(sets[at].Errors) == 0 {
			t.Fatalf("%s: no coefficients that say how wrong they are", r.coefficients)
		}
		workload, measured := r.read(t)
		set := sets[at]
		stated := len(set.Errors)
		for _, s := range simulations {
			simulated := r.play(t, workload, measured, s.latency(r))
			for _, p := range parts[s.first : s.last+1] {
				line := ""
				in := func(q timing) bool { return q.stage == p.stage && q.at >= p.from && q.at < p.to }
				for _, m := range comparedMetrics {
					was, is := value(measured, in, m.of, m.percent), value(simulated, in, m.of, m.percent)
					off := 100 * (is/was - 1)
					line += fmt.Sprintf("  %s %.1f %+.1f", m.name, was, off)
					if most := map[string]float64{"e2e.mean": s.e2e, "tpot.p50": s.tpot}[m.name]; most > 0 &&
						math.Abs(off) > most {
						t.Errorf("%s: %s is %.2f ms at %s%s, simulated %.2f: %+.1f %%, at most %g", r.model, m.name,
							was, p.name, s.name, is, off, most)
					}
					for _, e := range set.Errors {
						if e.Metric != m.name || e.Data != p.name+s.name {
							continue
						}
						stated--
						if math.Abs(e.Percent-off) > tolerance[m.percent] {
							t.Errorf(
								"%s: hardware/coefficients.yaml states an error of %s of %+.1f %% at %s, is %+.1f %%",
								r.coefficients, m.name, e.Percent, e.Data, off)
						}
					}
				}
				t.Logf("%s, %s%s, ms and %%:%s; each request's E2E: correlation %.2f, mean error %.1f %%", r.model,
					p.name, s.name, line, correlation(measured, simulated, in), meanAbsError(measured, simulated, in))
			}
		}
		if stated != 0 {
			t.Errorf("%s: %d of the errors in hardware/coefficients.yaml are of no metric or data here",
				r.coefficients, stated)
		}
	}
}

// value is a percentile, or the mean, over some requests.
func value(all []timing, in func(timing) bool, of func(timing) float64, percent int64) float64 {
	var list []float64
	for _, s := range all {
		if in(s) {
			list = append(list, of(s))
		}
	}
	slices.Sort(list)
	if percent == 0 {
		return stat.Mean(list)
	}
	return stat.QuantileFloat(list, percent)
}

// correlation is Pearson's, of the E2E latency of single requests.
func correlation(measured, simulated []timing, in func(timing) bool) float64 {
	a, b := value(measured, in, e2e, 0), value(simulated, in, e2e, 0)
	var aa, bb, ab float64
	for i, m := range measured {
		if x, y := m.e2e-a, simulated[i].e2e-b; in(m) {
			aa, bb, ab = aa+x*x, bb+y*y, ab+x*y
		}
	}
	return ab / math.Sqrt(aa*bb)
}

// meanAbsError is the mean absolute error of the E2E latency of single requests, in %.
func meanAbsError(measured, simulated []timing, in func(timing) bool) float64 {
	sum, n := 0.0, 0.0
	for i, m := range measured {
		if in(m) {
			sum, n = sum+math.Abs(simulated[i].e2e/m.e2e-1), n+1
		}
	}
	return 100 * sum / n
}

// read returns a recording as a workload, and the measured latencies. Prompts repeat with a period
// of 100. 100 tokens of each prompt were one of nine system prompts, but which one is unknown, so a
// prompt shares only with its repetitions.
func (r *recording) read(t *testing.T) ([]byte, []timing) {
	t.Helper()
	path := filepath.Join("../../../shared/data/vllm/requests", r.file+".csv.zst")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("needs %s, which is not there", path)
	}
	must(err)
	defer f.Close()
	plain, release := stream.Decompress(f)
	defer release()
	rows, err := csv.NewReader(plain).ReadAll()
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
	var all []timing
	var began [2]float64
	w := stream.NewWriter(&out, true)
	must(w.Header(&stream.Header{Stream: stream.StreamWorkload, StreamVersion: stream.StreamVersion, Tool: "test"}))
	for i, row := range rows[1:] {
		input, arrival := int64(number(row, "input_tokens")), number(row, "arrival_s")
		must(
			w.Request(
				&stream.Request{ID: strconv.Itoa(i), ArrivalUS: stream.Micros(arrival * 1e6), DeadlineUS: stream.Never,
					InputTokens: input, OutputTokens: outputTokens,
					Prompt: []stream.Segment{{ID: fmt.Sprintf("prompt %d", i%100),
						Tokens: input}}},
			),
		)
		stage := int(number(row, "stage"))
		if i > 0 && stage != all[i-1].stage {
			began[stage] = arrival
		}
		all = append(all,
			timing{stage, arrival - began[stage], number(row, "ttft_s") * 1e3, number(row, "e2e_s") * 1e3})
	}
	must(w.End(&stream.End{}))
	must(w.Close())
	return out.Bytes(), all
}

// play simulates a recording; the rest of the cluster follows from the model and the GPU.
func (r *recording) play(t *testing.T, workload []byte, measured []timing, latency string) []timing {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	must(os.WriteFile(name, fmt.Appendf(nil, `version: 1
deployments:
  - {id: main, model: %s, gpu: H100, engine: {preset: vllm-0.15, tensor_parallel_size: %d, max_num_seqs: 128,
      max_num_batched_tokens: 2048, max_model_len: 4096, num_gpu_blocks_override: %d}%s}
`, r.model, r.tp, r.blocks, latency), 0o666))
	var warnings []string
	c, err := cluster.Load(name, cluster.Options{Warn: func(w string) { warnings = append(warnings, w) }})
	must(err)
	isComputed := c.Deployments[0].Latency.Model == "operators"
	if (c.Deployments[0].Latency.Source != "") != (latency == "" || isComputed) || len(warnings) > 1 && !isComputed {
		t.Fatalf("coefficients %+v, warnings %q", c.Deployments[0].Latency, warnings)
	}
	var out bytes.Buffer
	must(runCluster(context.Background(), c, mustSpecs(c), bytes.NewReader(workload), &out,
		Options{Trace: "decisions", Plain: true}))
	all := slices.Clone(measured)
	for _, o := range readOutcomes(t, out.Bytes()) {
		i, err := strconv.Atoi(o.ID)
		must(err)
		all[i].ttft, all[i].e2e = float64(o.FirstTokenUS-o.ArrivalUS)/1e3, float64(o.CompletedUS-o.ArrivalUS)/1e3
	}
	return all
}
