package model

// Work is what a model asks of a machine, summed over its layers: the facts
// that the time of a step and the size of a cache follow from.
type Work struct {
	// Layers counts all layers, Hidden is the width of what passes between them.
	Layers, Hidden int
	// Dense are the weights that every token meets: attention projections, dense
	// and shared MLPs, routers, norms and biases; no embeddings, no routed experts.
	Dense Weights
	// Expert is one routed expert of one layer. ExpertLayers have Experts of
	// them each and send a token to ExpertsPerToken. All are 0 in a dense model.
	Expert                                 Weights
	ExpertLayers, Experts, ExpertsPerToken int
	// Head is the matrix from hidden to vocabulary, met only by tokens whose
	// successor is sampled. Embedding is the table of inputs, of which a token
	// reads one row; it has no bytes of its own where it is the head's matrix.
	Head, Embedding Weights
	// A token that attends to another costs PairFLOPs in all layers with full
	// attention together, and its keys and values take KVBytes there. The
	// sliding-window layers count apart: they see the last Window tokens.
	PairFLOPs, KVBytes             int64
	WindowPairFLOPs, WindowKVBytes int64
	Window                         int // 0: there are no such layers
	// KVHeads bounds over how many GPUs tensor parallelism divides the KV bytes;
	// 1 for MLA, whose latent vector every GPU holds.
	KVHeads int
}

// Weights are parameters and the bytes they take as stored.
type Weights struct{ Params, Bytes int64 }
