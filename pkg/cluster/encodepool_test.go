package cluster

import (
	"strings"
	"testing"
)

// TestEncodePoolErrors: what is not possible is an error that names the field.
func TestEncodePoolErrors(t *testing.T) {
	const items = "mm_max_tokens_per_item: 20, encoder_token_us: 9"
	for _, c := range []struct{ engine, encode, rest, want string }{
		{"", "replicas: 1", "", "deployments[0].encode: needs engine.mm_max_tokens_per_item"},
		{items, "replicas: 0", "", "encode.replicas: must be between 1 and 65536, is 0"},
		{items, "gpus: -1", "", "encode.gpus: must be between 0 and"},
		{items, "max_num_seqs: -1", "", "encode.max_num_seqs: must be between 0 and"},
		{items, "max_num_encoder_input_tokens: 19", "",
			"encode.max_num_encoder_input_tokens: must be at least engine.mm_max_tokens_per_item = 20, is 19"},
		{items, "encoder_cache_size: 19", "",
			"encode.encoder_cache_size: must be at least engine.mm_max_tokens_per_item = 20, is 19"},
		{items, "encoder_token_us: -1", "", "encode.encoder_token_us: must be between 0 and"},
		{items, "encoder_item_us: -1", "", "encode.encoder_item_us: must be between 0 and"},
		{items, "routing: best", "", `encode.routing: must be least-loaded or round-robin, is "best"`},
		{items, "transfer: {latency_us: -1}", "", "encode.transfer.latency_us: must be between 0 and"},
		{items, "transfer: {out_gb_per_s: 0}", "", "encode.transfer.out_gb_per_s: must be"},
		{items, "transfer: {in_gb_per_s: 0}", "", "encode.transfer.in_gb_per_s: must be"},
		{items, "transfer: {bytes_per_token: -1}", "", "encode.transfer.bytes_per_token: must be between 0 and"},
		{items, "replicas: 1", ", max_replicas: 2", "encode: is not supported with max_replicas"},
		{items, "replicas: 1", ", architecture: disaggregated, stage_order: prefill-first",
			"deployments[0].encode: is not supported with stage_order: prefill-first"},
		{items, "replicas: 1", ", architecture: disaggregated, transfer: {granularity: chunk}",
			"transfer.granularity: chunk is not supported with encode replicas"},
		{items, "replicas: 1", ", architecture: disaggregated, prefill: {max_replicas: 2}",
			"deployments[0].encode: is not supported with max_replicas"},
		{items, "replicas: 1", ", architecture: disaggregated, prefill: {kv_tiers: [{tier: cpu, gib: 8, load: " +
			"{latency_us: 1, gb_per_s: 1}, store: {latency_us: 1, gb_per_s: 1}}]}",
			"mm_max_tokens_per_item: is not supported with kv_tiers"},
	} {
		_, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {" + c.engine + "}, encode: {" +
			c.encode + "}" + c.rest)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: error %v, want %q", c.encode, c.rest, err, c.want)
		}
	}
}

// TestEncodePoolDefaults: what is not set is that of the deployment. An embedding has 4096 numbers of 2 bytes, or of 4.
func TestEncodePoolDefaults(t *testing.T) {
	for _, c := range []struct {
		engine, encode    string
		gpus, seqs, cache int
		tokenUS, itemUS   float64
		bytes             int64
	}{
		{"", "{}", 2, 1024, 8192, 9, 3, 8192},
		{", dtype: float32", "{gpus: 1, encoder_token_us: 0, encoder_item_us: 4, max_num_seqs: 5}", 1, 5, 8192, 0, 4,
			16384},
		{"", "{transfer: {bytes_per_token: 7}, encoder_cache_size: 600}", 2, 1024, 600, 9, 3, 7},
	} {
		d, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {preset: vllm-0.33, " +
			"tensor_parallel_size: 2, mm_max_tokens_per_item: 576, encoder_token_us: 9, encoder_item_us: 3" + c.engine +
			"}, encode: " + c.encode)
		if err != nil {
			t.Fatal(err)
		}
		if p := d.Encode; p.Replicas != 1 || p.GPUs != c.gpus || p.MaxNumSeqs != c.seqs || p.CacheSize != c.cache ||
			p.MaxNumInputTokens != 8192 || *p.TokenUS != c.tokenUS || *p.ItemUS != c.itemUS ||
			d.Computed.EmbeddingBytes != c.bytes || p.Routing != "least-loaded" || p.Transfer.LatencyUS != 205 {
			t.Errorf("%s: %+v, %v and %v us, embeddings of %d bytes", c.encode, p, *p.TokenUS, *p.ItemUS,
				d.Computed.EmbeddingBytes)
		}
	}
}
