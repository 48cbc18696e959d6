package cluster

import (
	"strings"
	"testing"
)

const pools = "model: meta-llama/Llama-3.1-8B, gpu: H100, architecture: disaggregated"

// TestPools: a pool is as the deployment says, except for what it states, at any depth.
func TestPools(t *testing.T) {
	d, _, err := parseDeployment(pools + ", replicas: 3, " +
		"engine: {max_num_seqs: 64, long_prefill_token_threshold: 512}, " +
		"prefill: {replicas: 2, engine: {max_num_seqs: 8}}, decode: {engine: {max_num_batched_tokens: 300}, gpu: H200}")
	if err != nil {
		t.Fatal(err)
	}
	p := d.Prefill
	if d.Replicas != 3 || p.Replicas != 2 || d.Engine.MaxNumSeqs != 64 || p.Engine.MaxNumSeqs != 8 ||
		d.Engine.MaxNumBatchedTokens != 300 || p.Engine.MaxNumBatchedTokens == 300 ||
		d.Engine.LongPrefillTokenThreshold != 512 || p.Engine.LongPrefillTokenThreshold != 512 {
		t.Errorf("the pools are %+v and %+v", d, p)
	}
	if !strings.HasPrefix(d.GPU, "H200") || !strings.HasPrefix(p.GPU, "H100") ||
		d.Computed.KVBlocks <= p.Computed.KVBlocks {
		t.Errorf("%s has %d blocks, %s has %d", d.GPU, d.Computed.KVBlocks, p.GPU, p.Computed.KVBlocks)
	}
	if *d.Transfer != defaultTransfer || *d.Decider != defaultDecider || d.StageOrder != decodeFirst ||
		d.Decode != nil {
		t.Errorf("%+v, %+v, %s, decode %+v", d.Transfer, d.Decider, d.StageOrder, d.Decode)
	}
}

// TestIgnoredSettings: what each pool sets itself is warned about, but not what one of them takes over, and so is what
// only another type of decider reads.
func TestIgnoredSettings(t *testing.T) {
	const ofPools, ofDecider = "has no effect: its pools", "_tokens has no effect: decider.type is"
	for _, c := range []struct {
		fields, warning string
		want            bool
	}{
		{"replicas: 9, prefill: {replicas: 2}, decode: {replicas: 3}", ofPools, true},
		{"replicas: 9, prefill: {replicas: 2}", ofPools, false},
		{"prefill: {replicas: 2}, decode: {replicas: 3}", ofPools, false},
		{"engine: {max_num_seqs: 9}, prefill: {engine: {max_num_seqs: 8}}, decode: {engine: {watermark: 0.1}}", ofPools,
			false},
		{"decider: {type: always, non_cached_tokens: 5000}", ofDecider, true},
		{"decider: {type: never, prompt_tokens: 9}", ofDecider, true},
		{"decider: {non_cached_tokens: 5000, prompt_tokens: 9}", ofDecider, false},
		{"decider: {type: always, non_cached_tokens: 256}", ofDecider, false},
	} {
		_, warnings, err := parseDeployment(pools + ", " + c.fields)
		if err != nil || strings.Contains(strings.Join(warnings, "\n"), c.warning) != c.want {
			t.Errorf("%s: %v, %v", c.fields, warnings, err)
		}
	}
}

// TestPoliciesThatCountInFlight: the error names the policy that does not go with pools.
func TestPoliciesThatCountInFlight(t *testing.T) {
	for _, stage := range []string{"routing", "prefill_routing"} {
		_, _, err := parseDeployment(pools, stage+".type=dynamo-kv")
		want := "policies." + stage + ": a policy that counts tokens or blocks in flight"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", stage, err)
		}
	}
}

