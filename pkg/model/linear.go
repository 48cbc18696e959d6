package model

import (
	"errors"
	"fmt"

	"blis/pkg/registry"
)

// Linear is a layer with a recurrent state instead of keys and values. A sequence has one state in
// each such layer, whatever its length.
type Linear struct {
	// Kind is gated-delta-net (Qwen3.5), kimi-delta-attention (Kimi-K3) or mamba2 (Nemotron-H).
	Kind string `json:"kind"`
	// KeyHeads heads of KeyDim and ValueHeads heads of ValueDim numbers. With mamba2 they are the groups
	// with their state size, and the heads with their size.
	KeyHeads   int `json:"key_heads"`
	KeyDim     int `json:"key_dim"`
	ValueHeads int `json:"value_heads"`
	ValueDim   int `json:"value_dim"`
	// Conv is the width of the convolution over tokens, of which Conv − 1 inputs are kept.
	Conv int `json:"conv"`
	// StateBytes is the size of a number of the state; the convolution's inputs are in the model's
	// dtype.
	StateBytes int `json:"state_bytes"`
	// FullGate: the output gate of kimi-delta-attention is one matrix, not two of low rank.
	FullGate bool `json:"full_gate,omitempty"`
}

// The kinds of Linear.
const (
	GatedDeltaNet  = "gated-delta-net"
	KimiDelta      = "kimi-delta-attention"
	mamba2         = "mamba2"
	linearMaxWidth = 1 << 10 // of the convolution
	fullInterval   = 4       // the default of full_attention_interval
)

// widths returns the widths of all keys and of all values.
func (l *Linear) widths() (keys, values int64) {
	return int64(l.KeyHeads * l.KeyDim), int64(l.ValueHeads * l.ValueDim)
}

// parameters counts the input and output matrices, the convolution, and the vectors of each head
// (vllm/model_executor/models/qwen3_next.py, layers/kda.py, layers/mamba/mamba_mixer2.py).
func (l *Linear) parameters(hidden int64) int64 {
	k, v := l.widths()
	heads, conv := int64(l.ValueHeads), int64(l.Conv)
	n := v*hidden + (2*k+v)*conv + int64(l.ValueDim)
	switch l.Kind {
	case mamba2: // gate and input of v, two of k, a step for each head; a bias of the convolution
		n += hidden*(2*v+2*k+heads) + 2*k + v + 3*heads + v - int64(l.ValueDim)
	case KimiDelta: // queries, keys, values, a decay of low rank for each key, a rate for each head, a gate
		dim := int64(l.KeyDim)
		n += hidden*(2*k+v+heads) + hidden*dim + dim*k + k + heads
		if l.FullGate {
			n += hidden * v
		} else {
			n += hidden*dim + dim*v
		}
	default: // queries, keys, values, gate; two numbers for each head
		n += hidden*(2*k+2*v+2*heads) + 2*heads
	}
	return n
}

// stateBytes is the size of the state of a sequence in a layer, with numbers of the model in each
// bytes.
func (l *Linear) stateBytes(each float64) int64 {
	k, v := l.widths()
	return int64(l.KeyDim)*v*int64(l.StateBytes) + bytesOf((2*k+v)*int64(l.Conv-1), each)
}

// hfLinear holds the fields of layers with a recurrent state.
type hfLinear struct {
	ConvKernel *int          `json:"linear_conv_kernel_dim"`
	KeyHeads   *int          `json:"linear_num_key_heads"`
	KeyDim     *int          `json:"linear_key_head_dim"`
	ValueHeads *int          `json:"linear_num_value_heads"`
	ValueDim   *int          `json:"linear_value_head_dim"`
	Kimi       *hfKimiLinear `json:"linear_attn_config"`
	MambaConv  *int          `json:"conv_kernel"`
	MambaHeads *int          `json:"mamba_num_heads"`
	MambaDim   *int          `json:"mamba_head_dim"`
	Groups     *int          `json:"n_groups"`
	StateSize  *int          `json:"ssm_state_size"`
	StateDType *string       `json:"mamba_ssm_dtype"`
	CacheDType *string       `json:"mamba_ssm_cache_dtype"`
	// FullInterval: every FullInterval-th layer has full attention, if layer_types is not given.
	FullInterval *int `json:"full_attention_interval"`
}

