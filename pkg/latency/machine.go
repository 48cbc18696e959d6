package latency

import (
	"fmt"

	"blis/pkg/model"
)

// Replica is the input of the roofline model: the work of the model, and the machine that serves
// it.
type Replica struct {
	Work    model.Work `json:"work"`
	Machine Machine    `json:"machine"`
}

// Machine describes the GPUs of one replica, and how they share the work.
type Machine struct {
	// FLOPS is the dense peak of one GPU in FLOP/s at the precision of its matrix products,
	// AttentionFLOPS at that of attention. Bandwidth is its memory bandwidth and Link its bandwidth to
	// the other GPUs in one direction, in bytes/s. A single GPU needs no Link.
	FLOPS          float64 `json:"flops_per_s"`
	AttentionFLOPS float64 `json:"attention_flops_per_s"`
	Bandwidth      float64 `json:"bandwidth_bytes_per_s"`
	Link           float64 `json:"link_bytes_per_s"`
	// SharedLink: all GPUs exchange data over one path, as over PCIe through the host. Link is what a pair
	// has; with n GPUs each gets 2/n of it.
	SharedLink bool `json:"shared_link,omitempty"`
	// The replica has TP·PP·DP GPUs.
	TensorParallel   int `json:"tensor_parallel"`
	PipelineParallel int `json:"pipeline_parallel"`
	DataParallel     int `json:"data_parallel"`
	// ExpertParallel places whole experts on each of the TP·DP GPUs of a stage and sends tokens to
	// them. Without it each GPU has a slice of every expert.
	ExpertParallel bool       `json:"expert_parallel"`
	Efficiency     Efficiency `json:"efficiency"`
}

// Efficiency is the achieved fraction of a machine's data sheet, and the overheads. The fractions
// are properties of a GPU and its kernels; the times, except CollectiveUS, of the server that runs
// on it.
type Efficiency struct {
	// Fractions of the peaks, above 0 and at most 1: Compute and Attention of the FLOPs in matrix
	// products and in attention, Memory and Link of the bandwidths.
	Compute   float64 `yaml:"compute"       json:"compute"`
	Attention float64 `yaml:"attention"     json:"attention"`
	Memory    float64 `yaml:"memory"        json:"memory"`
	Link      float64 `yaml:"link"          json:"link"`
	// Fractions of the memory bandwidth: PriorContext is reached when a chunk's attention reads earlier
	// tokens, in as few thread blocks as the sequence has KV heads; Mixed is reached by decode
	// attention in a step that also has chunks, where one kernel serves both.
	PriorContext float64 `yaml:"past"          json:"past"`
	Mixed        float64 `yaml:"mixed"         json:"mixed"`
	// Overheads in µs. StepUS and SequenceUS are host time before and after the GPU work, for a step
	// and for each sequence in it. LaunchUS is host time for each layer during the GPU work, which then
	// takes at least that long; 0 where whole steps are launched at once. LayerUS is the time of a
	// layer's short kernels, CollectiveUS the latency of a collective between GPUs.
	StepUS       float64 `yaml:"step_us"       json:"step_us"`
	SequenceUS   float64 `yaml:"sequence_us"   json:"sequence_us"`
	LaunchUS     float64 `yaml:"launch_us"     json:"launch_us"`
	LayerUS      float64 `yaml:"layer_us"      json:"layer_us"`
	CollectiveUS float64 `yaml:"collective_us" json:"collective_us"`
}

// check returns an error for the first impossible value.
func (m Machine) check() error {
	peaks := []namedValue{
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
	for _, q := range []namedValue{
		{"compute", e.Compute},
		{"attention", e.Attention},
		{"memory", e.Memory},
		{"link", e.Link},
		{"past", e.PriorContext},
		{"mixed", e.Mixed},
	} {
		if !(q.value >= minFraction) || q.value > 1 {
			return fmt.Errorf("efficiency %s must be between %g and 1, is %g", q.name, minFraction, q.value)
		}
	}
	for _, q := range []namedValue{
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

type namedValue struct {
	name  string
	value float64
}

// The limits are far outside of real values and far inside of a float64.
const (
	maxPeak     = 1e21
	maxDegree   = 1 << 16
	minFraction = 1e-3
)
