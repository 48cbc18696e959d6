package cluster

import (
	"fmt"
	"strings"
	"testing"

	"blis/pkg/hardware"
)

func TestPresets(t *testing.T) {
	c, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	// Of each version: seqs, tokens, async, reserve, memory, order, threshold for lone requests, after
	// self-preemption, idle victim, retention, release and reserve of windows, ratio.
	for _, x := range []struct{ preset, gpu, want string }{
		{"vllm-0.8", "A100-80GB", "1024 8192 false false 0.9 append true stop true -1 a scheduled all 1.25"},
		{"vllm-0.8", "L40S", "256 2048 false false 0.9 append true stop true -1 a scheduled all 1.25"},
		{"vllm-0.11", "A100-80GB", "256 2048 false false 0.9 append true stop true -1 a scheduled all 1.25"},
		{"vllm-0.11", "A100-PCIe", "256 2048 false false 0.9 append true stop true -1 a scheduled all 1.25"},
		{"vllm-0.11", "H100", "1024 8192 false false 0.9 append true stop true -1 a scheduled all 1.25"},
		{"vllm-0.15", "H100", "1024 8192 true false 0.9 append true stop true -1 a scheduled all 1.25"},
		{"vllm-0.15", "A100-40GB", "256 2048 true false 0.9 append true stop true -1 a scheduled all 1.25"},
		{"vllm-0.19", "RTX-PRO-6000", "1024 8192 true true 0.9 append true stop true -1 a scheduled all 1.5"},
		{"vllm-0.20", "RTX-4090", "256 2048 true true 0.92 append true stop true -1 a scheduled all 1.5"},
		{"vllm-0.24", "MI300X", "1024 8192 true true 0.92 unhashed-first true stop true -1 r scheduled window 1.5"},
		{"vllm-0.24", "", "256 2048 true true 0.92 unhashed-first true stop true -1 r scheduled window 1.5"},
		{"vllm-0.28", "MI300X", "1024 16384 true true 0.92 unhashed-first true stop false -1 r computed window 1.5"},
		{"vllm-0.28", "H200", "1024 8192 true true 0.92 unhashed-first true stop false -1 r computed window 1.5"},
		{"vllm-0.31", "B200", "1024 16384 true true 0.92 unhashed-first false stop false 0 r computed window 1.5"},
		{"vllm-0.31", "GB10", "1024 8192 true true 0.92 unhashed-first false stop false 0 r computed window 1.5"},
		{"vllm-0.33", "GB10", "256 2048 true true 0.92 unhashed-first false continue false 0 r computed window 1.5"},
		{"vllm-0.33", "H100", "1024 8192 true true 0.92 unhashed-first false continue false 0 r computed window 1.5"},
	} {
		p, err := Presets.Get("preset", x.preset) // by its own name
		if err != nil {
			t.Fatal(err)
		}
		var g *hardware.GPU
		if x.gpu == "GB10" {
			g = &hardware.GPU{ID: "spark", Name: "NVIDIA GB10", MemoryGiB: 119.7}
		} else if x.gpu != "" {
			if g, err = c.GPU(x.gpu); err != nil {
				t.Fatal(err)
			}
		}
		e := defaultEngine()
		p.apply(&e, g)
		if got := strings.TrimSpace(fmt.Sprintln(e.MaxNumSeqs, e.MaxNumBatchedTokens, e.AsyncScheduling,
			e.ReserveFullSequence, e.GPUMemoryUtilization, e.FreeOrder, e.LongPrefillTokenThresholdLone,
			e.AfterSelfPreemption, e.IdleVictimSkipsNext, e.PrefixCacheRetentionInterval, e.HashedBlocks[:1],
			e.WindowRelease, e.WindowReserve, e.KVGroupRatio)); got != x.want {
			t.Errorf("%s on %q: %s, want %s", x.preset, x.gpu, got, x.want)
		}
	}
}

// TestFindPreset: a version that is not listed has the preset of the last one before it.
func TestFindPreset(t *testing.T) {
	newest := Presets[len(Presets)-1].Name
	for _, x := range []struct{ name, want string }{
		{"vllm-0.8.5", "vllm-0.8"}, {"vllm-0.9", "vllm-0.11"}, {"vllm-0.10.2", "vllm-0.11"},
		{"vllm-0.14", "vllm-0.15"},
		{"vllm-0.18", "vllm-0.15"}, {"vllm-0.19.1", "vllm-0.19"}, {"vllm-0.23", "vllm-0.20"},
		{"vllm-0.25", "vllm-0.24"},
		{"vllm-0.27", "vllm-0.24"}, {"vllm-0.33.0", "vllm-0.33"}, {"latest", newest},
	} {
		p, isNewer, err := findPreset(x.name)
		if err != nil || isNewer || p.Name != x.want {
			t.Errorf("%s is %s (newer: %v, error: %v), want %s", x.name, p.Name, isNewer, err, x.want)
		}
	}
	for _, name := range []string{"vllm-0.999", "vllm-1.0"} {
		if p, isNewer, err := findPreset(name); err != nil || !isNewer || p.Name != newest {
			t.Errorf("%s is %s (newer: %v, error: %v)", name, p.Name, isNewer, err)
		}
	}
	for name, want := range map[string]string{"vllm-0.7": "too old", "vllm": "have vllm-0.8, ", "vllm-0": "latest",
		"VLLM-0.8": "did you mean"} {
		if _, _, err := findPreset(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
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
			p.Value.apply(&e, g)
			if e.MaxNumSeqs < 1 || e.MaxNumBatchedTokens < e.MaxNumSeqs || e.BlockSize < 1 ||
				!(e.GPUMemoryUtilization > 0 && e.GPUMemoryUtilization < 1) || e.Watermark < 0 {
				t.Errorf("%s: %+v", p.Name, e)
			}
		}
	}
}
