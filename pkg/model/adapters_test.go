package model

import (
	"math"
	"testing"
)

// TestAdapterSlotsMatchServers compares a slot with what max_loras added to the model in the memory of an H100, after
// the logs of vLLM 0.8.5 ("Model loading took"; FerranAgulloLopez/GPULLMAdapterOptimization, digital_twin_dynamic/
// estimators/find_available_gpu_memory_depending_on_loaded_adapters). That version also had 256 additional tokens in
// each slot, as three matrices of the hidden width for models whose embeddings are adapted. PyTorch rounds each buffer
// up, which is 2.3 % of the smallest slots.
func TestAdapterSlotsMatchServers(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		model              string
		rank, first, last  int // slots
		firstGiB, lastGiB  float64
		additionalMatrices float64
	}{
		{"meta-llama/Llama-3.1-8B", 8, 8, 384, 15.3885, 33.7605, 3},
		{"meta-llama/Llama-3.1-8B", 16, 8, 384, 15.7278, 50.2762, 3},
		{"meta-llama/Llama-3.1-8B", 32, 8, 256, 16.4446, 60.5379, 3},
		{"Qwen/Qwen2.5-7B-Instruct", 8, 8, 384, 14.5501, 29.0155, 0},
		{"Qwen/Qwen2.5-7B-Instruct", 16, 8, 384, 14.8505, 43.1239, 0},
		{"Qwen/Qwen2.5-7B-Instruct", 32, 8, 320, 15.4635, 62.3739, 0},
	} {
		a, err := BuiltIn(c.model)
		if err != nil {
			t.Fatal(err)
		}
		layers, ends := (&AdapterSlots{Model: a, Count: 1, Rank: c.rank}).bytes(1)
		got := float64(layers+ends)/gib + c.additionalMatrices*256*float64(a.Hidden)*2/gib
		want := (c.lastGiB - c.firstGiB) / float64(c.last-c.first)
		t.Logf("%s, rank %d: %.4f GiB a slot, the server %.4f: %+.1f %%", c.model, c.rank, got, want, 100*(got/want-1))
		if math.Abs(got/want-1) > 0.025 {
			t.Errorf("%s, rank %d: %.4f GiB a slot, the server took %.4f", c.model, c.rank, got, want)
		}
	}
}

// TestAdapterSlotsOfParallelism: tensor parallelism divides the outputs of the first matrices of a block and the inputs
// of the last, and all GPUs have the embedding matrices. With expert parallelism each has whole experts.
func TestAdapterSlotsOfParallelism(t *testing.T) {
	attention := Attention{Heads: 8, KVHeads: 2, HeadDim: 10}
	a := &Architecture{Type: "mixtral", Hidden: 100, Vocab: 1000,
		Precision: Precision{DType: "bfloat16", KVCache: "auto"},
		Layers: []Layers{{Count: 3, Attention: attention,
			MLP: MLP{Experts: 6, ExpertsPerToken: 2, ExpertIntermediate: 40}}}}
	for _, c := range []struct {
		tp             int
		expertParallel bool
		layer          int64 // numbers for each rank
	}{
		// Queries 100 + 80, keys and values 100 + 20, output 80 + 100; router 100 + 6; six
		// experts 2 · (100 + 40) + 40 + 100.
		{1, false, 180 + 120 + 120 + 180 + 106 + 6*420},
		// 100 + 40, 100 + 10, 40 + 100; 6 · (2 · (100 + 20) + 20 + 100).
		{2, false, 140 + 110 + 110 + 140 + 106 + 6*360},
		{2, true, 140 + 110 + 110 + 140 + 106 + 3*420},
		// The two KV heads are on two GPUs each.
		{4, false, 120 + 110 + 110 + 120 + 106 + 6*330},
	} {
		layers, ends := (&AdapterSlots{Model: a, Count: 5, Rank: 8, ExpertParallel: c.expertParallel}).bytes(c.tp)
		if want := 2 * 5 * 8 * 3 * c.layer; layers != want || ends != 2*5*8*2*1100 {
			t.Errorf("TP %d, expert parallelism %v: %d bytes in layers, %d in embedding matrices, want %d and %d",
				c.tp, c.expertParallel, layers, ends, want, 2*5*8*2*1100)
		}
	}
	p := MemoryPlan{Work: a.Work(), Layers: a.KVLayers(), MLPs: []MLP{a.Layers[0].MLP}, TP: 1, PP: 2, DP: 1,
		BlockSize: 16, GroupRatio: 1.5, MaxNumSeqs: 1, MaxNumBatchedTokens: 1, GPUMemory: 1 << 30, Utilization: 1}
	without := p.Memory().KVCache
	p.Adapters = AdapterSlots{Model: a, Count: 5, Rank: 8}
	m := p.Memory()
	// Two of three layers, and one of the two embedding matrices.
	if want := int64(2*5*8) * (2*(180+120+120+180+106+6*420) + 1100); m.Adapters != want || m.KVCache != without-want {
		t.Errorf("a stage has %d bytes of slots, want %d; %d bytes for the cache without, %d with them", m.Adapters,
			want, without, m.KVCache)
	}
}
