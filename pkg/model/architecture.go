// Package model describes the architectures of language models: the content of a Hugging Face
// config.json, and the parameters, bytes and FLOPs that follow from it. Only the text model counts:
// image and audio towers are excluded, and so are layers that predict further tokens
// (num_nextn_predict_layers, mtp_num_hidden_layers), which vLLM loads for speculative decoding only
// (load_weights in vllm/model_executor/models/deepseek_v2.py, glm4_moe.py and qwen3_next.py, v0.33.0).
package model

import "cmp"

// Architecture is the shape of a decoder-only transformer.
type Architecture struct {
	// Name is the model's name on Hugging Face, or the path of its file; Type is its model_type.
	Name string `json:"name"`
	Type string `json:"type"`
	// Hidden is the width between layers, Vocab the vocabulary size, MaxPositions the maximum context
	// length.
	Hidden       int `json:"hidden"`
	Vocab        int `json:"vocab"`
	MaxPositions int `json:"max_positions"`
	// TiedEmbeddings: input and output share one matrix.
	TiedEmbeddings bool `json:"tied_embeddings,omitempty"`
	// Layers are groups of identical layers; their order does not matter.
	Layers    []Layers  `json:"layers"`
	Precision Precision `json:"precision"`
	// overridden: a part differs from the model's own configuration.
	overridden bool
}

// Layers are Count identical layers.
type Layers struct {
	Count     int       `json:"count"`
	Attention Attention `json:"attention"`
	MLP       MLP       `json:"mlp"`
	// Norms is the number of norm vectors of the hidden width in a layer.
	Norms int `json:"norms"`
}

// Attention is the attention of one layer, with Heads query heads and KVHeads KV heads of HeadDim
// numbers. A layer without attention has no heads, and no Linear.
type Attention struct {
	Heads   int `json:"heads"`
	KVHeads int `json:"kv_heads"`
	HeadDim int `json:"head_dim"`
	// ValueDim is the size of a value head if it is not HeadDim.
	ValueDim int `json:"value_dim,omitempty"`
	// Window is the number of newest tokens it attends to; 0 means all. Chunked, it attends to those of the
	// same chunk of Window tokens (Llama 4), which counts as if these were as many in a step's time.
	Window  int  `json:"window,omitempty"`
	Chunked bool `json:"chunked,omitempty"`
	// MLA is the latent attention of DeepSeek V2; nil otherwise.
	MLA *MLA `json:"mla,omitempty"`
	// Biases of the query, key and value projections, and of the output; norms of each head's queries
	// and keys; a learned sink for each head.
	QKVBias bool `json:"qkv_bias,omitempty"`
	OutBias bool `json:"out_bias,omitempty"`
	QKNorm  bool `json:"qk_norm,omitempty"`
	Sinks   bool `json:"sinks,omitempty"`
	// QKNormAcross: the norms of queries and keys are over all heads, so that tensor parallelism
	// exchanges a sum for them.
	QKNormAcross bool `json:"qk_norm_across,omitempty"`
	// KeysAreValues: the keys also serve as values; there is no value projection.
	KeysAreValues bool `json:"keys_are_values,omitempty"`
	// Gate: a gate of the output's width, computed from the input.
	Gate bool `json:"gate,omitempty"`
	// Index chooses the tokens to attend to; its zero value attends to all.
	Index Index `json:"index,omitzero"`
	// Compressed is the attention of DeepSeek-V4; nil otherwise.
	Compressed *Compressed `json:"compressed,omitempty"`
	// Linear replaces attention by a recurrent state; nil otherwise.
	Linear *Linear `json:"linear,omitempty"`
}

// Index is the indexer of sparse attention (DeepSeek-V3.2, vllm/model_executor/models/
// deepseek_v2.py, Indexer): Heads heads of Dim numbers choose TopK tokens, and a key of Dim numbers
// is stored for each token. A layer without heads uses the choice of an earlier one. Weights and
// keys count, but attention is computed as if it covered all tokens.
type Index struct {
	Heads int `json:"heads,omitempty"`
	Dim   int `json:"dim,omitempty"`
	TopK  int `json:"top_k,omitempty"`
}

// MLA is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, §2.1): the cache holds one
// vector of KVRank + RopeDim numbers per token. QRank 0 means full-rank queries.
type MLA struct {
	QRank   int `json:"q_rank,omitempty"`
	KVRank  int `json:"kv_rank"`
	NopeDim int `json:"nope_dim"`
	RopeDim int `json:"rope_dim"`
	VDim    int `json:"v_dim"`
}

// MLP is the feed-forward part of a layer: gated, with three matrices, or plain, with two. A layer of
// experts has Experts of them, of which a token uses ExpertsPerToken, and possibly a dense MLP of
// Intermediate (shared experts). A layer without an MLP has neither.
type MLP struct {
	Plain              bool `json:"plain,omitempty"`
	Intermediate       int  `json:"intermediate,omitempty"`
	Experts            int  `json:"experts,omitempty"`
	ExpertsPerToken    int  `json:"experts_per_token,omitempty"`
	ExpertIntermediate int  `json:"expert_intermediate,omitempty"`
	// Latent is the width that routed experts work on; 0 means the hidden one. Otherwise two dense
	// matrices map to it and back.
	Latent int `json:"latent,omitempty"`
	// Biases of the dense MLP, of the router (one number for each expert, also if it is a scale) and of
	// each expert.
	Bias       bool `json:"bias,omitempty"`
	RouterBias bool `json:"router_bias,omitempty"`
	ExpertBias bool `json:"expert_bias,omitempty"`
}

