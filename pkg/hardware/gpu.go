package hardware

import "blis/pkg/latency"

// GPU is what is known of one kind of GPU.
type GPU struct {
	ID string `yaml:"id" json:"id"`
	// Name is what the driver calls it.
	Name    string   `yaml:"name" json:"name,omitempty"`
	Aliases []string `yaml:"aliases" json:"aliases,omitempty"`
	// PeakTFLOPS are dense, with sums in 32 bits, in 10^12 operations a second.
	PeakTFLOPS Peaks `yaml:"peak_tflops" json:"peak_tflops"`
	// MemoryGiB is what programs find as the device's total: less than the data
	// sheet's. MemoryGBPerS is the peak of its bandwidth, in 10^9 bytes a second.
	MemoryGiB    float64 `yaml:"memory_gib" json:"memory_gib"`
	MemoryGBPerS float64 `yaml:"memory_gb_per_s" json:"memory_gb_per_s"`
	// Link is how it reaches the other GPUs of its node: nvlink, pcie or
	// infinity-fabric. LinkGBPerS is that of all its links together, in one
	// direction; 0 for a GPU that is alone.
	Link       string  `yaml:"link" json:"link,omitempty"`
	LinkGBPerS float64 `yaml:"link_gb_per_s" json:"link_gb_per_s,omitempty"`
	TDPW       float64 `yaml:"tdp_w" json:"tdp_w,omitempty"`
	// Efficiency is how much of that a server gets. What a file does not state is
	// the catalogue's default.
	Efficiency latency.Efficiency `yaml:"efficiency" json:"efficiency"`
	// Sources says where each of these facts, by its name here, is from: in files
	// by a key of theirs, in an open catalogue in full.
	Sources map[string]string `yaml:"sources" json:"sources,omitempty"`
	Notes   string            `yaml:"notes" json:"notes,omitempty"`
}

// Peaks are by precision; 0 where the GPU has no such unit.
type Peaks struct {
	BF16 float64 `yaml:"bf16" json:"bf16"`
	FP8  float64 `yaml:"fp8" json:"fp8,omitempty"`
	FP4  float64 `yaml:"fp4" json:"fp4,omitempty"`
}

// FLOPS returns the peak, in operations a second, of products whose two factors
// are fp8 or fp4, or of any other precision, for which it is that of bf16. A GPU
// without units for a precision widens its numbers, and has the peak of bf16.
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

// MemoryBytes returns the size of its memory.
func (g *GPU) MemoryBytes() float64 { return g.MemoryGiB * (1 << 30) }

// MemoryBandwidth returns the peak of its memory, in bytes a second.
func (g *GPU) MemoryBandwidth() float64 { return g.MemoryGBPerS * 1e9 }

// LinkBandwidth returns the peak of its way to other GPUs in one direction, in
// bytes a second; 0 if it has none.
func (g *GPU) LinkBandwidth() float64 { return g.LinkGBPerS * 1e9 }
