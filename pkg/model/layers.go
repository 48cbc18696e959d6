package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// attention returns the attention of layer i.
func (c *hfConfig) attention(f family, hidden, i int) (Attention, error) {
	t := Attention{QKVBias: deref(c.Bias, f.qkvBias), OutBias: deref(c.Bias, f.outBias) && c.hasOutputBias(),
		QKNorm: f.qkNorm, Sinks: f.sinks}
	if kind := c.linearKind(f, i); kind != "" {
		var err error
		t = Attention{}
		t.Linear, err = c.linear(f, kind)
		return t, err
	}
	t.Heads = deref(c.Heads, f.defaults.heads)
	if t.Heads < 1 || t.Heads > maxHeads {
		return t, fieldError("num_attention_heads", c.Heads, "must be between 1 and %d", maxHeads)
	}
	t.KVHeads = deref(c.KVHeads, cmp.Or(f.defaults.kvHeads, t.Heads))
	if len(c.NASBlocks) > 0 {
		if i >= len(c.NASBlocks) {
			return t, fmt.Errorf("block_configs: must have an entry for each layer, has %d", len(c.NASBlocks))
		}
		b := c.NASBlocks[i].Attention
		if b.NoOp {
			return Attention{}, nil
		}
		t.KVHeads = t.Heads / max(1, deref(b.Group, 1))
	}
	if t.KVHeads < 1 || t.KVHeads > t.Heads {
		return t, fieldError("num_key_value_heads", c.KVHeads, "must be between 1 and num_attention_heads, %d", t.Heads)
	}
	t.Gate = deref(c.OutGate, f.gate)
	t.QKNormAcross = t.QKNorm && c.QKNormType == "per_layer"
	if f.latent {
		return c.mla(t, i)
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
	if f.compressed {
		return c.compressed(t, i)
	}
	if t.ValueDim = deref(c.VDim, 0); t.ValueDim < 0 || t.ValueDim > maxHeads {
		return t, fieldError("v_head_dim", c.VDim, "must be between 1 and %d", maxHeads)
	}
	var err error
	if t.Index, err = c.index(i); err != nil {
		return t, err
	}
	t.Window, err = c.window(f, i)
	t.Chunked = t.Window > 0 && (c.ChunkSize != nil || c.Window == nil && f.windows.chunked)
	if err == nil && t.Window == 0 && f.defaults.globalHeadDim > 0 {
		err = c.globalAttention(f, &t)
	}
	if t.Window > 0 && c.WindowKVHeads != nil {
		if t.KVHeads = *c.WindowKVHeads; t.KVHeads < 1 || t.KVHeads > t.Heads {
			return t, fieldError("swa_num_key_value_heads", c.WindowKVHeads,
				"must be between 1 and num_attention_heads, %d",
				t.Heads)
		}
	}
	return t, err
}

// linearKind returns the kind of the recurrent layer i, "" if it is none.
func (c *hfConfig) linearKind(f family, i int) string {
	switch {
	case f.linear == mamba2 && c.Blocks[i] == "mamba",
		f.linear == GatedDeltaNet && i < len(c.LayerTypes) && c.LayerTypes[i] == "linear_attention",
		f.linear == GatedDeltaNet && len(c.LayerTypes) == 0 && (i+1)%deref(c.FullInterval, fullInterval) != 0,
		f.linear == KimiDelta && c.Kimi != nil && slices.Contains(c.Kimi.Layers, i+1):
		return f.linear
	}
	return ""
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
func (c *hfConfig) mla(t Attention, i int) (Attention, error) {
	if t.QKVBias {
		return t, errors.New("attention_bias: must be false with kv_lora_rank, is true")
	}
	m := &MLA{}
	t.MLA, t.Gate = m, deref(c.MLAGate, false)
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
	} {
		if *v.to = deref(v.from, 0); *v.to < v.min || *v.to > v.max {
			return t, fieldError(v.name, v.from, "must be between %d and %d", v.min, v.max)
		}
	}
	var err error
	t.Index, err = c.index(i)
	return t, err
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
	case len(c.WindowLayers) > 0:
		if i >= len(c.WindowLayers) || c.WindowLayers[i] == 0 {
			return 0, nil
		}
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
func (c *hfConfig) mlp(f family, hidden, i int) (MLP, error) {
	if len(c.NASBlocks) > 0 {
		return c.nasMLP(hidden, i)
	}
	count, name := c.experts()
	sparse, err := c.sparse(i)
	if err != nil {
		return MLP{}, err
	}
	if f.blocks {
		sparse = c.Blocks[i] == "moe"
	}
	perToken := firstOf(c.PerToken, c.TopK, c.OldPerToken, c.KimiPerToken)
	if count == nil && deref(c.EnableExperts, true) && (deref(perToken, 0) > 0 || deref(c.ExpertInner, 0) > 0) {
		return MLP{}, fieldError("num_local_experts, n_routed_experts or num_experts", count,
			"one must be given if other expert fields are")
	}
	if deref(count, 0) == 0 || !sparse {
		n, err := width("intermediate_size", firstOf(c.DenseInner, c.DenseIntermediate, c.Intermediate))
		return MLP{Intermediate: n, Bias: deref(c.MLPBias, false), Plain: f.plainMLP}, err
	}
	m := MLP{Experts: *count, ExpertBias: f.experts.bias, Plain: f.plainMLP,
		RouterBias: f.experts.bias || f.experts.routerScale || f.experts.routerBias || c.TopKMethod == "noaux_tc" ||
			deref(c.RoutingBias, false) || deref(c.StepBias, false)}
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
	if latent := firstNonNil(c.Latent, c.RoutedHidden); latent != nil {
		if m.Latent, err = width("moe_latent_size", latent); err != nil {
			return m, err
		}
	}
	switch f.experts.nonExpert {
	case sharedByCount:
		err = c.shared(&m)
	case sharedSingle:
		m.Intermediate = m.ExpertIntermediate
	case denseMLP:
		m.Intermediate, err = width("intermediate_size", c.Intermediate)
	}
	return m, err
}

// shared sets the shared experts of m: their number, or their width.
func (c *hfConfig) shared(m *MLP) error {
	if inner := firstOf(c.SharedInner, c.SharedInnerM2, c.SharedInnerH); inner != nil {
		if m.Intermediate = *inner; m.Intermediate < 0 || m.Intermediate > maxWidth {
			return fieldError("shared_expert_intermediate_size", inner, "must be between 0 and %d", maxWidth)
		}
		return nil
	}
	count := firstNonNil(c.SharedExperts, c.KimiShared)
	n := deref(count, 0)
	if n < 0 || n > maxShared {
		return fieldError("n_shared_experts", count, "must be between 0 and %d", maxShared)
	}
	m.Intermediate = n * m.ExpertIntermediate
	return nil
}

// nasMLP returns the MLP of layer i of a pruned Llama. The width is two thirds of ffn_mult times the
// hidden one, rounded up to a multiple of 256 (vllm/model_executor/models/nemotron_nas.py, v0.11.0).
func (c *hfConfig) nasMLP(hidden, i int) (MLP, error) {
	if i >= len(c.NASBlocks) {
		return MLP{}, fmt.Errorf("block_configs: must have an entry for each layer, has %d", len(c.NASBlocks))
	}
	b := c.NASBlocks[i].FFN
	if b.NoOp {
		return MLP{}, nil
	}
	mult := deref(b.Mult, 0)
	if !(mult > 0) || mult > maxShared {
		return MLP{}, fmt.Errorf("block_configs[%d].ffn.ffn_mult: must be above 0 and at most %d, is %g", i,
			maxShared, mult)
	}
	inner := int(2 * mult * float64(hidden) / 3)
	return MLP{Intermediate: (inner + 255) / 256 * 256}, nil
}

// firstOf returns the first pointer that is not nil.
func firstOf(pointers ...*int) *int {
	for _, p := range pointers {
		if p != nil {
			return p
		}
	}
	return nil
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
		{"moe_layer_freq", c.Every.period, 1},
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
	case c.Every.layers != nil:
		return i < len(c.Every.layers) && c.Every.layers[i] != 0, nil
	case c.Every.period != nil:
		return i%*c.Every.period == 0, nil
	}
	return (i+1)%deref(firstNonNil(c.SparseStep, c.Interleave), 1) == 0, nil
}
