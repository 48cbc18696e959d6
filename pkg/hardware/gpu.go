package hardware

import (
	"fmt"

	"blis/pkg/latency"
)

// GPU has the facts of one kind of GPU.
type GPU struct {
	ID string `yaml:"id" json:"id"`
	// Name is the name that the driver reports.
	Name    string   `yaml:"name" json:"name,omitempty"`
	Aliases []string `yaml:"aliases" json:"aliases,omitempty"`
	// PeakTFLOPS are dense, with 32-bit accumulation, in 10^12 operations per second.
	PeakTFLOPS Peaks `yaml:"peak_tflops" json:"peak_tflops"`
	// MemoryGiB is the device's total as programs see it, below the data sheet's. MemoryGBPerS
	// is the peak bandwidth in 10^9 bytes per second.
	MemoryGiB    float64 `yaml:"memory_gib" json:"memory_gib"`
	MemoryGBPerS float64 `yaml:"memory_gb_per_s" json:"memory_gb_per_s"`
	// Link connects the GPUs of a node: nvlink, pcie or infinity-fabric. LinkGBPerS is the
	// bandwidth of all links of a GPU in one direction; 0 without links.
	Link       string  `yaml:"link" json:"link,omitempty"`
	LinkGBPerS float64 `yaml:"link_gb_per_s" json:"link_gb_per_s,omitempty"`
	TDPW       float64 `yaml:"tdp_w" json:"tdp_w,omitempty"`
	// Power is what it draws; nil if that is unknown.
	Power *Power `yaml:"power" json:"power,omitempty"`
	// Efficiency is the fraction of the peaks that a server reaches; the catalog's default where
	// a file does not state it.
	Efficiency latency.Efficiency `yaml:"efficiency" json:"efficiency"`
	// Sources has the source of each fact by its name here: in files as a key of the file's
	// sources, in an open catalog in full.
	Sources map[string]string `yaml:"sources" json:"sources,omitempty"`
	Notes   string            `yaml:"notes" json:"notes,omitempty"`
}

// Power is what a GPU draws, in W: with a model loaded and no step, in a step that the memory bounds, as one of a few
// sequences that decode, and in a step that FLOPs bound, as one of a long prompt.
type Power struct {
	IdleW    float64 `yaml:"idle_w" json:"idle_w"`
	DecodeW  float64 `yaml:"decode_w" json:"decode_w"`
	PrefillW float64 `yaml:"prefill_w" json:"prefill_w"`
}

// Check returns an error about the first invalid number, and its name.
func (p *Power) Check() (name string, err error) {
	for _, x := range []struct {
		name            string
		value, at, most float64
	}{
		{"idle_w", p.IdleW, 0.001, maxPower}, {"decode_w", p.DecodeW, p.IdleW, maxPower},
		{"prefill_w", p.PrefillW, p.DecodeW, maxPower},
	} {
		if !(x.value >= x.at && x.value <= x.most) {
			return x.name, fmt.Errorf("must be between %g and %g, is %g: idle_w <= decode_w <= prefill_w", x.at, x.most,
				x.value)
		}
	}
	return "", nil
}

// maxPower is beyond that of any GPU, in W.
const maxPower = 1e6

// Peaks are by precision; 0 where the GPU has no units for it.
type Peaks struct {
	BF16 float64 `yaml:"bf16" json:"bf16"`
	FP8  float64 `yaml:"fp8" json:"fp8,omitempty"`
	FP4  float64 `yaml:"fp4" json:"fp4,omitempty"`
}

func (g *GPU) hasIDOf(other *GPU) bool { return normalize(g.ID) == normalize(other.ID) }

// FLOPS returns the peak in operations per second of matrix products in fp8, fp4 or, for any
// other precision, bf16. A GPU without units for a precision has the peak of bf16.
func (g *GPU) FLOPS(precision string) float64 {
	tera := g.PeakTFLOPS.BF16
	switch {
	case precision == "fp8" && g.PeakTFLOPS.FP8 > 0:
		tera = g.PeakTFLOPS.FP8
	case precision == "fp4" && g.PeakTFLOPS.FP4 > 0:
		tera = g.PeakTFLOPS.FP4
	}
	return tera * 1e12
}

// MemoryBytes returns the size of the memory.
func (g *GPU) MemoryBytes() float64 { return g.MemoryGiB * (1 << 30) }

// MemoryBandwidth returns the peak bandwidth of the memory in bytes per second.
func (g *GPU) MemoryBandwidth() float64 { return g.MemoryGBPerS * 1e9 }

// LinkBandwidth returns the peak bandwidth to other GPUs in one direction, in bytes per
// second; 0 without links.
func (g *GPU) LinkBandwidth() float64 { return g.LinkGBPerS * 1e9 }
