package latency_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/operators"
)

// TestOperatorsAgainstMeasuredSteps compares the operators model, of which nothing was fitted to these
// steps, with all of them. The steps of LLMServingSim are GPU time alone, so the host is left out. -v
// logs the errors.
func TestOperatorsAgainstMeasuredSteps(t *testing.T) {
	names := map[*model.Work]string{&llama8B: "meta-llama/Llama-3.1-8B", &qwen32B: "Qwen/Qwen3-32B",
		&llama7B: "meta-llama/Llama-2-7b-hf", &code34B: "codellama/CodeLlama-34b-Instruct-hf",
		&llama70B: "meta-llama/Llama-2-70b-hf", &mixtral8x7B: "mistralai/Mixtral-8x7B-v0.1"}
	h100 := func(file string, work *model.Work, tp int) measurement {
		return measurement{name: names[work] + ", vLLM 0.15.1, H100-SXM-80GB", gpu: "H100-SXM-80GB",
			steps: fromClients(t, file, work, tp)}
	}
	for _, c := range []struct {
		of    measurement
		host  bool
		bound map[string]float64 // of median errors in %
	}{
		{h100("20260217-231439-llama-2-7b-tp1-general.csv.zst", &llama7B, 1), true, map[string]float64{"decode": 8}},
		{h100("20260218-150304-codellama-34b-tp2-general.csv.zst", &code34B, 2), true,
			map[string]float64{"decode": 8}},
		{h100("20260217-202857-llama-2-70b-tp4-general.csv.zst", &llama70B, 4), true, map[string]float64{"decode": 8}},
		{h100("20260218-130541-mixtral-8x7b-v0-1-tp2-general.csv.zst", &mixtral8x7B, 2), true,
			map[string]float64{"decode": 8}},
		{llmServingSim(t, "Llama-3.1-8B", "RTXPRO6000", "RTX-PRO-6000", &llama8B, 500_000), false,
			map[string]float64{"prefill": 10, "decode": 10, "mixed": 10}},
		{llmServingSim(t, "Qwen3-32B", "RTXPRO6000", "RTX-PRO-6000", &qwen32B, 80_000), false,
			map[string]float64{"prefill": 10, "decode": 10, "mixed": 15}},
	} {
		first := c.of.steps[0]
		m := compiled(t, names[first.work], c.of.gpu, first.tp, c.host)
		_, heldOut := c.of.halves() // the half that the roofline's factors were not fitted on
		var text strings.Builder
		for _, kind := range kinds {
			median, p90, bias, n := stepErrors(m, heldOut, kind)
			if n == 0 {
				continue
			}
			fmt.Fprintf(&text, "\n%-8s %5d cells: median error %.1f %%, p90 %.1f %%, bias %+.1f %%", kind, n, median,
				p90, bias)
			if median > c.bound[kind] {
				t.Errorf("%s: the median error of %s steps is %.1f %%, want at most %g %%", c.of.name, kind, median,
					c.bound[kind])
			}
		}
		t.Logf("%s%s", c.of.name, text.String())
	}
}

// compiled returns the operators model of a model on GPUs, with or without the host's times.
func compiled(t testing.TB, name, on string, tp int, host bool) latency.Model {
	t.Helper()
	arch, err := model.BuiltIn(name)
	if err != nil {
		t.Fatal(err)
	}
	data := gpu(t, on)
	tables, err := operators.Load("", data.ID)
	if err != nil {
		t.Fatal(err)
	}
	o, err := operators.Compile(arch, tables, operators.Machine{TensorParallel: tp, PipelineParallel: 1,
		DataParallel: 1, Bandwidth: data.MemoryBandwidth(), Link: data.LinkBandwidth(), Captured: 256,
		AsyncScheduling: true, Graphs: operators.WholeDecodeAndRest, Mixed: data.Efficiency.Mixed})
	if err != nil {
		t.Fatal(err)
	}
	if !host {
		o.Host = latency.Host{Captured: o.Host.Captured, ChunkFactor: 1}
	}
	build, err := latency.Models.Get("latency model", "operators")
	if err != nil {
		t.Fatal(err)
	}
	m, err := build(latency.Coefficients{Alpha: []float64{0, 0, 0}, Operators: o})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stepErrors returns the median and p90 of absolute errors and the median of signed ones in %, over n
// steps of a kind.
func stepErrors(m latency.Model, steps []step, kind string) (median, p90, bias float64, n int) {
	var off []float64
	for _, s := range steps {
		if s.kind == kind {
			off = append(off, 100*(float64(m.Step(s.batch))/s.us-1))
		}
	}
	if n = len(off); n == 0 {
		return 0, 0, 0, 0
	}
	slices.Sort(off)
	bias = off[n/2]
	for i := range off {
		off[i] = math.Abs(off[i])
	}
	slices.Sort(off)
	return off[n/2], off[n*9/10], bias, n
}

// BenchmarkModels is the time of a step of each latency model, of real models on H100s, as a mean over a
// decode batch and a mixed one.
func BenchmarkModels(b *testing.B) {
	batches := []latency.Batch{{Decode: 61, Context: 61 * 900},
		{Decode: 40, Context: 40 * 900, Prefill: 1500, Chunks: 3, Pairs: 3 * 500 * 501 / 2}}
	run := func(name string, m latency.Model) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.Step(batches[i%2])
			}
		})
	}
	build := func(name string, c latency.Coefficients) latency.Model {
		of, err := latency.Models.Get("latency model", name)
		if err != nil {
			b.Fatal(err)
		}
		c.Alpha = []float64{0, 0, 0}
		m, err := of(c)
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	run("linear", build("linear", latency.Coefficients{Beta: []float64{5000, 20, 30}}))
	data := gpu(b, "H100-SXM-80GB")
	for _, name := range []string{"meta-llama/Llama-3.1-70B", "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-120b",
		"deepseek-ai/DeepSeek-V3"} {
		arch, err := model.BuiltIn(name)
		if err != nil {
			b.Fatal(err)
		}
		run("roofline/"+name, build("roofline", latency.Coefficients{Replica: &latency.Replica{Work: arch.Work(),
			Machine: latency.Machine{FLOPS: data.FLOPS("bf16"), AttentionFLOPS: data.FLOPS("bf16"),
				Bandwidth: data.MemoryBandwidth(), Link: data.LinkBandwidth(), TensorParallel: 4, PipelineParallel: 1,
				DataParallel: 1, Efficiency: data.Efficiency}}}))
		run("operators/"+name, compiled(b, name, "H100-SXM-80GB", 4, true))
	}
}
