package cluster

import (
	"encoding/json"

	"blis/pkg/kv"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// Computed is what follows, for each replica, from the model, the GPU and the
// engine. What needs a model or a GPU that is not known is absent.
type Computed struct {
	GPUs               int `json:"gpus"`
	ExpertParallelSize int `json:"expert_parallel_size,omitempty"`
	// KVBlocks are those of one engine core; Window is what sequences hold beside
	// them for layers with a sliding window.
	KVBlocks int     `json:"kv_blocks"`
	Window   *Window `json:"window,omitempty"`
	// Parameters of the text model, all and those that a token meets; the bytes
	// of the weights as stored; those of the keys and values of one token in all
	// layers.
	TotalParameters  int64 `json:"total_parameters,omitempty"`
	ActiveParameters int64 `json:"active_parameters,omitempty"`
	WeightBytes      int64 `json:"weight_bytes,omitempty"`
	KVBytesPerToken  int64 `json:"kv_bytes_per_token,omitempty"`
	// FLOPs of one token in all layers: in the projections of attention and in
	// the MLPs; and for each token that it attends to.
	AttentionFLOPs     int64 `json:"attention_flops_per_token,omitempty"`
	MLPFLOPs           int64 `json:"mlp_flops_per_token,omitempty"`
	AttentionPairFLOPs int64 `json:"attention_flops_per_pair,omitempty"`
	// Memory is the sum that KVBlocks follow from unless they are overridden: of
	// one GPU.
	Memory *model.Memory `json:"memory,omitempty"`
	// Roofline is what a roofline is computed from.
	Roofline *latency.Replica `json:"roofline,omitempty"`
}

// Window is what sequences hold for layers with a sliding window of Tokens:
// beside each of the first Blocks blocks ExtraBlocks more.
type Window struct {
	Tokens      int `json:"tokens"`
	Blocks      int `json:"blocks,omitempty"`
	ExtraBlocks int `json:"extra_blocks,omitempty"`
}

// Hold returns the window in the cache's terms.
func (w *Window) Hold() kv.Window {
	if w == nil {
		return kv.Window{}
	}
	return kv.Window{Blocks: w.Blocks, Extra: w.ExtraBlocks}
}

// Blocks returns how many KV blocks each engine core of a replica has.
func (d *Deployment) Blocks() int { return d.Computed.KVBlocks }

// asShown is k as a file has it that was made by --print-config.
func asShown(k *Computed) (shown map[string]any) {
	text, err := json.Marshal(k)
	if err != nil {
		panic("cluster: " + err.Error()) // numbers and names
	}
	doc, err := strictyaml.Parse("computed", text)
	if err == nil {
		err = doc.Decode(&shown)
	}
	if err != nil {
		panic("cluster: " + err.Error())
	}
	return shown
}
