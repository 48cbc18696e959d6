package latency_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
)

var fitting = flag.Bool("fit", false, "fit the factors again on the first halves and log them")

// gpu is what is known of a GPU, with the efficiency that ships.
func gpu(t *testing.T, name string) *hardware.GPU {
	t.Helper()
	known, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	g, err := known.GPU(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// kernels is the efficiency of a GPU without its host.
func kernels(t *testing.T, name string) latency.Efficiency {
	e := gpu(t, name).Efficiency
	e.StepUS = 0
	return e
}

// judgement is a measurement, its factors, which of them were fitted on its first
// half, and the bounds that the other half keeps: the median errors in %, by kind.
//
// The H100 and the A100 of 2023 are of a server that is slower than today's: its
// link, step_us, sequence_us and launch_us are that server's, not the GPU's.
type judgement struct {
	of     measurement
	with   latency.Efficiency
	fitted string
	median map[string]float64
	// other is steps of other models, none of which was fitted on.
	other measurement
	bound map[string]float64
}

// What a measurement can tell: whole steps of servers that launch kernel by
// kernel know the host and the exchanges, but little of attention; kernels of one
// GPU know all of the GPU, and nothing else. The rest is kept: on the A100 and the
// H100 memory 0.8 and attention 0.6, near what the RTX PRO 6000 has, and 10 µs an
// exchange. Past and mixed say nothing there: no step of theirs has both kinds.
const (
	ofHost = "step_us sequence_us launch_us link "
	ofGPU  = "compute attention memory past mixed sequence_us layer_us "
)

func judgements(t *testing.T) []judgement {
	h100 := measurement{name: "vLLM 0.15.1, H100-SXM-80GB", gpu: "H100-SXM-80GB"}
	h100.steps = slices.Concat(
		recorded(t, "20260217-231439-llama-2-7b-tp1-general.csv.zst", &llama7B, 1),
		recorded(t, "20260218-150304-codellama-34b-tp2-general.csv.zst", &code34B, 2),
		recorded(t, "20260217-202857-llama-2-70b-tp4-general.csv.zst", &llama70B, 4),
	)
	mixtral := measurement{name: "Mixtral-8x7B", gpu: "H100-SXM-80GB",
		steps: recorded(t, "20260218-130541-mixtral-8x7b-v0-1-tp2-general.csv.zst", &mixtral8x7B, 2)}
	return []judgement{
		{of: splitwise(t, "A100-SXM-80GB", "a100-80gb"), fitted: ofHost + "compute",
			with:   latency.Efficiency{Compute: 0.6282, Attention: 0.6, Past: 0.15, Memory: 0.8, Link: 0.2285, Mixed: 0.6, StepUS: 12560, SequenceUS: 423, LaunchUS: 399.5, CollectiveUS: 10},
			median: map[string]float64{"prefill": 25, "decode": 15}},
		{of: splitwise(t, "H100-SXM-80GB", "h100-80gb"), fitted: ofHost + "compute",
			with:   latency.Efficiency{Compute: 0.6879, Attention: 0.6, Past: 0.15, Memory: 0.8, Link: 0.1524, Mixed: 0.6, StepUS: 9698, SequenceUS: 324, LaunchUS: 246.5, CollectiveUS: 10},
			median: map[string]float64{"prefill": 25, "decode": 15}},
		{of: h100, fitted: "link step_us sequence_us layer_us",
			with:   gpu(t, "H100-SXM-80GB").Efficiency,
			median: map[string]float64{"decode": 8},
			other:  mixtral, bound: map[string]float64{"decode": 8}},
		{of: llmServingSim(t, "Llama-3.1-8B", "RTXPRO6000", "RTX-PRO-6000", &llama8B, 500_000), fitted: ofGPU,
			with:   kernels(t, "RTX-PRO-6000"),
			median: map[string]float64{"prefill": 10, "decode": 5, "mixed": 10},
			other:  llmServingSim(t, "Qwen3-32B", "RTXPRO6000", "RTX-PRO-6000", &qwen32B, 80_000),
			bound:  map[string]float64{"prefill": 10, "decode": 5, "mixed": 15}},
		{of: llmServingSim(t, "Llama-3.1-8B", "RTX4090", "RTX-4090", &llama8B, 40_000), fitted: ofGPU,
			with:   kernels(t, "RTX-4090"),
			median: map[string]float64{"prefill": 10, "decode": 5, "mixed": 10}},
	}
}

// TestRooflineAgainstMeasuredSteps judges the factors on steps that they were not
// fitted on. With -v it logs errors and residuals, with -fit it also fits.
func TestRooflineAgainstMeasuredSteps(t *testing.T) {
	for _, j := range judgements(t) {
		fit, held := j.of.halves()
		if *fitting {
			j.with = fitted(t, j.of.gpu, j.with, j.fitted, fit)
			t.Logf("%s: %+v", j.of.name, j.with)
		}
		j.hold(t, j.of, held, j.median)
		j.hold(t, j.other, j.other.steps, j.bound)
	}
}

func (j judgement) hold(t *testing.T, m measurement, steps []step, bounds map[string]float64) {
	if len(steps) == 0 {
		return
	}
	times := predict(t, m.gpu, j.with, steps)
	var text strings.Builder
	for _, kind := range kinds {
		var off []float64
		for i, s := range steps {
			if s.kind == kind {
				off = append(off, 100*(times[i]/s.us-1))
			}
		}
		if len(off) == 0 {
			continue
		}
		slices.Sort(off)
		bias := off[len(off)/2]
		for i := range off {
			off[i] = math.Abs(off[i])
		}
		slices.Sort(off)
		median, p90 := off[len(off)/2], off[len(off)*9/10]
		fmt.Fprintf(&text, "\n%-8s %5d cells: median error %.1f %%, p90 %.1f %%, bias %+.1f %%", kind, len(off), median, p90, bias)
		if bound, ok := bounds[kind]; !ok || median > bound {
			t.Errorf("%s: the median error of %s steps is %.1f %%, want at most %g %%", m.name, kind, median, bound)
		}
		text.WriteString(residuals(steps, times, kind))
	}
	t.Logf("%s%s", m.name, text.String())
}

var kinds = []string{"prefill", "decode", "mixed"}

// residuals is a table of median errors in %: a row for the sequences, a column
// for the tokens of each, in powers of four.
func residuals(steps []step, times []float64, kind string) string {
	type cell struct{ sequences, length int }
	power := func(n int64) int { return int(math.Log2(float64(max(n, 1)))) / 2 }
	cells, most := map[cell][]float64{}, cell{}
	for i, s := range steps {
		if s.kind == kind {
			c := cell{power(s.sequences), power(s.length)}
			cells[c] = append(cells[c], 100*(times[i]/s.us-1))
			most = cell{max(most.sequences, c.sequences), max(most.length, c.length)}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n%14s", "sequences\\each")
	for l := range most.length + 1 {
		fmt.Fprintf(&text, "%7d", int64(1)<<(2*l))
	}
	for n := range most.sequences + 1 {
		fmt.Fprintf(&text, "\n%14d", int64(1)<<(2*n))
		for l := range most.length + 1 {
			if off := cells[cell{n, l}]; off != nil {
				slices.Sort(off)
				fmt.Fprintf(&text, "%+7.1f", off[len(off)/2])
			} else {
				fmt.Fprintf(&text, "%7s", ".")
			}
		}
	}
	return text.String()
}

// predict returns the time of each step, in µs.
func predict(t *testing.T, name string, e latency.Efficiency, steps []step) []float64 {
	t.Helper()
	build, err := latency.Models.Get("latency model", "roofline")
	if err != nil {
		t.Fatal(err)
	}
	type served struct {
		work *model.Work
		tp   int
	}
	data, models, times := gpu(t, name), map[served]latency.Model{}, make([]float64, len(steps))
	for i, s := range steps {
		by := served{s.work, s.tp}
		if models[by] == nil {
			models[by], err = build(latency.Coefficients{Alpha: []float64{0, 0, 0}, Replica: &latency.Replica{
				Work: *s.work,
				Machine: latency.Machine{
					FLOPS: data.FLOPS("bf16"), AttentionFLOPS: data.FLOPS("bf16"), Bandwidth: data.MemoryBandwidth(), Link: data.LinkBandwidth(),
					TensorParallel: s.tp, PipelineParallel: 1, DataParallel: 1, Efficiency: e,
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		times[i] = float64(models[by].Step(s.batch))
	}
	return times
}

// loss is the mean of |ln(predicted/measured)|, summed over the kinds of steps.
func loss(t *testing.T, gpu string, e latency.Efficiency, steps []step) float64 {
	sum, count := map[string]float64{}, map[string]float64{}
	for i, us := range predict(t, gpu, e, steps) {
		sum[steps[i].kind] += math.Abs(math.Log(us / steps[i].us))
		count[steps[i].kind]++
	}
	total := 0.0
	for _, kind := range kinds {
		total += sum[kind] / max(1, count[kind])
	}
	return total
}

// fitted lowers the loss by one of the named factors at a time, in smaller and
// smaller steps. A time may also become 0.
func fitted(t *testing.T, gpu string, e latency.Efficiency, names string, steps []step) latency.Efficiency {
	factors := []struct {
		name  string
		value *float64
		most  float64
	}{
		{"compute", &e.Compute, 1}, {"attention", &e.Attention, 1}, {"memory", &e.Memory, 1}, {"link", &e.Link, 1}, {"past", &e.Past, 1}, {"mixed", &e.Mixed, 1},
		{"step_us", &e.StepUS, 1e6}, {"sequence_us", &e.SequenceUS, 1e6}, {"launch_us", &e.LaunchUS, 1e6}, {"layer_us", &e.LayerUS, 1e6},
	}
	best := loss(t, gpu, e, steps)
	for by := 0.5; by > 0.001; by /= 1.5 {
		for improved, round := true, 0; improved && round < 20; round++ {
			improved = false
			for _, f := range factors {
				if !slices.Contains(strings.Fields(names), f.name) {
					continue
				}
				was := *f.value
				tries := []float64{was * (1 + by), was / (1 + by)}
				if f.most > 1 {
					tries = append(tries, 0, was+by)
				}
				for _, try := range tries {
					*f.value = min(try, f.most)
					if l := loss(t, gpu, e, steps); l < best-1e-7 {
						best, was, improved = l, *f.value, true
					}
				}
				*f.value = was
			}
		}
	}
	return e
}
