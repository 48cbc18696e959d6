package cluster

import (
	"encoding/json"

	"blis/pkg/policy"
)

// searchable are the settings of an engine that a search may change: they need no other hardware and do not change
// what the model answers. Their defaults are those of a deployment, see EngineParams.
var searchable = []policy.Param{
	{Name: "max_num_seqs", Kind: policy.Number, Whole: true, Min: 1, Max: maxCacheTokens, Search: [2]float64{8, 1024},
		Unit: "requests", Doc: "batch slots; at most max_num_batched_tokens"},
	{Name: "max_num_batched_tokens", Kind: policy.Number, Whole: true, Min: 1, Max: maxCacheTokens,
		Search: [2]float64{256, 32768}, Unit: "tokens", Doc: "token budget of a step; at least max_num_seqs"},
	{Name: "enable_chunked_prefill", Kind: policy.Flag, Doc: "a prompt may be computed in several steps"},
	{Name: "long_prefill_token_threshold", Kind: policy.Number, Whole: true, Max: maxCacheTokens,
		Search: [2]float64{0, 8192}, Unit: "tokens", Doc: "maximum that a request prefills in a step; 0 is unlimited"},
	{Name: "enable_prefix_caching", Kind: policy.Flag, Doc: "prompts reuse the KV blocks of equal beginnings"},
	{Name: "block_size", Kind: policy.Number, Whole: true, Min: 1, Max: 65536, Search: [2]float64{8, 128},
		Unit: "tokens", Doc: "tokens of a KV block"},
	{Name: "gpu_memory_utilization", Kind: policy.Number, Min: 1e-6, Max: 1, Search: [2]float64{0.8, 0.95},
		Doc: "share of the GPU's memory that the engine uses"},
	{Name: "reserve_full_sequence", Kind: policy.Flag, Doc: "a request waits until blocks for all its tokens are free"},
	{Name: "watermark", Kind: policy.Number, Max: 0.99, Search: [2]float64{0, 0.1},
		Doc: "share of the KV blocks that stays free when a waiting request is admitted"},
	{Name: "async_scheduling", Kind: policy.Flag, Doc: "the next batch is formed when a step starts"},
}

// EngineParams are the settings of the engine that a search may change, with their present values as defaults.
func (d *Deployment) EngineParams() ([]policy.Param, error) {
	text, err := json.Marshal(d.Engine)
	if err != nil {
		return nil, err
	}
	present := map[string]any{}
	if err := json.Unmarshal(text, &present); err != nil {
		return nil, err
	}
	all := append([]policy.Param{}, searchable...)
	for i := range all {
		all[i].Default = present[all[i].Name]
	}
	return all, nil
}
