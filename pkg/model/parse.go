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
	"strings"

	"blis/pkg/limits"
)

// readFile reads a config.json, or the one in a directory.
func readFile(path string) (*Architecture, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	data, err := limits.ReadFile(path, limits.Config)
	if err != nil {
		return nil, err
	}
	return parse(path, data, readQuantization(path))
}

// readQuantization returns a reader of the file hf_quant_config.json next to config.json, nil if path
// has another name. Some checkpoints state their quantization there
// (vllm/transformers_utils/config.py, v0.11.0).
func readQuantization(path string) func() ([]byte, error) {
	name, ok := strings.CutSuffix(path, "config.json")
	if !ok {
		return nil
	}
	return func() ([]byte, error) { return limits.ReadFile(name+"hf_quant_config.json", limits.Config) }
}

// Find returns the model in the file or directory at path if it exists, else the built-in model called name.
func Find(path, name string) (*Architecture, error) {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return readFile(path)
	}
	a, err := BuiltIn(name)
	if err != nil {
		return nil, fmt.Errorf("no such file, and %w", err)
	}
	return a, nil
}

// hfConfig holds the relevant fields of a config.json. A missing or null field is nil.
type hfConfig struct {
	Type       string    `json:"model_type"`
	Classes    []string  `json:"architectures"`
	Encoder    bool      `json:"is_encoder_decoder"`
	TextConfig *hfConfig `json:"text_config"`
	Hidden     *int      `json:"hidden_size"`
	Layers     *int      `json:"num_hidden_layers"`
	Vocab      *int      `json:"vocab_size"`
	Positions  *int      `json:"max_position_embeddings"`
	Tied       *bool     `json:"tie_word_embeddings"`
	TorchDType *string   `json:"torch_dtype"`
	DType      *string   `json:"dtype"`
	LayerTypes []string  `json:"layer_types"`
	hfAttention
	hfMLP
	hfLinear
	hfSparse
	// ExpertDType is the format of routed experts.
	ExpertDType  string          `json:"expert_dtype"`
	Quantization *hfQuantization `json:"quantization_config"`
}

type hfAttention struct {
	Heads         *int   `json:"num_attention_heads"`
	KVHeads       *int   `json:"num_key_value_heads"`
	HeadDim       *int   `json:"head_dim"`
	Bias          *bool  `json:"attention_bias"`
	Window        *int   `json:"sliding_window"`
	UseWindow     *bool  `json:"use_sliding_window"`
	WindowPattern *int   `json:"sliding_window_pattern"`
	WindowFrom    *int   `json:"max_window_layers"`
	ChunkSize     *int   `json:"attention_chunk_size"`
	NoRope        []int  `json:"no_rope_layers"`
	GlobalHeadDim *int   `json:"global_head_dim"`
	GlobalKVHeads *int   `json:"num_global_key_value_heads"`
	KeysAreValues *bool  `json:"attention_k_eq_v"`
	SharedKV      *int   `json:"num_kv_shared_layers"`
	PerLayer      *int   `json:"hidden_size_per_layer_input"`
	QRank         *int   `json:"q_lora_rank"`
	KVRank        *int   `json:"kv_lora_rank"`
	NopeDim       *int   `json:"qk_nope_head_dim"`
	RopeDim       *int   `json:"qk_rope_head_dim"`
	VDim          *int   `json:"v_head_dim"`
	OutGate       *bool  `json:"attn_output_gate"`
	MLAGate       *bool  `json:"mla_use_output_gate"`
	QKNormType    string `json:"qk_norm_type"`
	// WindowLayers has 1 for layers with a window, which have their own sizes.
	WindowLayers  []int `json:"hybrid_layer_pattern"`
	WindowKVHeads *int  `json:"swa_num_key_value_heads"`
	// Pattern and Blocks say what each layer of a Nemotron-H is.
	Pattern string   `json:"hybrid_override_pattern"`
	Blocks  []string `json:"layers_block_type"`
	// NASBlocks has the sizes of each layer of a pruned Llama.
	NASBlocks []hfNASBlock `json:"block_configs"`
}

// hfNASBlock is an entry of block_configs.
type hfNASBlock struct {
	Attention struct {
		NoOp  bool `json:"no_op"`
		Group *int `json:"n_heads_in_group"`
	} `json:"attention"`
	FFN struct {
		NoOp bool     `json:"no_op"`
		Mult *float64 `json:"ffn_mult"`
	} `json:"ffn"`
}

