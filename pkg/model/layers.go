package model

import (
	"cmp"
	"errors"
	"slices"
)

// attention returns the attention of layer i.
func (c *hfConfig) attention(f family, hidden, i int) (Attention, error) {
	t := Attention{QKVBias: deref(c.Bias, f.qkvBias), OutBias: deref(c.Bias, f.outBias) && c.hasOutputBias(),
		QKNorm: f.qkNorm, Sinks: f.sinks}
	t.Heads = deref(c.Heads, f.defaults.heads)
	if t.Heads < 1 || t.Heads > maxHeads {
		return t, fieldError("num_attention_heads", c.Heads, "must be between 1 and %d", maxHeads)
	}
	t.KVHeads = deref(c.KVHeads, cmp.Or(f.defaults.kvHeads, t.Heads))
	if t.KVHeads < 1 || t.KVHeads > t.Heads {
		return t, fieldError("num_key_value_heads", c.KVHeads, "must be between 1 and num_attention_heads, %d", t.Heads)
	}
	if f.latent {
		return c.mla(t)
	}
	if t.HeadDim = deref(c.HeadDim, f.defaults.headDim); t.HeadDim == 0 && c.HeadDim == nil {
		if hidden%t.Heads != 0 {
			return t, fieldError("hidden_size", c.Hidden,
				"must be a multiple of num_attention_heads, %d, if head_dim is not given", t.Heads)
		}
		t.HeadDim = hidden / t.Heads
	}
	if t.HeadDim < 1 || t.HeadDim > maxHeads {
		return t, fieldError("head_dim", c.HeadDim, "must be between 1 and %d", maxHeads)
	}
	var err error
	if t.Window, err = c.window(f, i); err == nil && t.Window == 0 && f.defaults.globalHeadDim > 0 {
		err = c.globalAttention(f, &t)
	}
	return t, err
}

// globalAttention sets the different size of gemma-4's full-attention layers.
func (c *hfConfig) globalAttention(f family, t *Attention) error {
	if t.HeadDim = deref(c.GlobalHeadDim, f.defaults.globalHeadDim); t.HeadDim < 1 || t.HeadDim > maxHeads {
		return fieldError("global_head_dim", c.GlobalHeadDim, "must be between 1 and %d", maxHeads)
	}
	if t.KeysAreValues = deref(c.KeysAreValues, false); t.KeysAreValues {
		if t.KVHeads = deref(c.GlobalKVHeads, t.KVHeads); t.KVHeads < 1 || t.KVHeads > t.Heads {
			return fieldError("num_global_key_value_heads", c.GlobalKVHeads,
				"must be between 1 and num_attention_heads, %d", t.Heads)
		}
	}
	return nil
}

// hasOutputBias reports whether attention_bias also applies to the output projection.
func (c *hfConfig) hasOutputBias() bool { return c.Type != "qwen2" }

// mla sets multi-head latent attention.
func (c *hfConfig) mla(t Attention) (Attention, error) {
	if t.QKVBias {
		return t, errors.New("attention_bias: must be false with kv_lora_rank, is true")
	}
	m := &MLA{}
	t.MLA = m
	for _, v := range []struct {
		name     string
		from     *int
		to       *int
		min, max int
	}{
		{"kv_lora_rank", c.KVRank, &m.KVRank, 1, maxWidth},
		{"qk_nope_head_dim", c.NopeDim, &m.NopeDim, 1, maxHeads},
		{"qk_rope_head_dim", c.RopeDim, &m.RopeDim, 1, maxHeads},
		{"v_head_dim", c.VDim, &m.VDim, 1, maxHeads},
		{"q_lora_rank", c.QRank, &m.QRank, 0, maxWidth},
		{"index_n_heads", c.IndexHeads, &m.IndexHeads, 0, maxHeads},
		{"index_head_dim", c.IndexDim, &m.IndexDim, 0, maxHeads},
	} {
		if *v.to = deref(v.from, 0); *v.to < v.min || *v.to > v.max {
			return t, fieldError(v.name, v.from, "must be between %d and %d", v.min, v.max)
		}
	}
	return t, nil
}

// window returns the window size of layer i, 0 for full attention.
func (c *hfConfig) window(f family, i int) (int, error) {
	size, name := c.Window, "sliding_window"
	if c.ChunkSize != nil {
		size, name = c.ChunkSize, "attention_chunk_size"
	}
	if size == nil && f.windows.size > 0 {
		size = &f.windows.size
	}
	if size == nil || !deref(c.UseWindow, !f.windows.offByDefault) {
		return 0, nil
	}
	if *size < 1 || *size > maxSize {
		return 0, fieldError(name, size, "must be between 1 and %d", maxSize)
	}
	pattern := deref(c.WindowPattern, f.windows.pattern)
	switch {
	case len(c.LayerTypes) > 0:
		if c.LayerTypes[i] == "full_attention" {
			return 0, nil
		}
	case len(c.NoRope) > 0:
		if c.NoRope[i] == 0 {
			return 0, nil
		}
	case pattern > 0:
		if (i+1)%pattern == 0 {
			return 0, nil
		}
	case c.WindowFrom != nil && i < *c.WindowFrom:
		return 0, nil
	}
	return *size, nil
}

