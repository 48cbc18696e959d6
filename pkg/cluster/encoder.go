package cluster

import (
	"cmp"

	"blis/pkg/strictyaml"
)

// Encoder is the encoder of images, audio and video. MaxNumInputTokens, CacheSize and DisableChunkedInput have the
// names of vLLM 0.33 (vllm/config/scheduler.py). Its rules are those of that version, whatever the preset.
type Encoder struct {
	// MaxTokensPerItem is the maximum number of tokens that an image, an audio clip or a video has in a prompt, as
	// vLLM's mm_max_toks_per_item; 0: the deployment serves none.
	MaxTokensPerItem int `yaml:"mm_max_tokens_per_item" json:"mm_max_tokens_per_item,omitempty"`
	// MaxNumInputTokens is the maximum number of their tokens that a step encodes, CacheSize the number of which the
	// embeddings are kept. 0 is max_num_batched_tokens, or MaxTokensPerItem if that is more
	// (compute_mm_encoder_budget in vllm/v1/core/encoder_cache_manager.py).
	MaxNumInputTokens int `yaml:"max_num_encoder_input_tokens" json:"max_num_encoder_input_tokens,omitempty"`
	CacheSize         int `yaml:"encoder_cache_size" json:"encoder_cache_size,omitempty"`
	// DisableChunkedInput computes all tokens of an item in one step.
	DisableChunkedInput bool `yaml:"disable_chunked_mm_input" json:"disable_chunked_mm_input,omitempty"`
	// TokenUS is the time to encode a token of an item, and each item adds ItemUS.
	TokenUS *float64 `yaml:"encoder_token_us" json:"encoder_token_us,omitempty"`
	ItemUS  float64  `yaml:"encoder_item_us" json:"encoder_item_us,omitempty"`
}

// maxItemTokens bounds the tokens of an item and the sizes of the encoder.
const maxItemTokens = 1 << 24

// validate returns an error for the first invalid value.
func (x *Encoder) validate(path string, errorf strictyaml.Errorf) error {
	if x.MaxTokensPerItem == 0 {
		return unset(path, "mm_max_tokens_per_item", errorf,
			setting{"max_num_encoder_input_tokens", x.MaxNumInputTokens != 0},
			setting{"encoder_cache_size", x.CacheSize != 0}, setting{"disable_chunked_mm_input", x.DisableChunkedInput},
			setting{"encoder_token_us", x.TokenUS != nil}, setting{"encoder_item_us", x.ItemUS != 0})
	}
	if err := strictyaml.Between[int](errorf, path+".")("mm_max_tokens_per_item", x.MaxTokensPerItem, 1,
		maxItemTokens); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		size int
	}{{"max_num_encoder_input_tokens", x.MaxNumInputTokens}, {"encoder_cache_size", x.CacheSize}} {
		switch {
		case f.size != 0 && f.size < x.MaxTokensPerItem:
			return errorf(path+"."+f.name, "must be at least mm_max_tokens_per_item = %d, is %d", x.MaxTokensPerItem,
				f.size)
		case f.size > maxItemTokens:
			return errorf(path+"."+f.name, "must be at most %d, is %d", maxItemTokens, f.size)
		}
	}
	if x.TokenUS == nil {
		return errorf(path+".encoder_token_us", "must be set with mm_max_tokens_per_item: the time to encode a token")
	}
	between := strictyaml.Between[float64](errorf, path+".")
	return cmp.Or(between("encoder_token_us", *x.TokenUS, 0, maxLatencyUS),
		between("encoder_item_us", x.ItemUS, 0, maxLatencyUS))
}

// encoder checks whether an encoder goes with the rest of a deployment, and fills in the defaults.
func (c *resolver) encoder(d *Deployment, at string) error {
	e := &d.Engine
	x := &e.Encoder
	if x.MaxTokensPerItem == 0 {
		return nil
	}
	at += ".engine."
	field := at + "mm_max_tokens_per_item"
	switch {
	case len(d.KVTiers) > 0:
		return c.errorf(field, "is not supported with kv_tiers")
	case d.Architecture != "" && d.Encode == nil: // a pool, too
		return c.errorf(field, "is not supported for a disaggregated deployment without encode replicas")
	case e.DataParallelSize > 1:
		return c.errorf(field, "is not supported with data_parallel_size above 1, since each rank has its own encoder")
	case e.PipelineParallelSize > 1:
		return c.errorf(field, "is not supported with pipeline_parallel_size above 1")
	case e.SpeculativeConfig != nil:
		return c.errorf(field, "is not supported with speculative_config")
	case e.MaxLoras > 0:
		return c.errorf(field, "is not supported with max_loras")
	case d.StateBlock() > 0:
		return c.errorf(field, "is not supported for models with recurrent states")
	}
	if limit := e.LongPrefillTokenThreshold; x.DisableChunkedInput && limit > 0 && limit < x.MaxTokensPerItem {
		return c.errorf(at+"disable_chunked_mm_input", "needs a long_prefill_token_threshold of at least "+
			"mm_max_tokens_per_item = %d, is %d: larger items could never be computed", x.MaxTokensPerItem, limit)
	}
	if x.DisableChunkedInput && e.MaxNumBatchedTokens < x.MaxTokensPerItem {
		return c.errorf(at+"disable_chunked_mm_input", "needs max_num_batched_tokens of at least "+
			"mm_max_tokens_per_item = %d, is %d", x.MaxTokensPerItem, e.MaxNumBatchedTokens)
	}
	c.warnOfRules(d, "the encoder")
	most := max(e.MaxNumBatchedTokens, x.MaxTokensPerItem)
	x.MaxNumInputTokens, x.CacheSize = cmp.Or(x.MaxNumInputTokens, most), cmp.Or(x.CacheSize, most)
	return nil
}
