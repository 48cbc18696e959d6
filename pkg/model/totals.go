package model

// indexBytes is the size of a number that the indexer of DeepSeek-V3.2 stores per token and layer:
// 8 bits, and a 32-bit scale for 128 numbers (vllm/model_executor/models/deepseek_v2.py,
// DeepseekV32IndexerCache).
const indexBytes = 1 + 4.0/128

// kvBytes is the KV cache size of one token in a layer.
func (t *Attention) kvBytes(each float64) int64 {
	if m := t.MLA; m != nil {
		return bytesOf(int64(m.KVRank+m.RopeDim), each) + bytesOf(int64(m.IndexDim), indexBytes)
	}
	return bytesOf(2*int64(t.KVHeads*t.HeadDim), each)
}

// pairFLOPs is the cost of a token attending to another: the products of query and key and of
// weight and value, each a multiplication and an addition. With MLA it is the cost in prefill,
// which expands keys and values.
func (t *Attention) pairFLOPs() int64 {
	if m := t.MLA; m != nil {
		return 2 * int64(t.Heads) * int64(m.NopeDim+m.RopeDim+m.VDim)
	}
	return 4 * int64(t.Heads*t.HeadDim)
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
		n += int64(l.Count) * l.Attention.kvBytes(a.Precision.kv())
	}
	return n
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
		bytesOf(p.Attention, precision.attention()) + bytesOf(p.MLP+p.Shared,
			precision.matmul(false)) + bytesOf(p.Router+p.Norms, precision.unquantized())}
	matrix := Weights{p.Embedding, bytesOf(p.Embedding, precision.unquantized())}
	w.Head, w.Embedding = matrix, matrix
	if a.TiedEmbeddings {
		w.Embedding = Weights{}
	}
	for _, l := range a.Layers {
		n := int64(l.Count)
		if m := l.MLP; m.Experts > 0 {
			params := m.expert(int64(a.Hidden))
			w.Expert = Weights{params, bytesOf(params, precision.matmul(true))}
			w.ExpertLayers += l.Count
			w.Experts, w.ExpertsPerToken = m.Experts, m.ExpertsPerToken
		}
		t := l.Attention
		heads := t.KVHeads
		if t.MLA != nil {
			heads = 1
		}
		if t.Window > 0 {
			w.Window = t.Window
			w.WindowKVHeads = minNonZero(w.WindowKVHeads, heads)
			w.WindowPairFLOPs += n * t.pairFLOPs()
			w.WindowKVBytes += n * t.kvBytes(precision.kv())
		} else {
			w.KVHeads = minNonZero(w.KVHeads, heads)
			w.PairFLOPs += n * t.pairFLOPs()
			w.DecodePairFLOPs += n * t.decodePairFLOPs()
			w.KVBytes += n * t.kvBytes(precision.kv())
		}
	}
	return w
}

// minNonZero returns the smaller of two counts; a is 0 if unset.
func minNonZero(a, b int) int {
	if a == 0 {
		return b
	}
	return min(a, b)
}
