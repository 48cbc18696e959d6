package latency

import (
	"fmt"

	"blis/pkg/model"
)

// Replica is what the roofline model computes a step from: what is served, and
// what it is served by.
type Replica struct {
	Work    model.Work `json:"work"`
	Machine Machine    `json:"machine"`
}

// Machine is the GPUs that one replica runs on, and how they share the work.
type Machine struct {
	// FLOPS is the dense peak of one GPU at the precision that its matrix
	// products run in, AttentionFLOPS that for attention, in FLOP/s; Bandwidth
	// that of its memory and Link that of its way to the other GPUs, in one
	// direction, in bytes/s. One GPU alone needs no Link.
	FLOPS          float64 `json:"flops_per_s"`
	AttentionFLOPS float64 `json:"attention_flops_per_s"`
	Bandwidth      float64 `json:"bandwidth_bytes_per_s"`
	Link           float64 `json:"link_bytes_per_s"`
	// The replica has TP·PP·DP of them.
	TensorParallel   int `json:"tensor_parallel"`
	PipelineParallel int `json:"pipeline_parallel"`
	DataParallel     int `json:"data_parallel"`
	// ExpertParallel gives each of the TP·DP GPUs of a stage whole experts, to
	// which tokens are sent. Without it each GPU has a slice of every expert.
	ExpertParallel bool       `json:"expert_parallel"`
	Efficiency     Efficiency `json:"efficiency"`
}

// Efficiency says how much of a machine's data sheet a server gets, and what it
// pays besides. The fractions are properties of a GPU and its kernels; the
// times, but for Collective, of the server that runs on it.
type Efficiency struct {
	// Fractions of the peaks, above 0 and at most 1: Compute and Attention of the
	// FLOPs in matrix products and in attention, Memory and Link of the bandwidths.
	Compute   float64 `yaml:"compute" json:"compute"`
	Attention float64 `yaml:"attention" json:"attention"`
	Memory    float64 `yaml:"memory" json:"memory"`
	Link      float64 `yaml:"link" json:"link"`
	// Of that memory bandwidth, Past is what a chunk's attention gets where it
	// reads what was computed before, in as few thread blocks as the sequence has
	// heads of keys; Mixed what decode attention gets in a step that has chunks
	// too, where one kernel serves both.
	Past  float64 `yaml:"past" json:"past"`
	Mixed float64 `yaml:"mixed" json:"mixed"`
	// Overheads in µs. StepUS and SequenceUS are the host's, before and after the
	// GPUs work: for a step, and for each sequence in it. LaunchUS is the host's
	// for each layer while the GPUs work, which then take at least that long; 0
	// where whole steps are launched at once. LayerUS is what the short kernels
	// of a layer take, CollectiveUS the latency of an exchange between GPUs.
	StepUS       float64 `yaml:"step_us" json:"step_us"`
	SequenceUS   float64 `yaml:"sequence_us" json:"sequence_us"`
	LaunchUS     float64 `yaml:"launch_us" json:"launch_us"`
	LayerUS      float64 `yaml:"layer_us" json:"layer_us"`
	CollectiveUS float64 `yaml:"collective_us" json:"collective_us"`
}

// check reports the first fact that no machine can have.
func (m Machine) check() error {
	peaks := []quantity{
		{"flops", m.FLOPS},
		{"attention flops", m.AttentionFLOPS},
		{"memory bandwidth", m.Bandwidth},
		{"link bandwidth", m.Link},
	}
	if m.TensorParallel == 1 && m.PipelineParallel == 1 && m.DataParallel == 1 {
		peaks = peaks[:3]
	}
	for _, q := range peaks {
		if !(q.value >= 1) || q.value > maxPeak {
			return fmt.Errorf("%s must be between 1 and %g a second, is %g", q.name, maxPeak, q.value)
		}
	}
	for _, d := range []struct {
		name   string
		degree int
	}{
		{"tensor_parallel", m.TensorParallel},
		{"pipeline_parallel", m.PipelineParallel},
		{"data_parallel", m.DataParallel},
	} {
		if d.degree < 1 || d.degree > maxDegree {
			return fmt.Errorf("%s must be between 1 and %d, is %d", d.name, maxDegree, d.degree)
		}
	}
	return m.Efficiency.check()
}

func (e Efficiency) check() error {
	for _, q := range []quantity{
		{"compute", e.Compute},
		{"attention", e.Attention},
		{"memory", e.Memory},
		{"link", e.Link},
		{"past", e.Past},
		{"mixed", e.Mixed},
	} {
		if !(q.value >= minFraction) || q.value > 1 {
			return fmt.Errorf("efficiency %s must be between %g and 1, is %g", q.name, minFraction, q.value)
		}
	}
	for _, q := range []quantity{
		{"step_us", e.StepUS},
		{"sequence_us", e.SequenceUS},
		{"launch_us", e.LaunchUS},
		{"layer_us", e.LayerUS},
		{"collective_us", e.CollectiveUS},
	} {
		if !(q.value >= 0) || q.value > maxCoefficient {
			return fmt.Errorf("efficiency %s must be between 0 and %g, is %g", q.name, maxCoefficient, q.value)
		}
	}
	return nil
}

type quantity struct {
	name  string
	value float64
}

// The bounds are far outside what exists and far inside what a float64 holds.
const (
	maxPeak     = 1e21
	maxDegree   = 1 << 16
	minFraction = 1e-3
)
