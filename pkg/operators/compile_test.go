package operators

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blis/pkg/latency"
	"blis/pkg/model"
)

var update = flag.Bool("update", false, "rewrite hardware/operators/*.z from the tables in ../shared/data/operators")

const systemsFolder = "../../../shared/data/operators"

func skipWithoutTables(t *testing.T) {
	if _, err := os.Stat(systemsFolder + "/data"); err != nil {
		t.Skip("needs ../shared/data/operators")
	}
}

// builtInGPUs are the GPUs with built-in tables, one for each system.
var builtInGPUs = []string{"A100-SXM-80GB", "H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "B300-SXM", "GB200",
	"L40S-48GB",
	"RTX-PRO-6000-Server"}

func built(t *testing.T, name string) *model.Architecture {
	t.Helper()
	a, err := model.BuiltIn(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func machine(tp int) Machine {
	return Machine{TensorParallel: tp, PipelineParallel: 1, DataParallel: 1, Bandwidth: 3.35e12, Link: 450e9,
		Captured:        512,
		AsyncScheduling: true}
}

// TestDistilledTables: the built-in tables are those that distill makes. Most cells that they have not,
// and steps, are close to those of the full tables.
func TestDistilledTables(t *testing.T) {
	skipWithoutTables(t)
	if testing.Short() && !*update {
		t.Skip("reads 25 MB of tables")
	}
	var cells, steps []float64
	total := 0
	for _, gpu := range builtInGPUs {
		full, err := Load(systemsFolder, gpu)
		if err != nil {
			t.Fatal(err)
		}
		packed := full.distill().encode()
		file := filepath.Join("../../hardware/operators", full.System+".z")
		if *update {
			if err := os.WriteFile(file, packed, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if total += len(have); string(have) != string(packed) {
			t.Errorf("%s is not current: run go test ./pkg/operators -update", file)
		}
		distilled, err := decode(full.System, packed)
		if err != nil {
			t.Fatal(err)
		}
		for name, g := range full.series {
			d := distilled.series[name]
			if d == nil {
				continue
			}
			for i, x := range g.x {
				for j, y := range g.y {
					cells = append(cells, math.Abs(d.interpolate(x, y) / *g.at(i, j) - 1))
				}
			}
		}
		steps = append(steps, stepErrors(t, full, distilled)...)
	}
	if total > 2<<20 {
		t.Errorf("distilled tables have %d bytes, want at most 2 MiB", total)
	}
	for _, e := range []struct {
		of   string
		list []float64
	}{{"cells", cells}, {"steps", steps}} {
		slices.Sort(e.list)
		n := len(e.list)
		median, p90 := e.list[n/2], e.list[n*9/10]
		t.Logf("%d %s: median loss %.2f %%, p90 %.2f %%; %d bytes", n, e.of, 100*median, 100*p90, total)
		if median > 0.01 || p90 > 0.05 {
			t.Errorf("distilled %s lose %.2f %% in the median and %.2f %% in the p90", e.of, 100*median, 100*p90)
		}
	}
}

// batches are steps of several kinds.
var batches = []latency.Batch{
	{Decode: 1, Context: 100}, {Decode: 13, Context: 13 * 700}, {Decode: 32, Context: 32 * 3000}, {Decode: 150,
		Context: 150 * 1500},
	{Decode: 333, Context: 333 * 900}, {Prefill: 300, Chunks: 1, Pairs: 300 * 301 / 2},
	{Prefill: 2000, Chunks: 2, Pairs: 1000 * 1001}, {Prefill: 8192, Chunks: 1, Pairs: 8192 * 8193 / 2},
	{Prefill: 1900, Chunks: 1, Pairs: 1900 * 5000, PriorContext: 4000, Decode: 100, Context: 100 * 2000},
}

// stepErrors compares steps from two tables.
func stepErrors(t *testing.T, full, distilled *Tables) (errors []float64) {
	for _, name := range []string{"meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-30B-A3B",
		"mistralai/Mixtral-8x7B-v0.1", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b", "Qwen/Qwen3-32B-FP8"} {
		for _, tp := range []int{1, 4} {
			a, b := stepModel(t, name, tp, full), stepModel(t, name, tp, distilled)
			for _, batch := range batches {
				errors = append(errors, math.Abs(float64(b.Step(batch))/float64(a.Step(batch))-1))
			}
		}
	}
	return errors
}

func stepModel(t *testing.T, name string, tp int, tables *Tables) latency.Model {
	t.Helper()
	o, err := Compile(built(t, name), tables, machine(tp))
	if err != nil {
		t.Fatal(err)
	}
	return newModel(t, o)
}

func newModel(t *testing.T, o *latency.Operators) latency.Model {
	t.Helper()
	of, err := latency.Models.Get("model", "operators")
	if err != nil {
		t.Fatal(err)
	}
	m, err := of(latency.Coefficients{Alpha: []float64{0, 0, 0}, Operators: o})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCurvesAreSumsOfKernels: between their points, the curves are close to the sums of the kernels.
func TestCurvesAreSumsOfKernels(t *testing.T) {
	tables, err := Load("", "H100-SXM-80GB")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"meta-llama/Llama-3.1-70B", "deepseek-ai/DeepSeek-V3"} {
		c := &compiler{tables: tables, arch: built(t, name), machine: machine(8)}
		c.machine.Distribution = defaultDistribution
		for i := range c.arch.Layers {
			if err := c.layer(&c.arch.Layers[i]); err != nil {
				t.Fatal(err)
			}
		}
		o := newModel(t, &latency.Operators{Tokens: curve(c.tokens, tokenSizes), Experts: curve(c.experts, tokenSizes),
			Sequences: latency.Curve{At: []int64{1}, US: []float64{0}}, Groups: 1, Ranks: 1,
			Host: latency.Host{ChunkFactor: 1}})
		for _, n := range []int64{1, 5, 23, 100, 333, 1000, 5000, 20000} {
			want := 0.0
			for _, k := range slices.Concat(c.tokens, c.experts) {
				want += k.count * k.us(float64(n))
			}
			if have := float64(o.Step(latency.Batch{Decode: n})); math.Abs(have/want-1) > 0.03 {
				t.Errorf("%s, %d tokens: %g µs, want %g", name, n, have, want)
			}
		}
	}
}

// TestAllModelsCompile: any model with any built-in tables has steps that do not fall, and notes for
// what the tables do not have.
func TestAllModelsCompile(t *testing.T) {
	archs := model.BuiltIns()
	files, err := filepath.Glob(systemsFolder + "/model_configs/*_config.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_hf_quant_config.json") {
			continue
		}
		a, err := model.Find(file, "")
		if err != nil {
			t.Fatal(err)
		}
		archs = append(archs, a)
	}
	for _, gpu := range builtInGPUs {
		tables, err := Load("", gpu)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range archs {
			m := machine([]int{1, 2, 4, 8}[i%4])
			m.ExpertParallel, m.DataParallel = i%3 == 0, 1+i%2
			m.FusedBytes, m.OneShotBytes = int64(i%2)<<25, int64(i%2)<<22
			m.Graphs = AllGraphs[i%len(AllGraphs)]
			o, err := Compile(a, tables, m)
			if err != nil {
				t.Errorf("%s on %s: %v", a.Name, gpu, err)
				continue
			}
			step := newModel(t, o)
			for _, b := range batches {
				more := b
				more.Decode, more.Context = b.Decode*2, b.Context*2
				more.Prefill, more.Pairs, more.Chunks = b.Prefill*2, b.Pairs*2, b.Chunks*2
				if x, y := step.Step(b), step.Step(more); x < 50 || y < x {
					t.Errorf("%s on %s: %+v takes %d µs, twice as much %d", a.Name, gpu, b, x, y)
				}
			}
		}
	}
}

func TestLoad(t *testing.T) {
	if _, err := Load("", "MI300X-192GB"); err == nil || !strings.Contains(err.Error(),
		"no tables of measured kernels of MI300X") {
		t.Errorf("a GPU without tables: %v", err)
	}
	if _, err := Load(t.TempDir(), "L40S-48GB"); err == nil || !strings.Contains(err.Error(),
		"L40S-48GB (no data/l40s)") {
		t.Errorf("a folder without tables: %v", err)
	}
	if name := System("My-GPU"); name != "my_gpu" {
		t.Errorf("the tables of My-GPU are %s", name)
	}
	tables, err := Load("", "H100-SXM-80GB")
	if err != nil {
		t.Fatal(err)
	}
	m := machine(1)
	m.Experts = "fp9"
	if _, err := Compile(built(t, "Qwen/Qwen3-30B-A3B"), tables, m); err == nil || !strings.Contains(err.Error(),
		`unknown experts "fp9"`) {
		t.Errorf("an unknown kernel: %v", err)
	}
}

// TestOlderFolders: the folders of aiconfigurator before 0.11 have all operators of a version in one
// folder.
func TestOlderFolders(t *testing.T) {
	skipWithoutTables(t)
	old := t.TempDir()
	files, err := filepath.Glob(systemsFolder + "/data/a100_sxm/*/*/*/*.parquet")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		version := filepath.Dir(file)
		to := filepath.Join(old, "data", "a100_sxm", filepath.Base(filepath.Dir(version)), filepath.Base(version))
		if err := os.MkdirAll(to, 0o777); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Load(systemsFolder, "A100-SXM-80GB")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load(old, "A100-SXM-80GB")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.series) == 0 || string(a.encode()) != string(b.encode()) {
		t.Errorf("%d series, want %d", len(b.series), len(a.series))
	}
}

// TestAttentionStandsIn: attention that no table has is that of the nearest kernel. Decode attention counts pairs of
// sequences and KV heads, so the query heads of each matter, not all of them.
func TestAttentionStandsIn(t *testing.T) {
	tables, err := Load("", "H100-SXM-80GB")
	if err != nil {
		t.Fatal(err)
	}
	o, err := Compile(built(t, "meta-llama/Llama-2-7b-hf"), tables, machine(1))
	if err != nil {
		t.Fatal(err)
	}
	const want = "decode attention of 32 heads, 32 KV heads of 128: that of 8, 8 of 128"
	if !slices.Contains(o.Notes, want) {
		t.Errorf("notes %q, want %q", o.Notes, want)
	}
}
