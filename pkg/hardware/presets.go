package hardware

import (
	"strings"

	"blis/pkg/registry"
)

// Engine has the default settings of an engine, by the engine's names.
type Engine struct {
	MaxNumSeqs           int
	MaxNumBatchedTokens  int
	BlockSize            int
	GPUMemoryUtilization float64
	EnableChunkedPrefill bool
	EnablePrefixCaching  bool
	AsyncScheduling      bool
	ReserveFullSequence  bool
	Watermark            float64
}

// Presets are the defaults of engine versions, as of an API server on a GPU (nil: an unknown
// one). A version that is not listed has the defaults of the last one before it. vLLM before
// 0.8 had another scheduler, which no settings reproduce.
//
// Sources: vllm/engine/arg_utils.py for batch sizes, which depend on the memory of the device
// and, since 0.9, its name; vllm/config/{scheduler,cache}.py for the rest, at the versions in
// the table.
var Presets = registry.Table[func(*GPU) Engine]{
	{Name: "vllm-0.8", Doc: "the first V1 engine; 1024 sequences, 8192 tokens on GPUs of ≥ 70 GiB", Value: vllm08},
	{Name: "vllm-0.11", Doc: "since 0.9: 256 sequences and 2048 tokens on every A100", Value: vllm09},
	{Name: "vllm-0.15", Doc: "since 0.14: asynchronous scheduling", Value: vllm14},
	{Name: "vllm-0.19", Doc: "admits a request only if all its tokens fit", Value: vllm19},
	{Name: "vllm-0.25", Doc: "takes 0.92 of the memory", Value: vllm25},
}

// largeGiB is the memory from which on vLLM has larger batches.
const largeGiB = 70

func vllm08(g *GPU) Engine { return vllm(g != nil && g.MemoryGiB >= largeGiB) }

func vllm09(g *GPU) Engine {
	return vllm(g != nil && g.MemoryGiB >= largeGiB && !strings.Contains(strings.ToLower(g.ID+" "+g.Name), "a100"))
}

func vllm14(g *GPU) Engine {
	e := vllm09(g)
	e.AsyncScheduling = true
	return e
}

func vllm19(g *GPU) Engine {
	e := vllm14(g)
	e.ReserveFullSequence = true
	return e
}

func vllm25(g *GPU) Engine {
	e := vllm19(g)
	e.GPUMemoryUtilization = 0.92
	return e
}

// vllm has what all versions share.
func vllm(large bool) Engine {
	e := Engine{
		MaxNumSeqs: 256, MaxNumBatchedTokens: 2048, BlockSize: 16, GPUMemoryUtilization: 0.9,
		EnableChunkedPrefill: true, EnablePrefixCaching: true,
	}
	if large {
		e.MaxNumSeqs, e.MaxNumBatchedTokens = 1024, 8192
	}
	return e
}
