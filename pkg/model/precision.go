package model

import (
	"cmp"
	"math"

	"blis/pkg/registry"
)

// Precision describes how numbers are stored: DType is the format of unquantized weights and
// activations, Quantization that of the matrix products' weights ("" if not quantized), KVCache
// that of keys and values ("auto": as DType).
type Precision struct {
	DType        string `json:"dtype"`
	Quantization string `json:"quantization,omitempty"`
	KVCache      string `json:"kv_cache"`
	// PlainAttention: the quantization excludes the attention projections. Embeddings, head, norms and
	// routers are always excluded.
	PlainAttention bool `json:"plain_attention,omitempty"`
	// PlainMLP: it excludes dense MLPs and shared experts.
	PlainMLP bool `json:"plain_mlp,omitempty"`
	// Attention and Experts are the formats of attention projections and of routed experts if they
	// differ from Quantization.
	Attention string `json:"attention,omitempty"`
	Experts   string `json:"experts,omitempty"`
	// BlockScales: weights of 8 bits have a scale for each block of 128 by 128, and activations for
	// each 128 numbers.
	BlockScales bool `json:"block_scales,omitempty"`
}

// EmbeddingBytes is the size of the embedding of a token of an image or another item: as many numbers as the model is
// wide, in its dtype. Encoders that add features of further layers (DeepStack) have larger ones.
func (a *Architecture) EmbeddingBytes() int64 {
	bytes, err := dtypes.Get("dtype", a.Precision.DType)
	if err != nil {
		bytes = 2 // With has checked it
	}
	return int64(a.Hidden) * int64(bytes)
}

// dtypes are the number formats, in bytes.
var dtypes = registry.Table[float64]{
	{Name: "bfloat16", Value: 2}, {Name: "float16", Value: 2}, {Name: "half", Value: 2},
	{Name: "float32", Value: 4}, {Name: "float", Value: 4},
}

// quantizations are the formats of quantized weights.
var quantizations = registry.Table[quantization]{
	{Name: "fp8", Doc: "8 bits, computed in 8 bits where the GPU supports it",
		Value: quantization{bytes: 1, computes: "fp8"}},
	{Name: "mxfp8", Doc: "8 bits, 8-bit scale per 32 weights", Value: quantization{bytes: 33.0 / 32, computes: "fp8"}},
	{Name: "mxfp4", Doc: "4 bits, 8-bit scale per 32 weights (OCP Microscaling 1.0); experts only",
		Value: quantization{bytes: 17.0 / 32, expertsOnly: true}},
	{Name: "nvfp4", Doc: "4 bits, 8-bit scale per 16 weights", Value: quantization{bytes: 9.0 / 16, computes: "fp4"}},
	{Name: "int8", Doc: "8 bits", Value: quantization{bytes: 1}},
	{Name: "int4", Doc: "4 bits, 16-bit scale and 4-bit zero per 128 weights",
		Value: quantization{bytes: (4 + 20.0/128) / 8}},
	{Name: "awq", Doc: "as int4", Value: quantization{bytes: (4 + 20.0/128) / 8}},
	{Name: "gptq", Doc: "as int4", Value: quantization{bytes: (4 + 20.0/128) / 8}},
}

type quantization struct {
	// bytes per weight, including its share of the scales.
	bytes float64
	// computes is the precision of the products if it is not DType.
	computes    string
	expertsOnly bool
}

// kvDTypes are the formats of keys and values, in bytes; 0 is that of the weights.
var kvDTypes = registry.Table[float64]{
	{
		Name:  "auto",
		Value: 0,
	}, {Name: "bfloat16", Value: 2}, {Name: "fp8", Value: 1}, {Name: "fp8_e4m3", Value: 1},
	{Name: "fp8_e5m2", Value: 1},
}

// Overrides replace parts of a model's configuration, with vLLM's names and values. "" and 0 keep
// the original; quantization "none" removes it.
type Overrides struct {
	DType, Quantization, KVCacheDType string
	MaxModelLen                       int
}

