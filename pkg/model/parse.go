package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"blis/pkg/named"
)

// Read reads a config.json, or that of a directory.
func Read(path string) (*Architecture, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Find returns the model of a file or directory called name, if there is one,
// or else the built-in one.
func Find(name string) (*Architecture, error) {
	if _, err := os.Stat(name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return Read(name)
	}
	a, err := BuiltIn(name)
	if err != nil {
		return nil, fmt.Errorf("no such file, and %w", err)
	}
	return a, nil
}

// hf are the fields of a config.json that matter; the many others do not. A
// field that is not there, or null, is nil.
type hf struct {
	Type       string   `json:"model_type"`
	TextConfig *hf      `json:"text_config"`
	Hidden     *int     `json:"hidden_size"`
	Layers     *int     `json:"num_hidden_layers"`
	Vocab      *int     `json:"vocab_size"`
	Positions  *int     `json:"max_position_embeddings"`
	Tied       *bool    `json:"tie_word_embeddings"`
	TorchDType *string  `json:"torch_dtype"`
	DType      *string  `json:"dtype"`
	LayerTypes []string `json:"layer_types"`
	hfAttention
	hfMLP
	Quantization *hfQuantization `json:"quantization_config"`
}

type hfAttention struct {
	Heads         *int  `json:"num_attention_heads"`
	KVHeads       *int  `json:"num_key_value_heads"`
	HeadDim       *int  `json:"head_dim"`
	Bias          *bool `json:"attention_bias"`
	Window        *int  `json:"sliding_window"`
	UseWindow     *bool `json:"use_sliding_window"`
	WindowPattern *int  `json:"sliding_window_pattern"`
	WindowFrom    *int  `json:"max_window_layers"`
	ChunkSize     *int  `json:"attention_chunk_size"`
	NoRope        []int `json:"no_rope_layers"`
	GlobalHeadDim *int  `json:"global_head_dim"`
	GlobalKVHeads *int  `json:"num_global_key_value_heads"`
	KeysAreValues *bool `json:"attention_k_eq_v"`
	QRank         *int  `json:"q_lora_rank"`
	KVRank        *int  `json:"kv_lora_rank"`
	NopeDim       *int  `json:"qk_nope_head_dim"`
	RopeDim       *int  `json:"qk_rope_head_dim"`
	VDim          *int  `json:"v_head_dim"`
	IndexHeads    *int  `json:"index_n_heads"`
	IndexDim      *int  `json:"index_head_dim"`
}

type hfMLP struct {
	Intermediate      *int   `json:"intermediate_size"`
	DenseIntermediate *int   `json:"intermediate_size_mlp"`
	ExpertInner       *int   `json:"moe_intermediate_size"`
	SharedInner       *int   `json:"shared_expert_intermediate_size"`
	LocalExperts      *int   `json:"num_local_experts"`
	RoutedExperts     *int   `json:"n_routed_experts"`
	Experts           *int   `json:"num_experts"`
	PerToken          *int   `json:"num_experts_per_tok"`
	TopK              *int   `json:"top_k_experts"`
	OldPerToken       *int   `json:"experts_per_token"`
	SharedExperts     *int   `json:"n_shared_experts"`
	FirstDense        *int   `json:"first_k_dense_replace"`
	Every             *int   `json:"moe_layer_freq"`
	SparseStep        *int   `json:"decoder_sparse_step"`
	Interleave        *int   `json:"interleave_moe_layer_step"`
	MoELayers         []int  `json:"moe_layers"`
	DenseLayers       []int  `json:"mlp_only_layers"`
	TopKMethod        string `json:"topk_method"`
	MLPBias           *bool  `json:"mlp_bias"`
}

type hfQuantization struct {
	Method string                  `json:"quant_method"`
	Algo   string                  `json:"quant_algo"`
	Bits   int                     `json:"bits"`
	Groups map[string]hfQuantGroup `json:"config_groups"`
}

type hfQuantGroup struct {
	Weights *struct {
		Bits int    `json:"num_bits"`
		Type string `json:"type"`
	} `json:"weights"`
}

// compressed names the form of compressed-tensors, whose groups must agree.
func (q *hfQuantization) compressed() (string, error) {
	found := ""
	for _, g := range q.Groups {
		if g.Weights == nil {
			continue
		}
		form := fmt.Sprintf("%s%d", map[string]string{"float": "fp"}[g.Weights.Type], g.Weights.Bits)
		if g.Weights.Type == "int" {
			form = fmt.Sprintf("int%d", g.Weights.Bits)
		}
		if form == "fp4" {
			form = "nvfp4"
		}
		if found != "" && found != form {
			return "", errors.New("quantization_config.config_groups: weights of several forms are not supported")
		}
		found = form
	}
	if _, err := quantizations.Get("form of weights", found); err != nil {
		return "", fmt.Errorf("quantization_config.config_groups: %w", err)
	}
	return found, nil
}

// Parse reads the text of a config.json; name is used in errors and, for want of
// another, as the model's.
func Parse(name string, data []byte) (*Architecture, error) {
	var c hf
	if err := json.Unmarshal(data, &c); err != nil {
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) {
			want := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Bool: "true or false", reflect.String: "text", reflect.Slice: "a list"}[typed.Type.Kind()]
			return nil, fmt.Errorf("%s: %s: must be %s, is %s", name, typed.Field, cmp.Or(want, "an object"), typed.Value)
		}
		return nil, fmt.Errorf("%s: is not JSON: %w", name, err)
	}
	if text := c.TextConfig; text != nil {
		// What concerns the whole model may stand outside.
		text.Tied = or(text.Tied, c.Tied)
		text.TorchDType, text.DType = or(text.TorchDType, c.TorchDType), or(text.DType, c.DType)
		text.Quantization = or(text.Quantization, c.Quantization)
		if text.Type == "" {
			text.Type = c.Type
		}
		c = *text
	}
	f, err := families.Get("model_type", c.Type)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; a model whose layers are as one of these can be read with its model_type", name, err)
	}
	a, err := c.architecture(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a.Name = name
	return a, nil
}