type hfMLP struct {
	Intermediate      *int   `json:"intermediate_size"`
	DenseIntermediate *int   `json:"intermediate_size_mlp"`
	ExpertInner       *int   `json:"moe_intermediate_size"`
	LocalExperts      *int   `json:"num_local_experts"`
	RoutedExperts     *int   `json:"n_routed_experts"`
	Experts           *int   `json:"num_experts"`
	PerToken          *int   `json:"num_experts_per_tok"`
	TopK              *int   `json:"top_k_experts"`
	OldPerToken       *int   `json:"experts_per_token"`
	KimiPerToken      *int   `json:"num_experts_per_token"`
	SharedExperts     *int   `json:"n_shared_experts"`
	KimiShared        *int   `json:"num_shared_experts"`
	SharedInner       *int   `json:"shared_expert_intermediate_size"`
	SharedInnerM2     *int   `json:"shared_intermediate_size"`
	SharedInnerH      *int   `json:"moe_shared_expert_intermediate_size"`
	DenseInner        *int   `json:"dense_intermediate_size"`
	Latent            *int   `json:"moe_latent_size"`
	RoutedHidden      *int   `json:"routed_expert_hidden_size"`
	RoutingBias       *bool  `json:"use_routing_bias"`
	StepBias          *bool  `json:"use_moe_router_bias"`
	FirstDense        *int   `json:"first_k_dense_replace"`
	Every             hfFreq `json:"moe_layer_freq"`
	SparseStep        *int   `json:"decoder_sparse_step"`
	Interleave        *int   `json:"interleave_moe_layer_step"`
	MoELayers         []int  `json:"moe_layers"`
	DenseLayers       []int  `json:"mlp_only_layers"`
	TopKMethod        string `json:"topk_method"`
	MLPBias           *bool  `json:"mlp_bias"`
	EnableExperts     *bool  `json:"enable_moe_block"`
}

// parse reads a config.json; name is used in errors and as the model's name.
// quantization, if it is not nil, reads the quantization of a config.json that has none.
func parse(name string, data []byte, quantization func() ([]byte, error)) (*Architecture, error) {
	var c hfConfig
	if err := json.Unmarshal(finite(data), &c); err != nil {
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) {
			want := map[reflect.Kind]string{reflect.Int: "an integer", reflect.Bool: "true or false",
				reflect.String: "text", reflect.Slice: "a list"}[typed.Type.Kind()]
			// encoding/json names embedded structs too
			field := strings.NewReplacer("hfAttention.", "", "hfMLP.", "", "hfLinear.", "", "hfSparse.", "").
				Replace(typed.Field)
			if field != "" {
				field += ": "
			}
			return nil, fmt.Errorf("%s: %smust be %s, is %s", name, field, cmp.Or(want, "an object"), typed.Value)
		}
		return nil, fmt.Errorf("%s: is not JSON: %w", name, err)
	}
	if text := c.TextConfig; text != nil {
		// Fields of the whole model may be outside of text_config.
		text.Tied = firstNonNil(text.Tied, c.Tied)
		text.TorchDType, text.DType = firstNonNil(text.TorchDType, c.TorchDType), firstNonNil(text.DType, c.DType)
		text.Quantization = firstNonNil(text.Quantization, c.Quantization)
		text.Encoder = text.Encoder || c.Encoder
		if text.Classes == nil {
			text.Classes = c.Classes
		}
		if text.Type == "" {
			text.Type = c.Type
		}
		c = *text
	}
	if c.Quantization == nil {
		if err := c.quantizationOf(name, quantization); err != nil {
			return nil, err
		}
	}
	f, err := families.Get("model_type", c.Type)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; set the model_type of a model with the same kind of layers", name, err)
	}
	a, err := c.architecture(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a.Name = name
	return a, nil
}