// With returns the model with overrides. A new quantization is assumed to exclude no more than
// every quantization does.
func (a *Architecture) With(o Overrides) (*Architecture, error) {
	b := *a
	if o.MaxModelLen < 0 || o.MaxModelLen > maxSize {
		return nil, fieldError("max_model_len", &o.MaxModelLen, "must be between 1 and %d", maxSize)
	}
	if o.MaxModelLen > 0 {
		b.MaxPositions = o.MaxModelLen
	}
	p := &b.Precision
	if o.DType != "" && o.DType != "auto" {
		p.DType = o.DType
	}
	switch o.Quantization {
	case "":
	case "none":
		*p = Precision{DType: p.DType, KVCache: p.KVCache}
	default:
		if o.Quantization != p.Quantization {
			*p = Precision{DType: p.DType, KVCache: p.KVCache, Quantization: o.Quantization}
		}
	}
	if o.KVCacheDType != "" {
		p.KVCache = o.KVCacheDType
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	b.overridden = a.overridden || !p.same(&a.Precision) || a.ComputePrecision() != b.ComputePrecision()
	return &b, nil
}

// same reports whether all numbers take the same space.
func (p *Precision) same(q *Precision) bool {
	return p.unquantized() == q.unquantized() && p.mlp() == q.mlp() && p.experts() == q.experts() &&
		p.kv() == q.kv() && p.attention() == q.attention()
}

// Overridden reports whether precision or quantization differ from the model's own configuration.
func (a *Architecture) Overridden() bool { return a.overridden }

func (p *Precision) check() error {
	if _, err := dtypes.Get("dtype", p.DType); err != nil {
		return err
	}
	for _, name := range []string{p.Quantization, p.Attention, p.Experts} {
		if _, err := quantizations.Get("quantization", name); err != nil && name != "" {
			return err
		}
	}
	_, err := kvDTypes.Get("kv_cache_dtype", p.KVCache)
	return err
}

// mustGet returns an entry that check has verified.
func mustGet[T any](t registry.Table[T], name string) T {
	v, err := t.Get("", name)
	if err != nil {
		panic("model: " + err.Error())
	}
	return v
}

// unquantized is the size of an unquantized number, in bytes.
func (p *Precision) unquantized() float64 { return mustGet(dtypes, p.DType) }

// Formats returns the formats of the weights of attention projections, of dense MLPs and shared
// experts, and of routed experts; "" means DType.
func (p *Precision) Formats() (attention, mlp, experts string) {
	attention, mlp, experts = cmp.Or(p.Attention, p.Quantization), p.Quantization, cmp.Or(p.Experts, p.Quantization)
	if p.Quantization != "" && mustGet(quantizations, p.Quantization).expertsOnly {
		attention, mlp = p.Attention, ""
	}
	if p.PlainAttention {
		attention = ""
	}
	if p.PlainMLP {
		mlp = ""
	}
	return attention, mlp, experts
}

// sizeOf is the size of a weight in a format, in bytes.
func (p *Precision) sizeOf(format string) float64 {
	if format == "" {
		return p.unquantized()
	}
	return mustGet(quantizations, format).bytes
}

// mlp, experts and attention are the sizes of a weight of a dense MLP, a routed expert and an
// attention projection, in bytes.
func (p *Precision) mlp() float64 {
	_, mlp, _ := p.Formats()
	return p.sizeOf(mlp)
}

func (p *Precision) experts() float64 {
	_, _, experts := p.Formats()
	return p.sizeOf(experts)
}

func (p *Precision) attention() float64 {
	attention, _, _ := p.Formats()
	return p.sizeOf(attention)
}

// kv is the size of a number in the KV cache, in bytes.
func (p *Precision) kv() float64 {
	if b := mustGet(kvDTypes, p.KVCache); b > 0 {
		return b
	}
	return p.unquantized()
}

// KVBytes is the size of a number in the KV cache, in bytes.
func (p *Precision) KVBytes() float64 { return p.kv() }

// ComputePrecision returns the precision of the products: bf16, fp8 or fp4.
func (a *Architecture) ComputePrecision() string {
	if q := a.Precision.Quantization; q != "" {
		if c := mustGet(quantizations, q).computes; c != "" {
			return c
		}
	}
	return "bf16"
}

func bytesOf(n int64, each float64) int64 { return int64(math.Round(float64(n) * each)) }
