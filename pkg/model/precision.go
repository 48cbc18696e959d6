package model

import (
	"math"

	"blis/pkg/registry"
)

// Precision says in what form numbers are stored: DType the weights that are not
// quantised and what is computed, Quantization the products' weights ("" if they
// are as the others), KVCache the keys and values ("auto": as DType).
type Precision struct {
	DType        string `json:"dtype"`
	Quantization string `json:"quantization,omitempty"`
	KVCache      string `json:"kv_cache"`
	// PlainAttention: the quantisation leaves the projections of attention out, as
	// it always does embeddings, head, norms and routers.
	PlainAttention bool `json:"plain_attention,omitempty"`
}

// dtypes are the forms of numbers, in bytes.
var dtypes = registry.Table[float64]{
	{Name: "bfloat16", Value: 2}, {Name: "float16", Value: 2}, {Name: "half", Value: 2},
	{Name: "float32", Value: 4}, {Name: "float", Value: 4},
}

// quantizations are the forms of quantised weights.
var quantizations = registry.Table[quantization]{
	{Name: "fp8", Doc: "8 bits, computed in 8 where the GPU can", Value: quantization{bytes: 1, computes: "fp8"}},
	{Name: "mxfp4", Doc: "4 bits and a scale of 8 for 32 weights (OCP Microscaling 1.0), of the experts only", Value: quantization{bytes: 17.0 / 32, expertsOnly: true}},
	{Name: "nvfp4", Doc: "4 bits and a scale of 8 for 16 weights", Value: quantization{bytes: 9.0 / 16, computes: "fp4"}},
	{Name: "int8", Doc: "8 bits", Value: quantization{bytes: 1}},
	{Name: "int4", Doc: "4 bits, and a scale of 16 and a zero of 4 for 128 weights", Value: quantization{bytes: (4 + 20.0/128) / 8}},
	{Name: "awq", Doc: "as int4", Value: quantization{bytes: (4 + 20.0/128) / 8}},
	{Name: "gptq", Doc: "as int4", Value: quantization{bytes: (4 + 20.0/128) / 8}},
}

type quantization struct {
	// bytes of a weight, with its part of the scales.
	bytes float64
	// computes is the precision of the products where it is not that of DType.
	computes    string
	expertsOnly bool
}

// kvDTypes are the forms of keys and values, in bytes; 0 is that of the weights.
var kvDTypes = registry.Table[float64]{
	{Name: "auto", Value: 0}, {Name: "bfloat16", Value: 2}, {Name: "fp8", Value: 1}, {Name: "fp8_e4m3", Value: 1}, {Name: "fp8_e5m2", Value: 1},
}

// Overrides say what a model's configuration does not, or otherwise: by vLLM's
// names and values. What is "" or 0 stays; quantization "none" takes it away.
type Overrides struct {
	DType, Quantization, KVCacheDType string
	MaxModelLen                       int
}

// With returns the model with overrides. A quantization is taken to leave no more
// out than every one does.
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
		p.Quantization, p.PlainAttention = "", false
	default:
		if o.Quantization != p.Quantization {
			p.Quantization, p.PlainAttention = o.Quantization, false
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

// same reports whether all numbers take as much room, by whatever name.
func (p *Precision) same(q *Precision) bool {
	return p.unquantized() == q.unquantized() && p.matmul(false) == q.matmul(false) && p.matmul(true) == q.matmul(true) &&
		p.kv() == q.kv() && p.PlainAttention == q.PlainAttention
}

// Overridden reports whether the model is stored or computed otherwise than its
// own configuration says.
func (a *Architecture) Overridden() bool { return a.overridden }

func (p *Precision) check() error {
	if _, err := dtypes.Get("dtype", p.DType); err != nil {
		return err
	}
	if p.Quantization != "" {
		if _, err := quantizations.Get("quantization", p.Quantization); err != nil {
			return err
		}
	}
	_, err := kvDTypes.Get("kv_cache_dtype", p.KVCache)
	return err
}

// mustGet returns an entry that check has found.
func mustGet[T any](t registry.Table[T], name string) T {
	v, err := t.Get("", name)
	if err != nil {
		panic("model: " + err.Error())
	}
	return v
}

// unquantized is what a number takes that is not quantised, in bytes.
func (p *Precision) unquantized() float64 { return mustGet(dtypes, p.DType) }

// matmul is what a weight of a matrix product takes, in bytes: of an expert's
// where expert says so, else of a dense one's.
func (p *Precision) matmul(expert bool) float64 {
	if p.Quantization == "" {
		return p.unquantized()
	}
	q := mustGet(quantizations, p.Quantization)
	if q.expertsOnly && !expert {
		return p.unquantized()
	}
	return q.bytes
}

// attention is what a weight of the projections of attention takes, in bytes.
func (p *Precision) attention() float64 {
	if p.PlainAttention {
		return p.unquantized()
	}
	return p.matmul(false)
}

// kv is what a number in the KV cache takes, in bytes.
func (p *Precision) kv() float64 {
	if b := mustGet(kvDTypes, p.KVCache); b > 0 {
		return b
	}
	return p.unquantized()
}

// ComputePrecision names the precision that products run in: bf16, fp8 or fp4.
func (a *Architecture) ComputePrecision() string {
	if q := a.Precision.Quantization; q != "" {
		if c := mustGet(quantizations, q).computes; c != "" {
			return c
		}
	}
	return "bf16"
}

func bytesOf(n int64, each float64) int64 { return int64(math.Round(float64(n) * each)) }
