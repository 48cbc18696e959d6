package cluster

import (
	"encoding/json"

	"blis/pkg/kv"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// Computed are the values for each replica that follow from the model, the GPU
// and the engine. Values that need an unknown model or GPU are missing.
type Computed struct {
	GPUs               int `json:"gpus"`
	ExpertParallelSize int `json:"expert_parallel_size,omitempty"`
	// KVBlocks are the KV blocks of one engine core. Window is the additional use of
	// sequences in layers with a sliding window.
	KVBlocks int     `json:"kv_blocks"`
	Window   *Window `json:"window,omitempty"`
	// Parameters of the text model, in total and those active for a token; the bytes
	// of the weights as stored; the KV bytes of one token in all layers.
	TotalParameters  int64 `json:"total_parameters,omitempty"`
	ActiveParameters int64 `json:"active_parameters,omitempty"`
	WeightBytes      int64 `json:"weight_bytes,omitempty"`
	KVBytesPerToken  int64 `json:"kv_bytes_per_token,omitempty"`
	// FLOPs of one token in all layers: in the attention projections, in the MLPs,
	// and for each token that it attends to.
	AttentionFLOPs     int64 `json:"attention_flops_per_token,omitempty"`
	MLPFLOPs           int64 `json:"mlp_flops_per_token,omitempty"`
	AttentionPairFLOPs int64 `json:"attention_flops_per_pair,omitempty"`
	// Memory is the memory of one GPU, from which KVBlocks follow unless overridden.
	Memory *model.Memory `json:"memory,omitempty"`
	// Roofline is the input of the roofline model.
	Roofline *latency.Replica `json:"roofline,omitempty"`
}

// Window is the KV use of layers with a sliding window of Tokens: each of the
// first Blocks blocks of a sequence needs ExtraBlocks more.
type Window struct {
	Tokens      int `json:"tokens"`
	Blocks      int `json:"blocks,omitempty"`
	ExtraBlocks int `json:"extra_blocks,omitempty"`
}

// KVWindow returns the window as the KV cache counts it.
func (w *Window) KVWindow() kv.Window {
	if w == nil {
		return kv.Window{}
	}
	return kv.Window{Blocks: w.Blocks, Extra: w.ExtraBlocks}
}

// Blocks returns the number of KV blocks of each engine core of a replica.
func (d *Deployment) Blocks() int { return d.Computed.KVBlocks }

// printed returns k as --print-config prints it and a file has it.
func printed(k *Computed) (values map[string]any) {
	text, err := json.Marshal(k)
	if err != nil {
		panic("cluster: " + err.Error()) // numbers and names
	}
	doc, err := strictyaml.Parse("computed", text)
	if err == nil {
		err = doc.Decode(&values)
	}
	if err != nil {
		panic("cluster: " + err.Error())
	}
	return values
}
