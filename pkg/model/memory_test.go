package model

import (
	"slices"
	"testing"
)

func plan(t *testing.T, name string) MemoryPlan {
	t.Helper()
	a, err := BuiltIn(name)
	if err != nil {
		t.Fatal(err)
	}
	p := MemoryPlan{Work: a.Work(), Layers: a.KVLayers(), GPUMemory: 80 << 30, Utilization: 0.9,
		TP: 1, PP: 1, DP: 1, BlockSize: 16, GroupRatio: 1.5, MaxNumSeqs: 256, MaxNumBatchedTokens: 2048,
		Engine: EngineMemory{SamplerBytes: 38.4, Runtime: 13 << 30 / 100}}
	for i := range a.Layers {
		p.MLPs = append(p.MLPs, a.Layers[i].MLP)
	}
	return p
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
		{"activations", m.Activations, 1.26, 0.03},
		{"runtime", m.Runtime, 0.16, 0.04},
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

// TestStagesHaveOneMatrixOfTheEnds: the embedding is on the first stage and the head on the last one.
func TestStagesHaveOneMatrixOfTheEnds(t *testing.T) {
	p := plan(t, "Qwen/Qwen3-32B") // 64 layers
	w := p.Work
	p.PP = 2
	want := w.Dense.Bytes/2 + max(w.Head.Bytes, w.Embedding.Bytes)
	if got := p.Memory().Weights; w.Head.Bytes == 0 || got != want {
		t.Errorf("a GPU has %d bytes of weights, want %d", got, want)
	}
}

// TestKVPlanOfStates: a model that has only layers with states has their bytes, not those of tokens, in a block.
func TestKVPlanOfStates(t *testing.T) {
	p := MemoryPlan{Layers: []KVLayers{{Kind: KVState, Count: 3, Bytes: 1000, Heads: 2},
		{Kind: KVState, Count: 1, Bytes: 1000, Heads: 2}}, TP: 2, PP: 1, BlockSize: 16, GroupRatio: 1.5}
	want := KVPlan{[]KVGroup{{KVState, 0, 16, 4}}, 4 * 500}
	if got := p.KVPlan(); !slices.Equal(got.Groups, want.Groups) || got.BlockBytes != want.BlockBytes {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestKVPlan: the groups of models as vLLM's get_kv_cache_groups makes them. scripts/vllm-oracle compares them with
// vLLM's.
func TestKVPlan(t *testing.T) {
	window := func(tokens, size, layers int) KVGroup { return KVGroup{KVWindow, tokens, size, layers} }
	full := func(size, layers int) KVGroup { return KVGroup{KVFull, 0, size, layers} }
	chunk := KVGroup{KVChunked, 8192, 16, 12}
	w := window(1024, 16, 8)
	for _, c := range []struct {
		model  string
		tp, pp int
		groups []KVGroup
		bytes  int64
	}{
		{"Qwen/Qwen3-8B", 1, 1, []KVGroup{full(16, 36)}, 16 * 36 * 2 * 8 * 128 * 2},
		{"deepseek-ai/DeepSeek-V3", 8, 1, []KVGroup{full(16, 61)}, 16 * 61 * 576 * 2},
		{"openai/gpt-oss-20b", 1, 1, []KVGroup{window(128, 16, 12), full(16, 12)}, 16 * 12 * 2 * 8 * 64 * 2},
		{"openai/gpt-oss-20b", 2, 2, []KVGroup{window(128, 16, 6), full(16, 6)}, 16 * 6 * 2 * 4 * 64 * 2},
		{"google/gemma-3-12b-it", 1, 1, []KVGroup{w, w, w, w, w, full(16, 8)}, 16 * 8 * 2 * 8 * 256 * 2},
		{"meta-llama/Llama-4-Scout-17B-16E-Instruct", 8, 1, []KVGroup{chunk, chunk, chunk, full(16, 12)},
			16 * 12 * 2 * 1 * 128 * 2},
		// gemma-4's full attention has half as many bytes for each token, so twice as many tokens in a block. On 8
		// GPUs each has one head of both kinds, and those of full attention are larger.
		{"google/gemma-4-26B-A4B", 1, 1, []KVGroup{window(1024, 16, 5), window(1024, 16, 5), window(1024, 16, 5),
			window(1024, 16, 5), window(1024, 16, 5), full(32, 5)}, 16 * 5 * 2 * 8 * 256 * 2},
		{"google/gemma-4-26B-A4B", 8, 1, []KVGroup{window(1024, 32, 5), window(1024, 32, 5), window(1024, 32, 5),
			window(1024, 32, 5), window(1024, 32, 5), full(16, 5)}, 16 * 5 * 2 * 1 * 512 * 2},
	} {
		p := plan(t, c.model)
		p.TP, p.PP = c.tp, c.pp
		if got := p.KVPlan(); !slices.Equal(got.Groups, c.groups) || got.BlockBytes != c.bytes {
			t.Errorf("%s on %dx%d: %+v, want %v of %d bytes", c.model, c.tp, c.pp, got, c.groups, c.bytes)
		}
	}
}

// TestKVPlanOfLayerCounts: groups have as many layers as the kind with fewest, or with most if these are less than
// half more.
func TestKVPlanOfLayerCounts(t *testing.T) {
	for _, c := range []struct{ windowed, full, windowGroups, fullGroups, layers int }{
		{10, 10, 1, 1, 10}, {12, 10, 1, 1, 12}, {14, 10, 1, 1, 14}, {15, 10, 2, 1, 10}, {52, 10, 6, 1, 10},
		{2, 3, 1, 2, 2}, {3, 4, 1, 1, 4}, {1, 7, 1, 7, 1}, {5, 0, 1, 0, 5},
	} {
		p := MemoryPlan{TP: 1, PP: 1, BlockSize: 16, GroupRatio: 1.5}
		for _, l := range []KVLayers{{Kind: KVWindow, WindowTokens: 64, Count: c.windowed, Bytes: 100, Heads: 1},
			{Kind: KVFull, Count: c.full, Bytes: 100, Heads: 1}} {
			if l.Count > 0 {
				p.Layers = append(p.Layers, l)
			}
		}
		got := p.KVPlan()
		windowed := 0
		for _, g := range got.Groups {
			if g.Kind == KVWindow {
				windowed++
			}
		}
		if windowed != c.windowGroups || len(got.Groups)-windowed != c.fullGroups ||
			got.BlockBytes != int64(c.layers*1600) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