// or returns the first of two that is there.
func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// value returns what p points to, otherwise for want of it.
func value[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}

// family is what a model_type means beyond the fields of its files.
type family struct {
	// qkvBias and outBias hold unless attention_bias says otherwise.
	qkvBias, outBias, qkNorm, sinks bool
	// norms of each layer, 2 if it is 0.
	norms int
	tied  bool
	// pattern: every so many layers one sees everything, the others a window.
	pattern int
	// defaults are what files leave out.
	headDim, vocab, heads, kvHeads, positions int
	expertBias                                bool
	// sharedIsDense: each layer of experts has one dense MLP of intermediate_size.
	beside besideExperts
}

type besideExperts uint8

const (
	nothing besideExperts = iota
	// sharedCount: n_shared_experts, each of the experts' size.
	sharedCount
	// sharedOne: one of the experts' size.
	sharedOne
	// denseToo: one of intermediate_size.
	denseToo
)

// families are the model types that can be read.
var families = named.Table[family]{
	{Name: "llama", Value: family{}},
	{Name: "mistral", Value: family{}},
	{Name: "mixtral", Value: family{}},
	{Name: "phi3", Value: family{}},
	{Name: "qwen2", Value: family{qkvBias: true}},
	{Name: "qwen3", Value: family{qkNorm: true}},
	{Name: "qwen3_moe", Value: family{qkNorm: true}},
	{Name: "deepseek_v2", Value: family{beside: sharedCount}},
	{Name: "deepseek_v3", Value: family{beside: sharedCount}},
	{Name: "deepseek_v32", Value: family{beside: sharedCount}},
	{Name: "kimi_k2", Value: family{beside: sharedCount}},
	{Name: "gpt_oss", Value: family{qkvBias: true, outBias: true, sinks: true, expertBias: true}},
	{Name: "llama4_text", Value: family{beside: sharedOne, pattern: 4}},
	{Name: "llama4", Value: family{beside: sharedOne, pattern: 4}},
	{Name: "gemma3_text", Value: family{qkNorm: true, norms: 4, tied: true, pattern: 6, headDim: 256, vocab: 262208, heads: 8, kvHeads: 4, positions: 131072}},
	{Name: "gemma3", Value: family{qkNorm: true, norms: 4, tied: true, pattern: 6, headDim: 256, vocab: 262208, heads: 8, kvHeads: 4, positions: 131072}},
	{Name: "gemma4_text", Value: family{qkNorm: true, norms: 4, tied: true, beside: denseToo}},
	{Name: "gemma4", Value: family{qkNorm: true, norms: 4, tied: true, beside: denseToo}},
}

