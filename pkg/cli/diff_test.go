package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"blis/pkg/diff"

	"github.com/google/jsonschema-go/jsonschema"
)

// runs calls a tool and returns its exit code and its outputs.
func runs(t *testing.T, tool Tool, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = tool.run(t.Context(), args, standardStreams{strings.NewReader(""), &out, &errs})
	return code, out.String(), errs.String()
}

// replayed is a recording with the cluster that it is simulated on.
type replayed struct {
	file, model string
	tp, blocks  int
}

var replays = []replayed{
	{"20260217-231439-llama-2-7b-tp1-general", "meta-llama/Llama-2-7b-hf", 1, 7462},
	{"20260217-202857-llama-2-70b-tp4-general", "meta-llama/Llama-2-70b-hf", 4, 31356},
	{"20260218-150304-codellama-34b-tp2-general", "codellama/CodeLlama-34b-Instruct-hf", 2, 26602},
	{"20260218-130541-mixtral-8x7b-v0-1-tp2-general", "mistralai/Mixtral-8x7B-v0.1", 2, 27510},
}

// play makes a workload from the recording, as a user does, and simulates it.
func (r replayed) play(t *testing.T, dir string) (recording, run string) {
	t.Helper()
	recording = filepath.Join(root, "../shared/data/vllm/requests", r.file+".csv.zst")
	if _, err := os.Stat(recording); err != nil {
		t.Skipf("the recording is not here: %v", err)
	}
	workload, run := filepath.Join(dir, r.file+".zst"), filepath.Join(dir, r.file+".run.zst")
	cluster := filepath.Join(dir, "c.yaml")
	err := os.WriteFile(cluster, fmt.Appendf(nil, `version: 1
deployments:
  - {id: main, model: %s, gpu: H100, engine: {preset: vllm-0.15, tensor_parallel_size: %d,
    max_num_seqs: 128,
    max_num_batched_tokens: 2048, max_model_len: 4096, num_gpu_blocks_override: %d}}
`, r.model, r.tp, r.blocks), 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := runs(t, Gen, "--import", "recording:"+recording, "--output-tokens", "248", "-o",
		workload); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := runs(t, Sim, "-c", cluster, workload, "-o", run); code != 0 {
		t.Fatal(errs)
	}
	return recording, run
}

// TestDiffAgainstRecordings replays recordings of real servers and compares. The measured
// values are those published with the recordings, the simulation is as close as in
// pkg/sim's own test, and the four servers are ranked as measured. -v logs the tables.
func TestDiffAgainstRecordings(t *testing.T) {
	dir := t.TempDir()
	published := experiments(t)
	list := replays
	if testing.Short() {
		list = list[:1]
	}
	ranking := []string{"--rank", "--rank-by", "e2e.mean", "--output-tokens", "248", "--format", "json"}
	for _, r := range list {
		recording, run := r.play(t, dir)
		ranking = append(ranking, run, recording)
		code, out, errs := runs(t, Diff, run, recording, "--output-tokens", "248", "--format", "json")
		var d struct{ Fidelity *diff.Fidelity }
		if err := json.Unmarshal([]byte(out), &d); code != 1 || err != nil {
			t.Fatalf("exit %d, %v, %s", code, err, errs)
		}
		f := d.Fidelity
		if f.Pairing != "id" || f.Overall.Measured != 16800 || len(f.Stages) != 2 {
			t.Errorf("%s: %+v", r.model, f)
		}
		for _, fit := range f.Overall.Times {
			t.Logf("%s %s: mean %.2f -> %.2f (%+.1f %%), p99 %.2f -> %.2f (%+.1f %%)", r.model, fit.Metric,
				fit.Mean.Measured, fit.Mean.Simulated, *fit.Mean.Percent, fit.P99.Measured, fit.P99.Simulated,
				*fit.P99.Percent)
			if mean, ok := published[r.file][fit.Metric+"_mean_ms"]; ok && math.Abs(fit.Mean.Measured-mean) > 0.001 {
				t.Errorf("%s: mean %s is %.3f ms, published %.3f", r.model, fit.Metric, fit.Mean.Measured, mean)
			}
			if p99, ok := published[r.file][fit.Metric+"_p99_ms"]; ok && math.Abs(fit.P99.Measured-p99) > 0.02*p99 {
				t.Errorf("%s: p99 %s is %.3f ms, published %.3f", r.model, fit.Metric, fit.P99.Measured, p99)
			}
			if fit.Metric == "e2e" && (math.Abs(*fit.Mean.Percent) > 5 || *fit.PerRequest.MAPE > 10) {
				t.Errorf("%s: mean E2E error %+.1f %%, mean absolute error per request %.1f %%", r.model,
					*fit.Mean.Percent, *fit.PerRequest.MAPE)
			}
		}
	}
	if len(list) < 2 {
		return
	}
	code, out, errs := runs(t, Diff, ranking...)
	var ranked diff.Ranking
	if err := json.Unmarshal([]byte(out), &ranked); code != 0 || err != nil {
		t.Fatalf("exit %d, %v, %s", code, err, errs)
	}
	t.Logf("%s", out)
	if ranked.ConcordantPairs != 6 || *ranked.Spearman != 1 || ranked.Regret != 0 {
		t.Errorf("the four servers are not ranked as measured: %s", out)
	}
}

// experiments returns the figures published with the recordings, by file and column.
func experiments(t *testing.T) map[string]map[string]float64 {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "../shared/data/vllm/requests/experiments.csv"))
	if err != nil {
		t.Skipf("needs the recordings in ../shared/data: %v", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]map[string]float64{}
	for _, row := range rows[1:] {
		of[row[0]] = map[string]float64{}
		for i, name := range rows[0] {
			if x, err := strconv.ParseFloat(row[i], 64); err == nil {
				of[row[0]][name] = x
			}
		}
	}
	return of
}

