package model

// indexBytes is what the indexer of DeepSeek-V3.2 keeps of a token in a layer
// for each of its numbers: 8 bits, and a scale of 32 for 128 of them
// (vllm/model_executor/models/deepseek_v2.py, DeepseekV32IndexerCache).
const indexBytes = 1 + 4.0/128

// kvBytes is what a layer keeps of one token.
func (t *Attention) kvBytes(each float64) int64 {
	if m := t.MLA; m != nil {
		return bytesOf(int64(m.KVRank+m.RopeDim), each) + bytesOf(int64(m.IndexDim), indexBytes)
	}
	return bytesOf(2*int64(t.KVHeads*t.HeadDim), each)
}

// pairFLOPs are those of a token that attends to another: the product of query
// and key, and that of weight and value, each a multiplication and an addition.
// With MLA they are those of prefill, which expands keys and values.
func (t *Attention) pairFLOPs() int64 {
	if m := t.MLA; m != nil {
		return 2 * int64(t.Heads) * int64(m.NopeDim+m.RopeDim+m.VDim)
	}
	return 4 * int64(t.Heads*t.HeadDim)
}

// decodePairFLOPs are those of the newest token of a sequence. With MLA its
// query goes into the latent space, where keys and values are one vector
// (DeepSeek-V2, arXiv 2405.04434, §2.1.2; vllm/v1/attention/backends/mla).
func (t *Attention) decodePairFLOPs() int64 {
	if m := t.MLA; m != nil {
		return 2 * int64(t.Heads) * int64(2*m.KVRank+m.RopeDim)
	}
	return t.pairFLOPs()
}

// KVBytesPerToken is what all layers keep of one token, windows left aside.
func (a *Architecture) KVBytesPerToken() int64 {
	n := int64(0)
	for _, l := range a.Layers {
		n += int64(l.Count) * l.Attention.kvBytes(a.Precision.kv())
	}
	return n
}

// WeightBytes is what the weights take as stored.
func (a *Architecture) WeightBytes() int64 {
	w := a.Work()
	return w.Dense.Bytes + int64(w.ExpertLayers)*int64(w.Experts)*w.Expert.Bytes + w.Head.Bytes + w.Embedding.Bytes
}

// AttentionFLOPs are those of one token in the projections of all layers; each
// token that it attends to costs Work's PairFLOPs more.
func (a *Architecture) AttentionFLOPs() int64 { return 2 * a.Parameters().Attention }

// MLPFLOPs are those of one token in the feed-forward parts of all layers.
func (a *Architecture) MLPFLOPs() int64 {
	p := a.Parameters()
	return 2 * (p.MLP + p.Shared + p.Active + p.Router)
}

// Work sums up what the model asks of a machine.
func (a *Architecture) Work() Work {
	p, precision := a.Parameters(), a.Precision
	w := Work{Layers: a.layers(), Hidden: a.Hidden}
	w.Dense = Weights{p.Attention + p.MLP + p.Shared + p.Router + p.Norms,
		bytesOf(p.Attention, precision.attention()) + bytesOf(p.MLP+p.Shared, precision.matmul(false)) + bytesOf(p.Router+p.Norms, precision.unquantized())}
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

// minNonZero is the smaller of two counts, of which 0 is none yet.
func minNonZero(a, b int) int {
	if a == 0 {
		return b
	}
	return min(a, b)
}
