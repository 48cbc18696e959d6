package model

// Work is what a model asks of a machine, summed over its layers: the facts
// that the time of a step and the size of a cache follow from.
type Work struct {
	// Layers counts all layers, Hidden is the width of what passes between them.
	Layers int `json:"layers"`
	Hidden int `json:"hidden"`
	// Dense are the weights that every token meets: attention projections, dense
	// and shared MLPs, routers, norms and biases; no embeddings, no routed experts.
	Dense Weights `json:"dense"`
	// Expert is one routed expert of one layer. ExpertLayers have Experts of
	// them each and send a token to ExpertsPerToken. All are 0 in a dense model.
	Expert          Weights `json:"expert"`
	ExpertLayers    int     `json:"expert_layers"`
	Experts         int     `json:"experts"`
	ExpertsPerToken int     `json:"experts_per_token"`
	// Head is the matrix from hidden to vocabulary, met only by tokens whose
	// successor is sampled. Embedding is the table of inputs, of which a token
	// reads one row; it has no bytes of its own where it is the head's matrix.
	Head      Weights `json:"head"`
	Embedding Weights `json:"embedding"`
	// A token that attends to another costs PairFLOPs in all layers with full
	// attention together, the newest one of a sequence DecodePairFLOPs (which is
	// more with MLA: it works on the latent vectors then), and its keys and values
	// take KVBytes there. The sliding-window layers count apart: they see the last
	// Window tokens.
	PairFLOPs       int64 `json:"pair_flops"`
	DecodePairFLOPs int64 `json:"decode_pair_flops"`
	KVBytes         int64 `json:"kv_bytes"`
	WindowPairFLOPs int64 `json:"window_pair_flops"`
	WindowKVBytes   int64 `json:"window_kv_bytes"`
	Window          int   `json:"window"` // 0: there are no such layers
	// KVHeads and WindowKVHeads bound over how many GPUs tensor parallelism divides
	// the KV bytes; 1 for MLA, whose latent vector every GPU holds.
	KVHeads       int `json:"kv_heads"`
	WindowKVHeads int `json:"window_kv_heads"`
}

// Weights are parameters and the bytes they take as stored.
type Weights struct {
	Params int64 `json:"params"`
	Bytes  int64 `json:"bytes"`
}
