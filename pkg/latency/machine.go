package latency

// Machine is the GPUs that one replica runs on.
type Machine struct {
	// FLOPS is the dense peak of one GPU at the precision that its matrix
	// products run in, AttentionFLOPS that for attention, in FLOP/s; Bandwidth
	// that of its memory and Link that of its way to the other GPUs, in one
	// direction, in bytes/s.
	FLOPS, AttentionFLOPS, Bandwidth, Link float64
	// The replica has TP·PP·DP of them.
	TensorParallel, PipelineParallel, DataParallel int
	Efficiency                                     Efficiency
}

// Efficiency says how much of a machine's data sheet a server gets, and what it
// pays besides.
type Efficiency struct {
	// Compute, Memory and Link are fractions of the peaks.
	Compute float64 `yaml:"compute" json:"compute"`
	Memory  float64 `yaml:"memory" json:"memory"`
	Link    float64 `yaml:"link" json:"link"`
	// Overheads are µs: for each step, each layer, each collective operation.
	StepUS       float64 `yaml:"step_us" json:"step_us"`
	LayerUS      float64 `yaml:"layer_us" json:"layer_us"`
	CollectiveUS float64 `yaml:"collective_us" json:"collective_us"`
}
