package model

import (
	"testing"
)

func plan(t *testing.T, name string) MemoryPlan {
	t.Helper()
	a, err := BuiltIn(name)
	if err != nil {
		t.Fatal(err)
	}
	return MemoryPlan{Work: a.Work(), GPUMemory: 80 << 30, Utilization: 0.9, TP: 1, PP: 1, DP: 1, BlockSize: 16,
		MaxNumSeqs: 256, MaxNumBatchedTokens: 2048}
}

// TestMemoryMatchesVLLMLog: Llama-3-8B on a GPU of 79.22 GiB, with 8192 tokens and 256 sequences
// per step, uses 14.96 GiB for weights, 1.26 for activations and 1.79 for other memory, and leaves
// 53.29 for the cache (vllm-project/vllm pull request 10511). From pull request 12126 on, other
// memory is 0.16, which leaves 54.9.
func TestMemoryMatchesVLLMLog(t *testing.T) {
	p := plan(t, "meta-llama/Llama-3.1-8B")
	p.GPUMemory, p.MaxNumBatchedTokens = 85061750000, 8192
	m := p.Memory()
	for _, c := range []struct {
		what        string
		bytes       int64
		gib, within float64
	}{
		{"weights", m.Weights, 14.96, 0.01},
		{"activations", m.Activations, 1.26, 0.15},
		{"runtime", m.Runtime, 0.16, 0.01},
		{"cache", m.KVCache, 54.9, 0.2},
	} {
		if got := float64(c.bytes) / (1 << 30); got < c.gib-c.within || got > c.gib+c.within {
			t.Errorf("%s: %.2f GiB, the log has %.2f", c.what, got, c.gib)
		}
	}
}

// TestParallelismDividesMemory checks which part of memory each kind of parallelism divides.
func TestParallelismDividesMemory(t *testing.T) {
	for _, c := range []struct {
		name        string
		tp, pp, dp  int
		weightParts float64 // relative to one GPU
		blockParts  float64
	}{
		{"Qwen/Qwen3-32B", 4, 1, 1, 4, 4},
		{"Qwen/Qwen3-32B", 1, 1, 4, 1, 1},          // data parallelism copies a dense model
		{"Qwen/Qwen3-30B-A3B", 8, 1, 1, 8, 4},      // four KV heads, which are copied
		{"deepseek-ai/DeepSeek-V3", 8, 1, 1, 8, 1}, // the latent vector is on every GPU
	} {
		p := plan(t, c.name)
		alone := p.Memory()
		p.TP, p.PP, p.DP = c.tp, c.pp, c.dp
		m := p.Memory()
		if got := float64(alone.Weights) / float64(m.Weights); got < 0.999*c.weightParts || got > 1.001*c.weightParts {
			t.Errorf("%s, TP %d, DP %d: weights are divided by %.2f, want %g", c.name, c.tp, c.dp, got, c.weightParts)
		}
		if got := float64(alone.BlockBytes) / float64(m.BlockBytes); got != c.blockParts {
			t.Errorf("%s, TP %d, DP %d: blocks are divided by %g, want %g", c.name, c.tp, c.dp, got, c.blockParts)
		}
	}
	// The experts of a stage are divided over TP·DP GPUs, other weights over TP.
	p := plan(t, "Qwen/Qwen3-30B-A3B")
	p.TP, p.DP = 2, 4
	w := p.Work
	experts := int64(w.ExpertLayers) * int64(w.Experts) * w.Expert.Bytes
	if got, want := p.Memory().Weights, w.Dense.Bytes/2+experts/8+(w.Head.Bytes+w.Embedding.Bytes)/2; got != want {
		t.Errorf("a GPU has %d bytes of weights, want %d", got, want)
	}
	// 61 layers in two stages: the larger stage has 31, and one of the two embedding matrices.
	p = plan(t, "deepseek-ai/DeepSeek-V3")
	all := p.Memory().BlockBytes
	p.PP = 2
	if got := float64(p.Memory().BlockBytes) / float64(all); got < 31.0/61-1e-6 || got > 31.0/61+1e-6 {
		t.Errorf("a stage has %.4f of a block, want 31/61", got)
	}
}

// TestWindow: half of gpt-oss's layers attend to 128 tokens, which are 8 blocks.
func TestWindow(t *testing.T) {
	p := plan(t, "openai/gpt-oss-20b")
	if blocks, extra := p.Window(); blocks != 8 || extra != 1 {
		t.Errorf("%d blocks with %d extra, want 8 with 1", blocks, extra)
	}
	if blocks, extra := plan(t, "Qwen/Qwen3-8B").Window(); blocks != 0 || extra != 0 {
		t.Errorf("a model without windows has %d blocks with %d extra", blocks, extra)
	}
	// On 8 GPUs each has one of gemma-4's 8 KV heads in layers with a window, and a copy of one of 2
	// heads in the 5 others: 25·256 numbers against 5·512.
	g := plan(t, "google/gemma-4-26B-A4B")
	g.TP = 8
	if blocks, extra := g.Window(); blocks != 64 || extra != 3 {
		t.Errorf("gemma-4 on 8 GPUs: %d blocks with %d extra, want 64 with 3", blocks, extra)
	}
	p.Work.KVBytes = 0 // all layers have windows
	if blocks, _ := p.Window(); blocks != 0 || p.Memory().BlockBytes != 16*p.Work.WindowKVBytes {
		t.Errorf("windows alone: %d blocks, of %d bytes", blocks, p.Memory().BlockBytes)
	}
}