// architecture puts the fields together.
func (c *hf) architecture(f family) (*Architecture, error) {
	a := &Architecture{Type: c.Type, TiedEmbeddings: value(c.Tied, f.tied)}
	layers := 0
	for _, v := range []struct {
		name string
		from *int
		to   *int
		want int
	}{
		{"hidden_size", c.Hidden, &a.Hidden, 0},
		{"num_hidden_layers", c.Layers, &layers, 0},
		{"vocab_size", c.Vocab, &a.Vocab, f.vocab},
		{"max_position_embeddings", c.Positions, &a.MaxPositions, f.positions},
	} {
		if *v.to = value(v.from, v.want); *v.to < 1 || *v.to > maxSize {
			return nil, fault(v.name, v.from, "must be between 1 and %d", maxSize)
		}
	}
	if layers > maxLayers {
		return nil, fault("num_hidden_layers", c.Layers, "must be between 1 and %d", maxLayers)
	}
	if n := len(c.LayerTypes); n > 0 && n != layers {
		return nil, fmt.Errorf("layer_types: must have num_hidden_layers, %d, entries, has %d", layers, n)
	}
	quantization, err := quantizationOf(c.Quantization)
	if err != nil {
		return nil, err
	}
	a.Precision = Precision{DType: value(or(c.DType, c.TorchDType), "bfloat16"), Quantization: quantization, KVCache: "auto"}
	if err := a.Precision.check(); err != nil {
		return nil, err
	}
	for i := range layers {
		l := Layers{Count: 1, Norms: 2}
		if f.norms > 0 {
			l.Norms = f.norms
		}
		if l.Attention, err = c.attention(f, a.Hidden, i); err != nil {
			return nil, err
		}
		if l.MLP, err = c.mlp(f, i); err != nil {
			return nil, err
		}
		a.add(l)
		if size := float64(max(l.MLP.Experts, 1)) * float64(max(l.MLP.Intermediate, l.MLP.ExpertIntermediate)) * float64(a.Hidden); size*float64(layers) > maxParameters {
			return nil, fmt.Errorf("num_hidden_layers, hidden_size, intermediate_size: make a model of more than %g parameters", float64(maxParameters))
		}
	}
	if w := a.windows(); len(w) > 1 {
		return nil, fmt.Errorf("sliding_window: layers with windows of %d and %d tokens are not supported in one model", w[0], w[1])
	}
	return a, nil
}

// add counts a layer to those that are like it.
func (a *Architecture) add(l Layers) {
	same := func(have Layers) bool {
		h, n := have.Attention, l.Attention
		mla := h.MLA == nil && n.MLA == nil || h.MLA != nil && n.MLA != nil && *h.MLA == *n.MLA
		h.MLA, n.MLA = nil, nil
		return mla && h == n && have.MLP == l.MLP && have.Norms == l.Norms
	}
	if i := slices.IndexFunc(a.Layers, same); i >= 0 {
		a.Layers[i].Count++
		return
	}
	a.Layers = append(a.Layers, l)
}

// windows lists the windows that layers have.
func (a *Architecture) windows() (list []int) {
	for _, l := range a.Layers {
		if w := l.Attention.Window; w > 0 && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// The bounds are far outside what exists, and their products inside an int64.
const (
	maxSize   = 1 << 28
	maxWidth  = 1 << 20
	maxLayers = 1 << 12

	maxParameters = 1e15
)

// fault says what is wrong with a field.
func fault(name string, have *int, format string, args ...any) error {
	what := "is missing"
	if have != nil {
		what = fmt.Sprintf("is %d", *have)
	}
	return fmt.Errorf("%s: %s, %s", name, fmt.Sprintf(format, args...), what)
}