// TestGranularities: stream is block with a pipeline. The others begin to decode when all blocks have arrived.
func TestGranularities(t *testing.T) {
	for text, want := range map[string]PDTransfer{
		"{}":                                    {Granularity: granularityRequest},
		"{granularity: chunk}":                  {Granularity: GranularityChunk},
		"{granularity: stream}":                 {Granularity: GranularityBlock, Pipeline: true},
		"{pipeline: true, granularity: stream}": {Granularity: GranularityBlock, Pipeline: true},
		"{pipeline: true, lease_s: 30}":         {Granularity: granularityRequest, Pipeline: true},
		"{granularity: block, hop_us: 0}":       {Granularity: GranularityBlock},
	} {
		all := defaultTransfer
		all.Granularity, all.Pipeline = want.Granularity, want.Pipeline
		if d, _, err := parseDeployment(pools + ", transfer: " + text); err != nil || *d.Transfer != all {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
}

// TestPoolBounds: each pool has bounds of its own, by default those of the deployment.
func TestPoolBounds(t *testing.T) {
	const text = pools + ", replicas: 2, max_replicas: 4, prefill: {min_replicas: 2, max_replicas: 5}, " +
		"decode: {replicas: 3}"
	d, _, err := parseDeployment(text)
	if err != nil {
		t.Fatal(err)
	}
	p := d.Prefill
	if d.Replicas != 3 || *d.MinReplicas != 1 || d.MaxReplicas != 4 || p.Replicas != 2 || *p.MinReplicas != 2 ||
		p.MaxReplicas != 5 {
		t.Errorf("decode %d of %d to %d, prefill %d of %d to %d", d.Replicas, *d.MinReplicas, d.MaxReplicas, p.Replicas,
			*p.MinReplicas, p.MaxReplicas)
	}
}

// TestPoolTiers: each pool has tiers of its own, by default those of the deployment.
func TestPoolTiers(t *testing.T) {
	for _, c := range []struct {
		text            string
		prefill, decode int // blocks
	}{
		{pools + ", " + oneTier, 512, 512},
		{pools + ", " + oneTier + ", decode: {kv_tiers: []}", 512, 0},
		{pools + ", prefill: {kv_tiers: [{tier: cpu, blocks: 7, " + tierLinks + "}]}", 7, 0},
		{pools + ", " + oneTier + ", kv_offload: {eviction: lfu}, prefill: {kv_offload: {min_load_blocks: 2}}", 512,
			512},
	} {
		d, _, err := parseDeployment(c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		p := d.Prefill
		if p.Computed.KVTierBlocks != c.prefill || d.Computed.KVTierBlocks != c.decode {
			t.Errorf("%s: %d and %d blocks, want %d and %d", c.text, p.Computed.KVTierBlocks, d.Computed.KVTierBlocks,
				c.prefill, c.decode)
		}
		if strings.Contains(c.text, "lfu") && (p.KVOffload.Eviction != "lfu" || p.KVOffload.MinLoadBlocks != 2 ||
			d.KVOffload.MinLoadBlocks != 1) {
			t.Errorf("%s: %+v and %+v", c.text, p.KVOffload, d.KVOffload)
		}
	}
}

// TestPrefillFirst: the default decider of prefill-first is Dynamo's. One that is stated stays.
func TestPrefillFirst(t *testing.T) {
	const first = ", stage_order: prefill-first"
	for text, want := range map[string]Decider{
		first:                                    {DeciderConditional, 256, 0, 2048, 0.7},
		first + ", decider: {type: always}":      {deciderAlways, 256, 0, 0, 0},
		", decider: {type: conditional}":         {DeciderConditional, 256, 0, 2048, 0.7},
		", decider: {type: never, new_ratio: 1}": {deciderNever, 256, 0, 0, 0},
		", decider: {type: conditional, new_tokens: 0, new_ratio: 0}": {DeciderConditional, 256, 0, 0, 0},
	} {
		if d, _, err := parseDeployment(pools + text); err != nil || *d.Decider != want {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
}

func TestPoolErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"model: meta-llama/Llama-3.1-8B, gpu: H100, prefill: {replicas: 2}",
			"prefill: needs architecture: disaggregated"},
		{"model: meta-llama/Llama-3.1-8B, gpu: H100, architecture: split", "architecture: must be disaggregated"},
		{pools + ", decider: {type: sometimes}", "decider.type: must be one of"},
		{pools + ", transfer: {in_gb_per_s: 0}", "transfer.in_gb_per_s: must be at least 1e-06"},
		{pools + ", transfer: {latency_us: 1.5}", "must be an integer, is 1.5"},
		{pools + ", transfer: {granularity: page}",
			`transfer.granularity: must be one of ["request" "chunk" "block" "stream"], is "page"`},
		{pools + ", transfer: {granularity: stream, pipeline: false}",
			"transfer.pipeline: must be true with granularity: stream; without a pipeline it is block"},
		{pools + ", max_replicas: 3, transfer: {granularity: chunk}",
			"transfer.granularity: chunk is not supported with auto-scaling (max_replicas)"},
		{pools + ", " + oneTier + ", transfer: {pipeline: true}",
			"transfer.pipeline: is not supported with kv_tiers of the decode pool"},
		{pools + ", stage_order: both", "stage_order: must be decode-first or prefill-first, is \"both\""},
		{pools + ", stage_order: prefill-first, backpressure: {}", "backpressure: is not supported with stage_order"},
		{pools + ", stage_order: prefill-first, max_replicas: 2", "stage_order: auto-scaling"},
		{pools + ", stage_order: prefill-first, prefill: {max_replicas: 2}", "stage_order: auto-scaling"},
		{pools + ", decider: {type: conditional, new_ratio: 1.5}", "decider.new_ratio: must be between 0 and 1"},
		{pools + ", prefill: {replicas: 0}", "prefill.replicas"},
		{pools + ", prefill: {model: x}", "unknown field \"model\""},
		{pools + ", prefill: {engine: {block_size: 32}}",
			"prefill.engine.block_size: must be that of the decode pool, 16"},
		{pools + ", prefill: {engine: {kv_cache_dtype: fp8}}",
			"must have KV blocks as large as those of the decode pool"},
		{pools + ", prefill: {replicas: 2, max_replicas: 1}", "prefill.max_replicas: must be between replicas, 2, and"},
		{pools + ", prefill: {min_replicas: 1}", "prefill.min_replicas: has no effect without max_replicas"},
		{pools + ", prefill: {kv_tiers: [{tier: cpu, gib: 1}]}", "prefill.kv_tiers[0].load.gb_per_s"},
		{pools + ", " + oneTier + ", prefill: {engine: {enable_prefix_caching: false}}",
			"prefill.kv_tiers: need engine.enable_prefix_caching"},
		{"model: google/gemma-3-12b-it, gpu: H100, architecture: disaggregated", "several KV cache groups"},
		{"model: x, architecture: disaggregated, engine: {num_gpu_blocks_override: 9}, latency: {beta_us: [1, 1, 1]}",
			"engine.kv_bytes_per_block is not in the file: must be set for the transfer between pools"},
	} {
		if _, _, err := parseDeployment(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		}
	}
}

// TestDecider: the given number of tokens is not expected in the cache.
func TestDecider(t *testing.T) {
	prefix := Decider{Type: DeciderPrefix, NonCachedTokens: 100, PromptTokens: 300}
	dynamo := Decider{Type: DeciderConditional, NewTokens: 2048, NewRatio: 0.7}
	for _, c := range []struct {
		decider       Decider
		input, cached int64
		want          bool
	}{
		{prefix, 400, 300, true}, {prefix, 400, 301, false}, {prefix, 299, 0, false}, {prefix, 300, 200, true},
		{Decider{Type: DeciderPrefix}, 1000, 0, false}, {Decider{Type: deciderAlways}, 1, 0, true},
		{Decider{Type: deciderNever}, 1000, 0, false},
		{dynamo, 10000, 7952, true}, {dynamo, 10000, 7953, false}, {dynamo, 100, 30, true}, {dynamo, 100, 31, false},
	} {
		if have := c.decider.Disaggregates(c.input, c.cached); have != c.want {
			t.Errorf("%+v of %d tokens, %d cached: %v", c.decider, c.input, c.cached, have)
		}
	}
}
