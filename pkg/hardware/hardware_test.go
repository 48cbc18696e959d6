package hardware

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blis/pkg/latency"
	"blis/pkg/strictyaml"
)

func open(t testing.TB, paths ...string) *Catalog {
	t.Helper()
	c, err := Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write writes files into a new directory and returns it.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestBuiltInGPUs: each has all facts, a source for each, and makes a machine.
func TestBuiltInGPUs(t *testing.T) {
	c := open(t)
	if n := len(c.GPUs()); n < 16 {
		t.Errorf("%d GPUs", n)
	}
	for _, g := range c.GPUs() {
		for _, fact := range []string{"peak_tflops", "memory_gib", "memory_gb_per_s", "link_gb_per_s", "tdp_w"} {
			if !strings.Contains(g.Sources[fact], " ") { // a text, no key
				t.Errorf("%s: the source of %s is %q", g.ID, fact, g.Sources[fact])
			}
		}
		if g.LinkGBPerS == 0 || g.TDPW == 0 || g.Name == "" || g.Link == "" {
			t.Errorf("%s: facts are missing: %+v", g.ID, g)
		}
		if (g.Power != nil) != strings.Contains(g.Sources["power"], " ") {
			t.Errorf("%s: power %+v, source %q", g.ID, g.Power, g.Sources["power"])
		}
		if w := g.Power; w != nil && (w.IdleW >= w.DecodeW || w.DecodeW >= w.PrefillW || w.PrefillW > g.TDPW) {
			t.Errorf("%s: power %+v at a TDP of %g", g.ID, w, g.TDPW)
		}
		p := g.PeakTFLOPS
		if p.FP8 != 0 && (p.FP8/p.BF16 < 1.99 || p.FP8/p.BF16 > 2.03) || p.FP4 != 0 && p.FP4/p.FP8 < 1.99 {
			t.Errorf("%s: peaks %+v: half the width is at least twice as fast", g.ID, p)
		}
		var replica latency.Replica
		replica.Work.Layers, replica.Work.Hidden, replica.Work.KVHeads, replica.Work.Dense.Bytes = 1, 1, 1, 1
		replica.Machine = latency.Machine{
			FLOPS: g.FLOPS("bf16"), AttentionFLOPS: g.FLOPS("bf16"), Bandwidth: g.MemoryBandwidth(),
			Link:           g.LinkBandwidth(),
			TensorParallel: 2, PipelineParallel: 1, DataParallel: 1, Efficiency: g.Efficiency,
		}
		build, err := latency.Models.Get("latency model", "roofline")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := build(latency.Coefficients{Alpha: []float64{0, 0, 0}, Replica: &replica}); err != nil {
			t.Errorf("%s: %v", g.ID, err)
		}
	}
}

func TestGPUByName(t *testing.T) {
	c := open(t)
	for name, id := range map[string]string{
		"H100-SXM-80GB": "H100-SXM-80GB", "h100": "H100-SXM-80GB", "H100-sxm": "H100-SXM-80GB",
		"NVIDIA H100 80GB HBM3": "H100-SXM-80GB", "H100-80GB-HBM3": "H100-SXM-80GB",
		"A100-80GB": "A100-SXM-80GB", "a100_40gb": "A100-SXM-40GB",
		"RTXPRO6000": "RTX-PRO-6000", "RTX PRO 6000": "RTX-PRO-6000", "RTX4090": "RTX-4090",
	} {
		if g, err := c.GPU(name); err != nil || g.ID != id {
			t.Errorf("%s: %v, %v, want %s", name, g, err, id)
		}
	}
	_, err := c.GPU("H10O")
	if err == nil || !strings.Contains(err.Error(), `unknown GPU "H10O"; did you mean "H100"? (have A100-SXM-80GB, `) {
		t.Errorf("error %v", err)
	}
}

func TestUnits(t *testing.T) {
	c := open(t)
	for _, x := range []struct {
		id                 string
		bf16, fp8, fp4     float64
		bytes, memory, net float64
	}{
		{"H100", 989e12, 1978e12, 989e12, 79.11 * (1 << 30), 3350e9, 450e9}, // no FP4: as wide as BF16
		{"A100", 312e12, 312e12, 312e12, 79.25 * (1 << 30), 2039e9, 300e9},
		{"B200", 2250e12, 4500e12, 9000e12, 178.36 * (1 << 30), 7700e9, 900e9},
	} {
		g, err := c.GPU(x.id)
		if err != nil {
			t.Fatal(err)
		}
		got := []float64{g.FLOPS("bf16"), g.FLOPS("fp8"), g.FLOPS("fp4"),
			g.MemoryBytes(), g.MemoryBandwidth(), g.LinkBandwidth()}
		if want := []float64{x.bf16, x.fp8, x.fp4, x.bytes, x.memory, x.net}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", x.id, got, want)
		}
	}
}

