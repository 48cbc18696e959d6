package model

// indexBytes is the size of a number that the indexer of DeepSeek-V3.2 stores per token and layer:
// 8 bits, and a 32-bit scale for 128 numbers (vllm/model_executor/models/deepseek_v2.py,
// DeepseekV32IndexerCache).
const indexBytes = 1 + 4.0/128

// kvBytes is the KV cache size of one token in a layer.
func (t *Attention) kvBytes(each float64) int64 {
	index := bytesOf(int64(t.Index.Dim), indexBytes)
	if m := t.MLA; m != nil {
		return bytesOf(int64(m.KVRank+m.RopeDim), each) + index
	}
	if z := t.Compressed; z != nil {
		return bytesOf(int64(t.HeadDim), each) + index
	}
	return bytesOf(int64(t.KVHeads*(t.HeadDim+t.valueDim())), each) + index
}

// pairFLOPs is the cost of a token attending to another: the products of query and key and of
// weight and value, each a multiplication and an addition. With MLA it is the cost in prefill,
// which expands keys and values.
func (t *Attention) pairFLOPs() int64 {
	if m := t.MLA; m != nil {
		return 2 * int64(t.Heads) * int64(m.NopeDim+m.RopeDim+m.VDim)
	}
	return 2 * int64(t.Heads*(t.HeadDim+t.valueDim()))
}

// decodePairFLOPs is pairFLOPs for the newest token of a sequence. With MLA its query is mapped
// into the latent space, where keys and values are one vector (DeepSeek-V2, arXiv 2405.04434,
// §2.1.2; vllm/v1/attention/backends/mla).
func (t *Attention) decodePairFLOPs() int64 {
	if m := t.MLA; m != nil {
		return 2 * int64(t.Heads) * int64(2*m.KVRank+m.RopeDim)
	}
	return t.pairFLOPs()
}

// KVBytesPerToken is the KV cache size of one token in all layers, ignoring windows.
func (a *Architecture) KVBytesPerToken() int64 {
	n := int64(0)
	for _, l := range a.Layers {
		bytes := l.Attention.kvBytes(a.Precision.kv())
		if z := l.Attention.Compressed; z != nil {
			bytes = z.share(bytes)
		}
		n += int64(l.Count) * bytes
	}
	return n
}

// share is the part of n that a token has beyond the window: one of Ratio tokens is kept there.
func (z *Compressed) share(n int64) int64 {
	if z.Ratio == 0 {
		return 0
	}
	return n / int64(z.Ratio)
}

// WeightBytes is the stored size of the weights.
func (a *Architecture) WeightBytes() int64 {
	w := a.Work()
	return w.Dense.Bytes + int64(w.ExpertLayers)*int64(w.Experts)*w.Expert.Bytes + w.Head.Bytes + w.Embedding.Bytes
}

// AttentionFLOPs is the cost of one token in the attention projections of all layers; each token
// that it attends to adds Work's PairFLOPs.
func (a *Architecture) AttentionFLOPs() int64 { return 2 * a.Parameters().Attention }

// MLPFLOPs is the cost of one token in the feed-forward parts of all layers.
func (a *Architecture) MLPFLOPs() int64 {
	p := a.Parameters()
	return 2 * (p.MLP + p.Shared + p.Active + p.Router)
}

// Work returns the model's demand on a machine.
func (a *Architecture) Work() Work {
	p, precision := a.Parameters(), a.Precision
	w := Work{Layers: a.layers(), Hidden: a.Hidden}
	w.Dense = Weights{p.Attention + p.MLP + p.Shared + p.Router + p.Norms,
		bytesOf(p.Attention, precision.attention()) + bytesOf(p.MLP+p.Shared, precision.mlp()) +
			bytesOf(p.Router+p.Norms, precision.unquantized())}
	matrix := Weights{p.Embedding, bytesOf(p.Embedding, precision.unquantized())}
	w.Head, w.Embedding = matrix, matrix
	if a.TiedEmbeddings {
		w.Embedding = Weights{}
	}
	for _, l := range a.Layers {
		n := int64(l.Count)
		if m := l.MLP; m.Experts > 0 {
			params := m.expert(int64(a.Hidden))
			w.Expert = Weights{params, bytesOf(params, precision.experts())}
			w.ExpertLayers += l.Count
			w.Experts, w.ExpertsPerToken = m.Experts, m.ExpertsPerToken
		}
		w.addAttention(n, &l.Attention, &precision)
		if l.MLP != (MLP{}) {
			w.Reduces += l.Count
		}
	}
	return w
}

// addAttention adds the attention of n layers.
func (w *Work) addAttention(n int64, t *Attention, p *Precision) {
	heads, kv, z := t.KVHeads, t.kvBytes(p.kv()), t.Compressed
	if t.MLA != nil {
		heads = 1
	}
	switch {
	case t.Linear != nil:
		w.Reduces += int(n)
		w.StateBytes += n * t.Linear.stateBytes(p.unquantized())
		return
	case t.Heads == 0:
		return
	}
	w.Reduces += int(n)
	if t.Window > 0 {
		w.Window = t.Window
		w.WindowKVHeads = minNonZero(w.WindowKVHeads, heads)
		w.WindowPairFLOPs += n * t.pairFLOPs()
		w.WindowKVBytes += n * kv
	}
	if z != nil { // beyond the window, compressed
		w.KVHeads = 1
		w.PairFLOPs += n * z.share(t.pairFLOPs())
		w.DecodePairFLOPs += n * z.share(t.decodePairFLOPs())
		w.KVBytes += n * z.share(kv)
	} else if t.Window == 0 {
		w.KVHeads = minNonZero(w.KVHeads, heads)
		w.PairFLOPs += n * t.pairFLOPs()
		w.DecodePairFLOPs += n * t.decodePairFLOPs()
		w.KVBytes += n * kv
	}
}

// minNonZero returns the smaller of two counts; a is 0 if unset.
func minNonZero(a, b int) int {
	if a == 0 {
		return b
	}
	return min(a, b)
}