// The documents match their schemas.
func TestDiffSchemas(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "server.csv")
	rows := "arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n0,500,80,0.02,0.7\n0.1,900,40,0.04,0.46\n"
	if err := os.WriteFile(table, []byte(rows), 0o666); err != nil {
		t.Fatal(err)
	}
	name := func(s string) string { return filepath.Join(dir, s) }
	for _, c := range []struct {
		tool Tool
		args []string
	}{
		{Gen, []string{"--requests", "60", "-o", name("w.jsonl")}},
		{Sim, []string{name("w.jsonl"), "-o", name("a.jsonl")}},
		{Sim, []string{"--set", "routing={type: random}", "--set",
			"admission={type: rate-limit, params: {limit: 1}}", name("w.jsonl"), "-o", name("b.jsonl")}},
		{Gen, []string{"--import", "recording:" + table, "-o", name("r.jsonl")}},
		{Sim, []string{name("r.jsonl"), "-o", name("r.run.jsonl")}},
	} {
		if code, _, errs := runs(t, c.tool, c.args...); code != 0 {
			t.Fatal(errs)
		}
	}
	for _, c := range []struct {
		schema string
		args   []string
		want   string
	}{
		{"diff", []string{name("a.jsonl"), name("b.jsonl"), "--where", "arrival_us > 5"}, `"first": {`},
		{"diff", []string{name("a.jsonl"), name("a.jsonl")}, `"status": "same"`},
		{"diff", []string{name("r.run.jsonl"), table, "--fail-if", "d.e2e.mean.relative_diff > 9"}, `"fidelity": {`},
		{"ranking", []string{"--rank", name("r.run.jsonl"), table, name("a.jsonl"), name("b.jsonl")}, `"regret": `},
	} {
		_, out, errs := runs(t, Diff, append(c.args, "--format", "json")...)
		var document any
		if err := json.Unmarshal([]byte(out), &document); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v; %s\n%s", c.args, err, errs, out)
			continue
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal([]byte(readFile(t, "schemas/"+c.schema+".schema.json")), &schema); err != nil {
			t.Fatal(err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(document); err != nil {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}

// A pipe can be read again from the start, even if the first reader ended early.
func TestSpoolReadsPipesAgain(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	r := &inputSpool{ctx: t.Context(), stdin: iotest.OneByteReader(strings.NewReader(text))}
	defer r.close()
	for _, n := range []int64{7, 0, 1000, int64(len(text)), 30, int64(len(text))} {
		in, err := r.open("-")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.LimitReader(in, n))
		if err != nil || string(got) != text[:n] {
			t.Errorf("of %d bytes: %d are right, %v", n, len(got), err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	broken := errors.New("broken")
	r = &inputSpool{ctx: t.Context(), stdin: io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))}
	defer r.close()
	for range 2 {
		in, err := r.open("-")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); string(got) != "abc" || !errors.Is(err, broken) {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := r.open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there")
	}
}