const ownGPU = `version: 1
sources: {sheet: the data sheet}
gpus:
  - id: X1
    aliases: [X-One]
    peak_tflops: {bf16: 100}
    memory_gib: 64
    memory_gb_per_s: 1000
    efficiency: {memory: 0.5, sequence_us: 0}
    sources: {memory_gib: sheet, tdp_w: pcie5}
`

func TestOwnGPU(t *testing.T) {
	h100 := strings.Replace(ownGPU, "X1", "h100-sxm-80gb", 1)
	c := open(t, write(t, map[string]string{"a.yaml": ownGPU,
		"z.yaml": strings.Replace(h100, "X-One", "H100, mine", 1), "notes.txt": "no catalog"}))
	g, err := c.GPU("x-one")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := c.GPU("MI300X")
	if err != nil {
		t.Fatal(err)
	}
	want := plain.Efficiency // states none of its own
	want.Memory, want.SequenceUS = 0.5, 0
	if g.Efficiency != want {
		t.Errorf("efficiency %+v, want %+v", g.Efficiency, want)
	}
	if g.Sources["memory_gib"] != "the data sheet" || g.Sources["tdp_w"] != "PCIe 5.0 x16" {
		t.Errorf("sources %v", g.Sources)
	}
	// The other one replaces the built-in H100, whose other names are gone.
	g, err = c.GPU("H100")
	if err != nil || g.MemoryGiB != 64 {
		t.Errorf("H100 is %+v, %v", g, err)
	}
	if g, err := c.GPU("H100-SXM"); err == nil {
		t.Errorf("H100-SXM is %s", g.ID)
	}
	if n := slices.IndexFunc(c.GPUs(), func(have *GPU) bool { return have == g }); n != 3 {
		t.Errorf("the H100 is number %d, want its old index 3", n)
	}
}