// layers counts all layers.
func (a *Architecture) layers() int {
	n := 0
	for _, l := range a.Layers {
		n += l.Count
	}
	return n
}

// Parameters are a model's parameters by part. MLP are those of layers without experts; Shared the
// dense ones of layers with experts, Experts all routed experts, Active those of them that one
// token uses. Norms are those of the hidden width. Head is 0 if it shares the embedding matrix.
type Parameters struct {
	Embedding, Head         int64
	Attention, MLP, Shared  int64
	Router, Experts, Active int64
	Norms                   int64
}

// parameters counts the parameters of one layer, with all its experts.
func (l *Layers) parameters(hidden int64) int64 {
	return l.Attention.parameters(hidden) + l.MLP.dense(hidden) + l.MLP.router(hidden) +
		int64(l.MLP.Experts)*l.MLP.expert(hidden) + int64(l.Norms)*hidden
}

// Parameters counts the parameters by part.
func (a *Architecture) Parameters() Parameters {
	h := int64(a.Hidden)
	p := Parameters{Embedding: int64(a.Vocab) * h, Norms: h}
	if !a.TiedEmbeddings {
		p.Head = p.Embedding
	}
	for _, l := range a.Layers {
		n := int64(l.Count)
		p.Attention += n * l.Attention.parameters(h)
		if dense := n * l.MLP.dense(h); l.MLP.Experts > 0 {
			p.Shared += dense
		} else {
			p.MLP += dense
		}
		p.Router += n * l.MLP.router(h)
		p.Experts += n * int64(l.MLP.Experts) * l.MLP.expert(h)
		p.Active += n * int64(l.MLP.ExpertsPerToken) * l.MLP.expert(h)
		p.Norms += n * int64(l.Norms) * h
	}
	return p
}

// TotalParameters counts all parameters of the text model.
func (a *Architecture) TotalParameters() int64 {
	p := a.Parameters()
	return p.Embedding + p.Head + p.Attention + p.MLP + p.Shared + p.Router + p.Experts + p.Norms
}

// ActiveParameters counts the parameters that one token uses: only its own experts, and both
// embedding matrices.
func (a *Architecture) ActiveParameters() int64 {
	p := a.Parameters()
	return a.TotalParameters() - p.Experts + p.Active
}

func (t *Attention) parameters(hidden int64) int64 {
	if t.MLA != nil {
		n := t.MLA.parameters(hidden, int64(t.Heads)) + t.Index.parameters(hidden, int64(t.MLA.QRank))
		if t.Gate {
			n += hidden * int64(t.Heads*t.MLA.VDim)
		}
		return n
	}
	if t.Linear != nil {
		return t.Linear.parameters(hidden)
	}
	if t.Compressed != nil {
		return t.Compressed.parameters(hidden, t)
	}
	q, kv := int64(t.Heads*t.HeadDim), int64(t.KVHeads*t.HeadDim)
	values, out := int64(t.KVHeads*t.valueDim()), int64(t.Heads*t.valueDim())
	if t.KeysAreValues {
		values = 0
	}
	n := hidden*(q+kv+values+out) + t.Index.parameters(hidden, hidden)
	if t.Gate {
		n += hidden * out
	}
	if t.QKVBias {
		n += q + kv + values
	}
	if t.OutBias {
		n += hidden
	}
	if t.QKNorm && t.QKNormAcross {
		n += q + kv
	} else if t.QKNorm {
		n += 2 * int64(t.HeadDim)
	}
	if t.Sinks {
		n += int64(t.Heads)
	}
	return n
}

func (m *MLA) parameters(hidden, heads int64) int64 {
	query, rank := heads*int64(m.NopeDim+m.RopeDim), int64(m.KVRank)
	n := hidden * query
	if q := int64(m.QRank); q > 0 {
		n = hidden*q + q + q*query
	}
	return n + hidden*(rank+int64(m.RopeDim)) + rank + rank*heads*int64(m.NopeDim+m.VDim) +
		heads*int64(m.VDim)*hidden
}

// parameters counts those of an indexer whose queries are computed from vectors of width from: the
// key has a norm with a bias, and each head a weight.
func (x *Index) parameters(hidden, from int64) int64 {
	if x.Heads == 0 {
		return 0
	}
	heads, dim := int64(x.Heads), int64(x.Dim)
	return from*heads*dim + hidden*dim + 2*dim + hidden*heads
}

// valueDim is the size of a value head.
func (t *Attention) valueDim() int { return cmp.Or(t.ValueDim, t.HeadDim) }

// dense counts the parameters of the dense part.
func (m *MLP) dense(hidden int64) int64 {
	inner := int64(m.Intermediate)
	n := m.matrices()*hidden*inner + 2*hidden*int64(m.Latent)
	if m.Bias {
		n += 2*inner + hidden
	}
	return n
}

// expert counts the parameters of one expert.
func (m *MLP) expert(hidden int64) int64 {
	inner := int64(m.ExpertIntermediate)
	if m.Latent > 0 {
		hidden = int64(m.Latent)
	}
	n := m.matrices() * hidden * inner
	if m.ExpertBias {
		n += 2*inner + hidden
	}
	return n
}

// matrices is the number of matrices of an MLP.
func (m *MLP) matrices() int64 {
	if m.Plain {
		return 2
	}
	return 3
}

func (m *MLP) router(hidden int64) int64 {
	n := hidden * int64(m.Experts)
	if m.RouterBias {
		n += int64(m.Experts)
	}
	return n
}