// firstNonNil returns a, or b if a is nil.
func firstNonNil[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// deref returns *p, or otherwise if p is nil.
func deref[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}

// architecture converts the fields.
func (c *hfConfig) architecture(f family) (*Architecture, error) {
	a := &Architecture{Type: c.Type, TiedEmbeddings: deref(c.Tied, f.tied)}
	if f.blocks {
		if err := c.setBlocks(); err != nil {
			return nil, err
		}
	}
	layers := 0
	for _, v := range []struct {
		name string
		from *int
		to   *int
		want int
		most int
	}{
		{"hidden_size", c.Hidden, &a.Hidden, 0, maxWidth},
		{"num_hidden_layers", c.Layers, &layers, 0, maxLayers},
		{"vocab_size", c.Vocab, &a.Vocab, f.defaults.vocab, maxSize},
		{"max_position_embeddings", c.Positions, &a.MaxPositions, f.defaults.positions, maxSize},
	} {
		if *v.to = deref(v.from, v.want); *v.to < 1 || *v.to > v.most {
			return nil, fieldError(v.name, v.from, "must be between 1 and %d", v.most)
		}
	}
	if err := c.supported(f, layers); err != nil {
		return nil, err
	}
	var err error
	if a.Precision, err = c.precision(layers); err != nil {
		return nil, err
	}
	size := 2 * float64(a.Vocab) * float64(a.Hidden)
	for i := range layers {
		l, err := c.layer(f, a.Hidden, i)
		if err != nil {
			return nil, err
		}
		a.addLayer(l)
		if size += float64(l.parameters(int64(a.Hidden))); size > maxParameters {
			return nil, fmt.Errorf(
				"num_hidden_layers, hidden_size, intermediate_size: make a model of more than %g parameters",
				float64(maxParameters))
		}
	}
	if w := a.windows(); len(w) > 1 {
		return nil, fmt.Errorf(
			"sliding_window: layers with windows of %d and %d tokens are not supported in one model", w[0], w[1])
	}
	return a, nil
}

// supported returns an error for the first field of an unsupported kind of model.
func (c *hfConfig) supported(f family, layers int) error {
	if c.Encoder {
		return errors.New("is_encoder_decoder: must be false: only decoders are supported")
	}
	for _, class := range c.Classes {
		if !strings.HasSuffix(class, "ForCausalLM") && !strings.HasSuffix(class, "ForConditionalGeneration") {
			return fmt.Errorf("architectures: must end with ForCausalLM or ForConditionalGeneration, is %q", class)
		}
	}
	if n := len(c.LayerTypes); n > 0 && n != layers {
		return fmt.Errorf("layer_types: must have num_hidden_layers, %d, entries, has %d", layers, n)
	}
	if n := len(c.NoRope); n > 0 && n != layers {
		return fmt.Errorf("no_rope_layers: must have num_hidden_layers, %d, entries, has %d", layers, n)
	}
	kinds := []string{"full_attention", "sliding_attention", "chunked_attention"}
	switch {
	case f.linear == GatedDeltaNet:
		kinds = append(kinds, "linear_attention")
	case f.latent:
		kinds = append(kinds, "deepseek_sparse_attention")
	}
	for i, kind := range c.LayerTypes {
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf("layer_types[%d]: must be %s or %s, is %q", i, strings.Join(kinds[:len(kinds)-1], ", "),
				kinds[len(kinds)-1], kind)
		}
	}
	if n := c.FullInterval; n != nil && *n < 1 {
		return fieldError("full_attention_interval", n, "must be at least 1")
	}
	if n := deref(c.SharedKV, 0); n != 0 {
		return fieldError("num_kv_shared_layers", &n, "must be 0: layers that share keys and values are not supported")
	}
	if n := deref(c.PerLayer, f.defaults.perLayer); n != 0 {
		return fieldError("hidden_size_per_layer_input", c.PerLayer,
			"must be 0: embeddings for each layer are not supported")
	}
	return nil
}

// layer returns layer i.
func (c *hfConfig) layer(f family, hidden, i int) (l Layers, err error) {
	l = Layers{Count: 1, Norms: cmp.Or(f.norms, 2)}
	block := ""
	if f.blocks {
		block, l.Norms = c.Blocks[i], 1
	}
	if block == "" || block == "mamba" || block == "attention" {
		if l.Attention, err = c.attention(f, hidden, i); err != nil {
			return l, err
		}
	}
	if block == "" || block == "moe" || block == "mlp" {
		if l.MLP, err = c.mlp(f, hidden, i); err != nil {
			return l, err
		}
	}
	if l.MLP.Experts > 0 {
		l.Norms = cmp.Or(f.expertNorms, l.Norms)
	}
	return l, nil
}

// addLayer adds a layer to its group of identical layers.
func (a *Architecture) addLayer(l Layers) {
	same := func(have Layers) bool {
		h, n := have.Attention, l.Attention
		parts := equal(h.MLA, n.MLA) && equal(h.Compressed, n.Compressed) && equal(h.Linear, n.Linear)
		h.MLA, h.Compressed, h.Linear, n.MLA, n.Compressed, n.Linear = nil, nil, nil, nil, nil, nil
		return parts && h == n && have.MLP == l.MLP && have.Norms == l.Norms
	}
	if i := slices.IndexFunc(a.Layers, same); i >= 0 {
		a.Layers[i].Count++
		return
	}
	a.Layers = append(a.Layers, l)
}

// equal compares what two pointers point to.
func equal[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// windows returns the distinct window sizes of the layers.
func (a *Architecture) windows() (list []int) {
	for _, l := range a.Layers {
		if w := l.Attention.Window; w > 0 && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// The limits are far outside of real values. They keep the parameters of a layer, and with
// maxParameters the bytes and FLOPs of a model, within an int64.
const (
	maxSize   = 1 << 28
	maxWidth  = 1 << 20
	maxHeads  = 1 << 14 // also limits the head dimension
	maxLayers = 1 << 12
	maxShared = 1 << 10

	maxParameters = 1e15
)

// fieldError describes an invalid field.
func fieldError(name string, have *int, format string, args ...any) error {
	what := "is missing"
	if have != nil {
		what = fmt.Sprintf("is %d", *have)
	}
	return fmt.Errorf("%s: %s, %s", name, fmt.Sprintf(format, args...), what)
}