// mlp returns the MLP of layer i.
func (c *hfConfig) mlp(f family, i int) (MLP, error) {
	count, name := c.experts()
	sparse, err := c.sparse(i)
	if err != nil {
		return MLP{}, err
	}
	perToken := firstNonNil(firstNonNil(c.PerToken, c.TopK), c.OldPerToken)
	if count == nil && deref(c.EnableExperts, true) && (deref(perToken, 0) > 0 || deref(c.ExpertInner, 0) > 0) {
		return MLP{}, fieldError("num_local_experts, n_routed_experts or num_experts", count,
			"one must be given if other expert fields are")
	}
	if deref(count, 0) == 0 || !sparse {
		n, err := width("intermediate_size", firstNonNil(c.DenseIntermediate, c.Intermediate))
		return MLP{Intermediate: n, Bias: deref(c.MLPBias, false)}, err
	}
	m := MLP{Experts: *count, ExpertBias: f.experts.bias,
		RouterBias: f.experts.bias || f.experts.routerScale || c.TopKMethod == "noaux_tc"}
	if m.Experts < 2 || m.Experts > maxWidth {
		return m, fieldError(name, count, "must be between 2 and %d", maxWidth)
	}
	if m.ExpertsPerToken = deref(perToken, 0); m.ExpertsPerToken < 1 || m.ExpertsPerToken > m.Experts {
		return m, fieldError("num_experts_per_tok", perToken, "must be between 1 and the number of experts, %d",
			m.Experts)
	}
	if c.ExpertInner != nil {
		m.ExpertIntermediate, err = width("moe_intermediate_size", c.ExpertInner)
	} else {
		m.ExpertIntermediate, err = width("intermediate_size", c.Intermediate)
	}
	if err != nil {
		return m, err
	}
	switch f.experts.nonExpert {
	case sharedByCount:
		n := deref(c.SharedExperts, 0)
		if n < 0 || n > maxShared {
			return m, fieldError("n_shared_experts", c.SharedExperts, "must be between 0 and %d", maxShared)
		}
		m.Intermediate = n * m.ExpertIntermediate
	case sharedSingle:
		m.Intermediate = m.ExpertIntermediate
	case denseMLP:
		m.Intermediate, err = width("intermediate_size", c.Intermediate)
	}
	return m, err
}

// experts returns the number of experts and the field that gives it; nil if they are switched off.
func (c *hfConfig) experts() (count *int, name string) {
	if !deref(c.EnableExperts, true) {
		return nil, ""
	}
	for _, n := range []struct {
		count *int
		name  string
	}{{c.LocalExperts, "num_local_experts"}, {c.RoutedExperts, "n_routed_experts"}, {c.Experts, "num_experts"}} {
		if n.count != nil {
			return n.count, n.name
		}
	}
	return nil, ""
}

// width checks the width of an MLP.
func width(name string, p *int) (int, error) {
	n := deref(p, 0)
	if n < 1 || n > maxWidth {
		return 0, fieldError(name, p, "must be between 1 and %d", maxWidth)
	}
	return n, nil
}

// sparse reports whether layer i has experts, if the model has any. DeepSeek counts layers from 0,
// the other models from 1.
func (c *hfConfig) sparse(i int) (bool, error) {
	for _, v := range []struct {
		name string
		p    *int
		min  int
	}{
		{"first_k_dense_replace", c.FirstDense, 0},
		{"moe_layer_freq", c.Every, 1},
		{"decoder_sparse_step", c.SparseStep, 1},
		{"interleave_moe_layer_step", c.Interleave, 1},
	} {
		if v.p != nil && *v.p < v.min {
			return false, fieldError(v.name, v.p, "must be at least %d", v.min)
		}
	}
	switch {
	case slices.Contains(c.DenseLayers, i), i < deref(c.FirstDense, 0):
		return false, nil
	case c.MoELayers != nil:
		return slices.Contains(c.MoELayers, i), nil
	case c.Every != nil:
		return i%*c.Every == 0, nil
	}
	return (i+1)%deref(firstNonNil(c.SparseStep, c.Interleave), 1) == 0, nil
}
