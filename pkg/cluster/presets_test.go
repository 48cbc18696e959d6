package cluster

import (
	"testing"

	"blis/pkg/hardware"
)

func TestPresets(t *testing.T) {
	c, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	small := Engine{
		Parallel: Parallel{TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1},
		Batching: Batching{MaxNumSeqs: 256, MaxNumBatchedTokens: 2048, EnableChunkedPrefill: true,
			PreemptionMode: "recompute"},
		Memory: Memory{BlockSize: 16, GPUMemoryUtilization: 0.9, EnablePrefixCaching: true, FreeOrder: "append"},
	}
	large := small
	large.MaxNumSeqs, large.MaxNumBatchedTokens = 1024, 8192
	with := func(e Engine, async, reserve bool, memory float64) Engine {
		e.AsyncScheduling, e.ReserveFullSequence, e.GPUMemoryUtilization = async, reserve, memory
		if memory > 0.9 {
			e.FreeOrder = "unhashed-first"
		}
		return e
	}
	for _, x := range []struct {
		preset, gpu string
		want        Engine
	}{
		{"vllm-0.8", "A100-80GB", large},
		{"vllm-0.8", "L40S", small},
		{"vllm-0.11", "A100-80GB", small},
		{"vllm-0.11", "A100-PCIe", small},
		{"vllm-0.11", "H100", large},
		{"vllm-0.15", "H100", with(large, true, false, 0.9)},
		{"vllm-0.15", "A100-40GB", with(small, true, false, 0.9)},
		{"vllm-0.19", "RTX-PRO-6000", with(large, true, true, 0.9)},
		{"vllm-0.25", "RTX-4090", with(small, true, true, 0.92)},
		{"vllm-0.25", "MI300X", with(large, true, true, 0.92)},
		{"vllm-0.25", "", with(small, true, true, 0.92)},
	} {
		of, err := Presets.Get("preset", x.preset)
		if err != nil {
			t.Fatal(err)
		}
		var g *hardware.GPU
		if x.gpu != "" {
			if g, err = c.GPU(x.gpu); err != nil {
				t.Fatal(err)
			}
		}
		got := defaultEngine()
		if of(&got, g); got != x.want {
			t.Errorf("%s on %q: %+v, want %+v", x.preset, x.gpu, got, x.want)
		}
	}
}

// TestPresetsAreEngines: on any GPU, a preset is valid engine settings.
func TestPresetsAreEngines(t *testing.T) {
	c, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Presets {
		for _, g := range append(c.GPUs(), nil) {
			e := defaultEngine()
			p.Value(&e, g)
			if e.MaxNumSeqs < 1 || e.MaxNumBatchedTokens < e.MaxNumSeqs || e.BlockSize < 1 ||
				!(e.GPUMemoryUtilization > 0 && e.GPUMemoryUtilization < 1) || e.Watermark < 0 {
				t.Errorf("%s: %+v", p.Name, e)
			}
		}
	}
}
