package model

import "slices"

// KVKind says which tokens' keys and values a layer needs.
type KVKind string

// The kinds of layers with a KV cache.
const (
	KVFull    KVKind = "full-attention" // of all tokens
	KVWindow  KVKind = "sliding-window" // of the newest tokens
	KVChunked KVKind = "chunked-local"  // of the tokens in the same chunk
	KVState   KVKind = "mamba"          // none, but a recurrent state
)

// KVGroup is layers whose blocks vLLM allocates together: a sequence has a table of blocks for each group.
type KVGroup struct {
	Kind KVKind `json:"kind"`
	// WindowTokens is the size of the window or of a chunk.
	WindowTokens int `json:"window_tokens,omitempty"`
	BlockSize    int `json:"block_size"`
	Layers       int `json:"layers"`
}

// KVLayers are layers with the same demand on the KV cache.
type KVLayers struct {
	Kind         KVKind
	WindowTokens int
	Count        int
	// Bytes is the size of one token, or of the state, in a layer. Tensor parallelism divides it by up to Heads.
	Bytes int64
	Heads int
	// Latent: its keys and values are those of MLA. State is the kind of a layer with a recurrent state.
	Latent bool
	State  string
}

// KVLayers returns the layers that have keys and values or a recurrent state, in the order of the model. A layer
// that compresses what is beyond its window counts twice.
func (a *Architecture) KVLayers() []KVLayers {
	var all []KVLayers
	for _, l := range a.Layers {
		t := &l.Attention
		if z := t.Linear; z != nil {
			all = addKVLayers(all, KVLayers{Kind: KVState, Count: l.Count, Heads: z.ValueHeads, State: z.Kind,
				Bytes: z.stateBytes(a.Precision.unquantized())})
			continue
		}
		if t.Heads == 0 {
			continue
		}
		k := KVLayers{Kind: KVFull, Count: l.Count, Bytes: t.kvBytes(a.Precision.kv()), Heads: t.KVHeads}
		if t.MLA != nil {
			k.Heads, k.Latent = 1, true
		}
		if t.Compressed != nil {
			rest := k
			rest.Bytes, rest.Heads = t.Compressed.share(k.Bytes), 1
			all = addKVLayers(all, rest)
		}
		switch {
		case t.Chunked:
			k.Kind, k.WindowTokens = KVChunked, t.Window
		case t.Window > 0:
			k.Kind, k.WindowTokens = KVWindow, t.Window
		case t.Compressed != nil:
			continue
		}
		all = addKVLayers(all, k)
	}
	return all
}

// addKVLayers adds k to the layers like it.
func addKVLayers(all []KVLayers, k KVLayers) []KVLayers {
	for i := range all {
		x := all[i]
		if x.Count = k.Count; x == k {
			all[i].Count += k.Count
			return all
		}
	}
	return append(all, k)
}

// KVPlan is how vLLM lays the KV cache of a GPU out (vllm/v1/core/kv_cache_planning.py, get_kv_cache_groups; in
// kv_cache_utils.py before 0.33). All groups take blocks of BlockBytes from one pool.
type KVPlan struct {
	Groups     []KVGroup
	BlockBytes int64
}

// KVPlan returns the groups. Layers of one kind are one group, whose block has all their pages. Layers of several
// kinds form groups of equal numbers of layers: as many as the kind with fewest has, or the one with most if that is
// less than GroupRatio times as many. The last group of a kind may have fewer. Pages are made as large as the largest
// one: a block has more tokens where it is a multiple, and unused bytes elsewhere. A state fits into a page of
// the other layers, see alignStates.
func (p MemoryPlan) KVPlan() KVPlan {
	layers := slices.Clone(p.Layers)
	state := p.alignStates()
	pages := make([]int64, len(layers))
	largest, fewest, most, sum, uniform := int64(0), maxLayers, 0, int64(0), true
	for i := range layers {
		l := &layers[i]
		l.Count = (l.Count + p.PP - 1) / p.PP // of the largest pipeline stage
		if pages[i] = int64(p.BlockSize) * p.share(l); l.Kind == KVState {
			pages[i] = state
		}
		largest, sum = max(largest, pages[i]), sum+int64(l.Count)*pages[i]
		fewest, most = min(fewest, l.Count), max(most, l.Count)
		uniform = uniform && l.Kind == layers[0].Kind && l.WindowTokens == layers[0].WindowTokens
	}
	if uniform {
		count := 0
		for i := range layers {
			count += layers[i].Count
		}
		return KVPlan{[]KVGroup{{layers[0].Kind, layers[0].WindowTokens, p.BlockSize, count}}, sum}
	}
	size := fewest
	if float64(most) < float64(p.GroupRatio*float64(fewest)) {
		size = most
	}
	plan := KVPlan{BlockBytes: int64(size) * largest}
	for i, l := range layers {
		g := KVGroup{Kind: l.Kind, WindowTokens: l.WindowTokens, BlockSize: p.BlockSize}
		switch {
		case l.Kind == KVState && !p.CachedStates:
			g.BlockSize = p.MaxModelLen
		case l.Kind != KVState && largest%pages[i] == 0:
			g.BlockSize *= int(largest / pages[i])
		}
		n := (l.Count + size - 1) / size
		for k := range n {
			g.Layers = (l.Count - k + n - 1) / n
			plan.Groups = append(plan.Groups, g)
		}
	}
	return plan
}

// kernelUnit is what the tokens of a block are a multiple of in a model with recurrent states, and mlaUnit if it has
// MLA.
const kernelUnit, mlaUnit = 16, 128

// share returns the bytes of a token or a state of a layer in one GPU.
func (p *MemoryPlan) share(l *KVLayers) int64 { return l.Bytes / int64(min(p.TP, l.Heads)) }

// alignStates makes blocks so large that the state of a layer fits into its page in another layer, and returns the
// size of this page. If states are cached, they have blocks of as many tokens, and otherwise one block for a whole
// sequence (Platform._align_hybrid_block_size in vllm/platforms/interface.py). A model that has only layers with
// states keeps its block size.
func (p *MemoryPlan) alignStates() (page int64) {
	unit, token := max(kernelUnit, p.BlockSize), int64(0)
	for i := range p.Layers {
		switch l := &p.Layers[i]; {
		case l.Kind == KVState:
			page = max(page, p.share(l))
		default:
			token = max(token, p.share(l))
			if l.Latent {
				unit = max(unit, mlaUnit)
			}
		}
	}
	if page == 0 || token == 0 {
		return page
	}
	if p.CachedStates {
		for most := unit; unit%max(1, p.StateAlignment) != 0; unit += most { // both are small
		}
	}
	per := int64(unit) * token
	p.BlockSize = max(p.BlockSize, unit*int((page+per-1)/per))
	return int64(p.BlockSize) * token
}
