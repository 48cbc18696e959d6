package model

// Work is a model's demand on a machine, summed over its layers: the inputs for the time of a step
// and the size of a cache.
type Work struct {
	// Layers counts all layers; Hidden is the width between them.
	Layers int `json:"layers"`
	Hidden int `json:"hidden"`
	// Reduces counts the parts of layers (attention, MLP) whose output tensor parallelism sums.
	Reduces int `json:"reduces"`
	// Dense are the weights that every token uses: attention projections, dense and shared MLPs,
	// routers, norms and biases; no embeddings, no routed experts.
	Dense Weights `json:"dense"`
	// Expert is one routed expert of one layer. ExpertLayers layers have Experts of them each and send
	// a token to ExpertsPerToken. All are 0 in a dense model.
	Expert          Weights `json:"expert"`
	ExpertLayers    int     `json:"expert_layers"`
	Experts         int     `json:"experts"`
	ExpertsPerToken int     `json:"experts_per_token"`
	// Head is the output matrix from hidden to vocabulary, used only by tokens whose successor is
	// sampled. Embedding is the input table, of which a token reads one row; it has no bytes of its own
	// if it shares the matrix of the head.
	Head      Weights `json:"head"`
	Embedding Weights `json:"embedding"`
	// Each pair of a token and one it attends to costs PairFLOPs, summed over the layers with full
	// attention; for the newest token of a sequence it is DecodePairFLOPs (more with MLA, which then
	// works on the latent vectors). A token's keys and values take KVBytes there. The sliding-window
	// layers, which attend to the last Window tokens, are counted separately.
	PairFLOPs       int64 `json:"pair_flops"`
	DecodePairFLOPs int64 `json:"decode_pair_flops"`
	KVBytes         int64 `json:"kv_bytes"`
	WindowPairFLOPs int64 `json:"window_pair_flops"`
	WindowKVBytes   int64 `json:"window_kv_bytes"`
	Window          int   `json:"window"` // 0: there are no such layers
	// StateBytes is the size of a sequence's states in layers without keys and values.
	StateBytes int64 `json:"state_bytes,omitempty"`
	// KVHeads and WindowKVHeads limit the number of GPUs over which tensor parallelism divides the KV
	// bytes; 1 for MLA, whose latent vector every GPU holds.
	KVHeads       int `json:"kv_heads"`
	WindowKVHeads int `json:"window_kv_heads"`
}

// Weights are parameters and the bytes they are stored in.
type Weights struct {
	Params int64 `json:"params"`
	Bytes  int64 `json:"bytes"`
}
