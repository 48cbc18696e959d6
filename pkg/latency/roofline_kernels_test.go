package latency_test

import (
	"testing"

	"blis/pkg/latency"
	"blis/pkg/model"
)

// kernelSums are steps of models on a GPU as sums of measured kernels, without the host.
func kernelSums(t *testing.T, on string) measurement {
	m := measurement{name: "sums of kernels, " + on, gpu: on}
	for _, of := range []struct {
		name string
		tp   []int
	}{
		{"meta-llama/Llama-3.1-8B", []int{1, 2, 4}}, {"Qwen/Qwen3-32B", []int{2, 4, 8}},
		{"meta-llama/Llama-3.1-70B", []int{4, 8}},
		{"Qwen/Qwen3-30B-A3B", []int{1, 2, 4}}, {"mistralai/Mixtral-8x7B-v0.1", []int{2, 4}},
	} {
		arch, err := model.BuiltIn(of.name)
		if err != nil {
			t.Fatal(err)
		}
		work := arch.Work()
		for _, tp := range of.tp {
			sum := compiled(t, of.name, on, tp, false)
			add := func(kind string, b latency.Batch, sequences, length int64) {
				m.steps = append(m.steps, step{kind: kind, batch: b, work: &work, tp: tp, us: float64(sum.Step(b)),
					sequences: sequences, length: length})
			}
			for _, n := range []int64{1, 4, 16, 64, 128, 256} {
				for _, context := range []int64{256, 1024, 4096} {
					add("decode", latency.Batch{Decode: n, Context: n * context}, n, context)
				}
			}
			for _, n := range []int64{64, 256, 512, 1024, 2048, 4096, 8192} {
				chunk := latency.Batch{Prefill: n, Chunks: 1, Pairs: n * (n + 1) / 2}
				add("prefill", chunk, 1, n)
			}
			for _, n := range []int64{64, 256, 512, 1024, 2048, 4096, 8192} {
				chunk := latency.Batch{Prefill: n, Chunks: 1, Pairs: n * (n + 1) / 2, Decode: 32, Context: 32 * 1024}
				add("mixed", chunk, 33, n)
			}
		}
	}
	return m
}

// TestRooflineAgainstKernels compares the roofline, without the host, with sums of measured kernels on all GPUs
// that have tables, half of which its factors were not fitted on. With -v it logs the errors, with -fit it also
// refits.
func TestRooflineAgainstKernels(t *testing.T) {
	for _, on := range []string{"A100-SXM-80GB", "H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "B300-SXM",
		"GB200", "L40S-48GB", "RTX-PRO-6000-Server"} {
		m := kernelSums(t, on)
		fit, heldOut := m.halves()
		c := accuracyCase{of: m, with: kernels(t, on)}
		c.with.SequenceUS = 1
		if *fitting {
			c.with = fitFactors(t, on, c.with, "compute memory layer_us collective_us link", fit)
			t.Logf("%s: %+v", on, c.with)
		}
		c.check(t, m, heldOut, map[string]float64{"prefill": 15, "decode": 15, "mixed": 15})
	}
}