func TestInvalidFiles(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"version: 1", "version: 2", "a.yaml:1:10: version: must be 1, is 2"},
		{"memory_gib: 64", "memory_gb: 64", `a.yaml:7:5: unknown field "memory_gb"; did you mean "memory_gib"?`},
		{"memory_gib: 64", "memory_gib: many", `a.yaml:7:17: memory_gib must be a number, is "many"`},
		{"memory_gib: 64", "memory_gib: -1", "a.yaml:7:17: gpus[0].memory_gib: must be between 0.001 and 1e+06, is -1"},
		{"    memory_gib: 64\n", "", "gpus[0].memory_gib is not in the file: must be between"},
		{"bf16: 100", "fp8: 100", "gpus[0].peak_tflops.bf16 is not in the file: must be between"},
		{"memory: 0.5", "memory: 1.5", "a.yaml:9:26: gpus[0].efficiency.memory: must be between 0.001 and 1, is 1.5"},
		{"sequence_us: 0", "sequence_us: -1", "gpus[0].efficiency.sequence_us: must be between 0 and"},
		{"tdp_w: pcie5", "tdp_w: pcie",
			`a.yaml:10:41: gpus[0].sources.tdp_w: unknown source "pcie"; did you mean "pcie4"?`},
		{"tdp_w: pcie5", "tpd_w: pcie5", `gpus[0].sources.tpd_w: unknown fact "tpd_w"; did you mean "tdp_w"?`},
		{"id: X1", "id: X1\n    link: nvlnk", `gpus[0].link: unknown link "nvlnk"; did you mean "nvlink"?`},
		{"id: X1", `id: ""`, "gpus[0].id: must be given"},
		{"X-One", "H100",
			`a.yaml:5:15: gpus[0].aliases[0]: "H100" is already a name of H100-SXM-80GB; ` +
				`a GPU with that id replaces it`},
		{"gpus:", "gpus:\n  - {id: x1, peak_tflops: {bf16: 1}, memory_gib: 1, memory_gb_per_s: 1}",
			`gpus[1].id: "X1" is the id of an earlier GPU`},
		{"gpus:", "gpus:\n  -", "a.yaml:4:"},
		{"memory_gib: 64", "memory_gib: 64\n    power: {idle_w: 50, decode_w: 300}",
			"gpus[0].power.prefill_w is not in the file: must be between 300 and 1e+06, is 0: idle_w <= decode_w"},
		{"memory_gib: 64", "memory_gib: 64\n    power: {idle_w: 50, decode_w: 49, prefill_w: 300}",
			"a.yaml:8:35: gpus[0].power.decode_w: must be between 50 and 1e+06, is 49"},
		{"memory_gib: 64", "memory_gib: 64\n    power: {decode_w: 49, prefill_w: 300}",
			"gpus[0].power.idle_w is not in the file: must be between 0.001 and 1e+06, is 0"},
	} {
		dir := write(t, map[string]string{"a.yaml": strings.Replace(ownGPU, x.old, x.new, 1)})
		_, err := Open(dir)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v, want %q", x.new, err, x.want)
		}
		if place := new(strictyaml.Error); err != nil && !errors.As(err, &place) {
			t.Errorf("%s: %v has no position", x.new, err)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no *.yaml") {
		t.Errorf("an empty directory: error %v", err)
	}
	if _, err := Open("missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: error %v", err)
	}
}

// TestBoundsOfFacts: a fact may be at its bound, and not beyond.
func TestBoundsOfFacts(t *testing.T) {
	for _, x := range []struct {
		old, at, beyond string
	}{
		{"memory_gib: 64", "memory_gib: 0.001", "memory_gib: 0.0009"},
		{"memory_gib: 64", "memory_gib: 1e6", "memory_gib: 1.1e6"},
		{"memory_gib: 64", "memory_gib: 64\n    link_gb_per_s: 1e9", "memory_gib: 64\n    link_gb_per_s: 1.1e9"},
		{"memory_gib: 64", "memory_gib: 64\n    tdp_w: 1e6", "memory_gib: 64\n    tdp_w: 1.1e6"},
		{"memory_gib: 64", "memory_gib: 64\n    power: {idle_w: 0.001, decode_w: 0.001, prefill_w: 1e6}",
			"memory_gib: 64\n    power: {idle_w: 0.001, decode_w: 0.001, prefill_w: 1.1e6}"},
		{"bf16: 100", "bf16: 1e9", "bf16: 1.1e9"},
		{"bf16: 100", "bf16: 100, fp8: 1e9", "bf16: 100, fp8: 1.1e9"},
		{"memory: 0.5", "memory: 1", "memory: 1.01"},
		{"memory: 0.5", "link: 1", "link: 1.01"},
		{"memory: 0.5", "past: 0.001", "past: 0.0009"},
		{"memory: 0.5", "compute: 0.001", "compute: 0.0009"},
		{"sequence_us: 0", "sequence_us: 1e9", "sequence_us: 1.1e9"},
	} {
		for _, text := range []string{x.at, x.beyond} {
			_, err := Open(write(t, map[string]string{"a.yaml": strings.Replace(ownGPU, x.old, text, 1)}))
			if ok := text == x.at; (err == nil) != ok || !ok && !strings.Contains(err.Error(), "must be between") {
				t.Errorf("%s: error %v", text, err)
			}
		}
	}
}