// hfKimiLinear is linear_attn_config, whose layers count from 1.
type hfKimiLinear struct {
	Layers   []int `json:"kda_layers"`
	Heads    *int  `json:"num_heads"`
	HeadDim  *int  `json:"head_dim"`
	Conv     *int  `json:"short_conv_kernel_size"`
	FullGate *bool `json:"use_full_rank_gate"`
}

// linear returns the recurrent part of a layer of this kind.
func (c *hfConfig) linear(f family, kind string) (*Linear, error) {
	l := &Linear{Kind: kind, StateBytes: 4}
	type field struct {
		name string
		from *int
		to   *int
		most int
	}
	var fields []field
	switch kind {
	case mamba2:
		fields = []field{{"n_groups", c.Groups, &l.KeyHeads, maxHeads}, {"ssm_state_size", c.StateSize, &l.KeyDim,
			maxHeads},
			{"mamba_num_heads", c.MambaHeads, &l.ValueHeads, maxHeads}, {"mamba_head_dim", c.MambaDim, &l.ValueDim,
				maxHeads},
			{"conv_kernel", c.MambaConv, &l.Conv, linearMaxWidth}}
	case KimiDelta:
		k := c.Kimi
		if k == nil {
			return nil, errors.New("linear_attn_config: must be given")
		}
		l.FullGate = deref(k.FullGate, false)
		at := "linear_attn_config."
		fields = []field{{at + "num_heads", k.Heads, &l.KeyHeads, maxHeads}, {at + "head_dim", k.HeadDim, &l.KeyDim,
			maxHeads},
			{at + "num_heads", k.Heads, &l.ValueHeads, maxHeads}, {at + "head_dim", k.HeadDim, &l.ValueDim, maxHeads},
			{at + "short_conv_kernel_size", k.Conv, &l.Conv, linearMaxWidth}}
	default:
		fields = []field{{"linear_num_key_heads", c.KeyHeads, &l.KeyHeads, maxHeads},
			{"linear_key_head_dim", c.KeyDim, &l.KeyDim, maxHeads},
			{"linear_num_value_heads", c.ValueHeads, &l.ValueHeads, maxHeads},
			{"linear_value_head_dim", c.ValueDim, &l.ValueDim, maxHeads},
			{"linear_conv_kernel_dim", c.ConvKernel, &l.Conv, linearMaxWidth}}
	}
	for _, x := range fields {
		if *x.to = deref(x.from, 0); *x.to < 1 || *x.to > x.most {
			return nil, fieldError(x.name, x.from, "must be between 1 and %d", x.most)
		}
	}
	if dtype := firstNonNil(c.CacheDType, c.StateDType); dtype != nil {
		bytes, err := dtypes.Get("dtype", *dtype)
		if err != nil {
			return nil, fmt.Errorf("mamba_ssm_dtype: %w", err)
		}
		l.StateBytes = int(bytes)
	} else if kind == mamba2 || f.modelStates { // vllm/model_executor/layers/mamba/mamba_utils.py: as the model
		l.StateBytes = 2
	}
	return l, nil
}

// blocks are the parts of a Nemotron-H layer, which has one of them.
var blocks = registry.Table[string]{
	{Name: "mamba", Value: mamba2}, {Name: "attention", Value: "attention"}, {Name: "moe", Value: "moe"},
	{Name: "mlp", Value: "mlp"},
}

// setBlocks reads layers_block_type or hybrid_override_pattern, where M, *, E and - stand for
// mamba, attention, moe and mlp.
func (c *hfConfig) setBlocks() error {
	for i, letter := range c.Pattern {
		name, ok := map[rune]string{'M': "mamba", '*': "attention", 'E': "moe", '-': "mlp"}[letter]
		if !ok {
			return fmt.Errorf("hybrid_override_pattern: must have the letters M, *, E and -, has %q at %d", letter, i)
		}
		c.Blocks = append(c.Blocks, name)
	}
	if len(c.Blocks) == 0 {
		return errors.New("layers_block_type: must be given, or hybrid_override_pattern")
	}
	for i, name := range c.Blocks {
		if _, err := blocks.Get("block", name); err != nil {
			return fmt.Errorf("layers_block_type[%d]: %w", i, err)
		}
	}
	if n := len(c.Blocks); c.Layers == nil {
		c.Layers = &n
	} else if *c.Layers != n {
		return fmt.Errorf("layers_block_type: must have num_hidden_layers, %d, entries, has %d", *c.Layers, n)
	}
	return nil
}
