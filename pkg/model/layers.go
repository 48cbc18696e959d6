package model

import (
	"cmp"
	"fmt"
	"slices"
)

// attention is that of layer i.
func (c *hf) attention(f family, hidden, i int) (Attention, error) {
	t := Attention{QKVBias: value(c.Bias, f.qkvBias), OutBias: value(c.Bias, f.outBias) && c.biasOut(), QKNorm: f.qkNorm, Sinks: f.sinks}
	t.Heads = value(c.Heads, f.heads)
	if t.Heads < 1 || t.Heads > maxWidth {
		return t, fault("num_attention_heads", c.Heads, "must be between 1 and %d", maxWidth)
	}
	t.KVHeads = value(c.KVHeads, cmp.Or(f.kvHeads, t.Heads))
	if t.KVHeads < 1 || t.KVHeads > t.Heads {
		return t, fault("num_key_value_heads", c.KVHeads, "must be between 1 and num_attention_heads, %d", t.Heads)
	}
	if c.KVRank != nil {
		return c.latent(t)
	}
	if t.HeadDim = value(c.HeadDim, f.headDim); t.HeadDim == 0 && c.HeadDim == nil {
		if hidden%t.Heads != 0 {
			return t, fault("hidden_size", c.Hidden, "must be a multiple of num_attention_heads, %d, where there is no head_dim", t.Heads)
		}
		t.HeadDim = hidden / t.Heads
	}
	if t.HeadDim < 1 || t.HeadDim > maxWidth {
		return t, fault("head_dim", c.HeadDim, "must be between 1 and %d", maxWidth)
	}
	window, err := c.window(f, i)
	if err != nil {
		return t, err
	}
	t.Window = window
	if window == 0 && c.GlobalHeadDim != nil { // gemma-4: layers that see everything are of another size
		t.HeadDim, t.KVHeads = *c.GlobalHeadDim, value(c.GlobalKVHeads, t.KVHeads)
		t.KeysAreValues = value(c.KeysAreValues, false)
		if t.HeadDim < 1 || t.HeadDim > maxWidth || t.KVHeads < 1 || t.KVHeads > t.Heads {
			return t, fault("global_head_dim", c.GlobalHeadDim, "must be positive, and num_global_key_value_heads between 1 and %d", t.Heads)
		}
	}
	return t, nil
}

// biasOut reports whether attention_bias is that of the output too.
func (c *hf) biasOut() bool { return c.Type != "qwen2" }

// latent is multi-head latent attention.
func (c *hf) latent(t Attention) (Attention, error) {
	m := &MLA{QRank: value(c.QRank, 0), IndexHeads: value(c.IndexHeads, 0), IndexDim: value(c.IndexDim, 0)}
	for _, v := range []struct {
		name string
		from *int
		to   *int
	}{
		{"kv_lora_rank", c.KVRank, &m.KVRank}, {"qk_nope_head_dim", c.NopeDim, &m.NopeDim},
		{"qk_rope_head_dim", c.RopeDim, &m.RopeDim}, {"v_head_dim", c.VDim, &m.VDim},
	} {
		if *v.to = value(v.from, 0); *v.to < 1 || *v.to > maxWidth {
			return t, fault(v.name, v.from, "must be between 1 and %d", maxWidth)
		}
	}
	for _, v := range []struct {
		name  string
		value int
	}{{"q_lora_rank", m.QRank}, {"index_n_heads", m.IndexHeads}, {"index_head_dim", m.IndexDim}} {
		if v.value < 0 || v.value > maxWidth {
			return t, fault(v.name, &v.value, "must be between 0 and %d", maxWidth)
		}
	}
	t.MLA, t.QKVBias, t.OutBias = m, false, false
	return t, nil
}

// window is how many tokens layer i sees, 0 for all.
func (c *hf) window(f family, i int) (int, error) {
	size, name := c.Window, "sliding_window"
	if c.ChunkSize != nil {
		size, name = c.ChunkSize, "attention_chunk_size"
	}
	if size == nil || !value(c.UseWindow, true) {
		return 0, nil
	}
	if *size < 1 || *size > maxSize {
		return 0, fault(name, size, "must be between 1 and %d", maxSize)
	}
	pattern := value(c.WindowPattern, f.pattern)
	switch {
	case len(c.LayerTypes) > 0:
		switch kind := c.LayerTypes[i]; kind {
		case "full_attention":
			return 0, nil
		case "sliding_attention", "chunked_attention":
		default:
			return 0, fmt.Errorf("layer_types[%d]: must be full_attention, sliding_attention or chunked_attention, is %q", i, kind)
		}
	case len(c.NoRope) > i && c.ChunkSize != nil:
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

// mlp is that of layer i.
func (c *hf) mlp(f family, i int) (MLP, error) {
	dense := or(c.DenseIntermediate, c.Intermediate)
	width := func(name string, p *int) (int, error) {
		n := value(p, 0)
		if n < 1 || n > maxWidth {
			return 0, fault(name, p, "must be between 1 and %d", maxWidth)
		}
		return n, nil
	}
	experts := value(or(or(c.LocalExperts, c.RoutedExperts), c.Experts), 0)
	if experts == 0 || !c.sparse(i) {
		n, err := width("intermediate_size", dense)
		return MLP{Intermediate: n}, err
	}
	m := MLP{Experts: experts, ExpertBias: f.expertBias, RouterBias: f.expertBias || c.TopKMethod == "noaux_tc"}
	if m.Experts < 2 || m.Experts > maxWidth {
		return m, fault("num_experts", &m.Experts, "must be between 2 and %d", maxWidth)
	}
	perToken := or(or(c.PerToken, c.TopK), c.OldPerToken)
	if m.ExpertsPerToken = value(perToken, 0); m.ExpertsPerToken < 1 || m.ExpertsPerToken > m.Experts {
		return m, fault("num_experts_per_tok", perToken, "must be between 1 and the number of experts, %d", m.Experts)
	}
	inner, name := c.ExpertInner, "moe_intermediate_size"
	if inner == nil {
		inner, name = c.Intermediate, "intermediate_size"
	}
	var err error
	if m.ExpertIntermediate, err = width(name, inner); err != nil {
		return m, err
	}
	switch f.beside {
	case sharedCount:
		m.Intermediate = value(c.SharedExperts, 0) * m.ExpertIntermediate
	case sharedOne:
		m.Intermediate = m.ExpertIntermediate
	case denseToo:
		m.Intermediate, err = width("intermediate_size", c.Intermediate)
	}
	if m.Intermediate < 0 || m.Intermediate > maxWidth {
		return m, fault("n_shared_experts", c.SharedExperts, "must be small")
	}
	return m, err
}

// sparse reports whether layer i has experts.
func (c *hf) sparse(i int) bool {
	switch {
	case slices.Contains(c.DenseLayers, i):
		return false
	case c.MoELayers != nil:
		return slices.Contains(c.MoELayers, i)
	case i < value(c.FirstDense, 0):
		return false
	}
	every := max(1, value(or(c.SparseStep, c.Interleave), 1))
	if c.Every != nil && *c.Every > 1 { // DeepSeek counts from 0
		return i%*c.Every == 0
	}
	return (i+1)%every == 0
}
