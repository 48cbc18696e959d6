package cluster

import (
	"cmp"
	"slices"
	"strings"

	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// EncodePool are replicas that only encode images, audio and video, for the replicas of a deployment and of its prefill
// pool, which then do not: instances of vLLM 0.33 with an ec_transfer_config (vllm/config/ec_transfer.py). What is 0 or
// nil is that of the deployment's engine.
type EncodePool struct {
	Replicas int `yaml:"replicas" json:"replicas"`
	// GPUs is the number of GPUs of a replica.
	GPUs int `yaml:"gpus" json:"gpus"`
	// MaxNumSeqs is the maximum number of items in a batch, MaxNumInputTokens that of their tokens that are encoded,
	// and CacheSize the number of tokens of which a replica keeps the embeddings.
	MaxNumSeqs        int `yaml:"max_num_seqs" json:"max_num_seqs"`
	MaxNumInputTokens int `yaml:"max_num_encoder_input_tokens" json:"max_num_encoder_input_tokens"`
	CacheSize         int `yaml:"encoder_cache_size" json:"encoder_cache_size"`
	// TokenUS is the time to encode a token of an item, and each item adds ItemUS.
	TokenUS *float64 `yaml:"encoder_token_us" json:"encoder_token_us"`
	ItemUS  *float64 `yaml:"encoder_item_us" json:"encoder_item_us"`
	// Routing chooses the replica that encodes an item: least-loaded is the one with the fewest items, and round-robin
	// takes turns.
	Routing  string           `yaml:"routing" json:"routing"`
	Transfer EncoderTransfers `yaml:"transfer" json:"transfer"`
}

// EncoderTransfers are the links from the encode replicas to the replicas of the deployment, one from and one to each,
// which their transfers share evenly. Bandwidths are in 10⁹ bytes a second.
type EncoderTransfers struct {
	LatencyUS int64   `yaml:"latency_us" json:"latency_us"`
	OutGBPerS float64 `yaml:"out_gb_per_s" json:"out_gb_per_s"`
	InGBPerS  float64 `yaml:"in_gb_per_s" json:"in_gb_per_s"`
	// BytesPerToken is the size of the embedding of a token; 0 is Computed.EmbeddingBytes.
	BytesPerToken int64 `yaml:"bytes_per_token" json:"bytes_per_token,omitempty"`
}

// The values of EncodePool.Routing.
const (
	encodeLeastLoaded = "least-loaded"
	EncodeRoundRobin  = "round-robin"
)

// UnmarshalYAML decodes a pool over the defaults. Those of its links are those of PDTransfer.
func (p *EncodePool) UnmarshalYAML(decode func(any) error) error {
	type plain EncodePool
	*p = EncodePool{Replicas: 1, Routing: encodeLeastLoaded, Transfer: EncoderTransfers{
		LatencyUS: defaultTransfer.LatencyUS, OutGBPerS: defaultTransfer.OutGBPerS, InGBPerS: defaultTransfer.InGBPerS}}
	return decode((*plain)(p))
}

// HasEncodePools reports whether any deployment has encode replicas.
func (c *Config) HasEncodePools() bool {
	return slices.ContainsFunc(c.Deployments, func(d Deployment) bool { return d.Encode != nil })
}

// validate returns an error for the first invalid value of d.Encode.
func (p *EncodePool) validate(path string, errorf strictyaml.Errorf) error {
	if p == nil {
		return nil
	}
	path += ".encode"
	if p.Routing != encodeLeastLoaded && p.Routing != EncodeRoundRobin {
		return errorf(path+".routing", "must be %s or %s, is %q", encodeLeastLoaded, EncodeRoundRobin, p.Routing)
	}
	count := strictyaml.Between[int](errorf, path+".")
	if err := cmp.Or(count("replicas", p.Replicas, 1, maxReplicas), count("gpus", p.GPUs, 0, maxGPUs),
		count("max_num_seqs", p.MaxNumSeqs, 0, maxCacheTokens),
		count("max_num_encoder_input_tokens", p.MaxNumInputTokens, 0, maxItemTokens),
		count("encoder_cache_size", p.CacheSize, 0, maxItemTokens)); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		us   *float64
	}{{"encoder_token_us", p.TokenUS}, {"encoder_item_us", p.ItemUS}} {
		if f.us == nil {
			continue
		}
		if err := strictyaml.Between[float64](errorf, path+".")(f.name, *f.us, 0, maxLatencyUS); err != nil {
			return err
		}
	}
	t, bytes := &p.Transfer, strictyaml.Between[int64](errorf, path+".transfer.")
	return cmp.Or(bytes("latency_us", t.LatencyUS, 0, maxLatencyUS),
		bytes("bytes_per_token", t.BytesPerToken, 0, maxCacheTokens),
		checkGBPerS(path+".transfer.out_gb_per_s", t.OutGBPerS, errorf),
		checkGBPerS(path+".transfer.in_gb_per_s", t.InGBPerS, errorf))
}

// encodePool checks whether the encode replicas of d go with the rest of it, and fills in the defaults. It follows
// encoder. A prefill pool has those of its deployment.
func (c *resolver) encodePool(d *Deployment, at string, arch *model.Architecture) error {
	p, e := d.Encode, &d.Engine
	if p == nil {
		return nil
	}
	at = strings.TrimSuffix(at, ".prefill") + ".encode"
	switch {
	case e.MaxTokensPerItem == 0:
		return c.errorf(at, "needs engine.mm_max_tokens_per_item")
	case d.PrefillFirst():
		return c.errorf(at, "is not supported with stage_order: %s", PrefillFirst)
	case d.MaxReplicas > 0:
		return c.errorf(at, "is not supported with max_replicas: neither pool scales")
	case c.energy:
		return c.errorf(at, "is not supported with energy: the power of encoders is not known")
	}
	for _, f := range []struct {
		name string
		size int
	}{{"max_num_encoder_input_tokens", p.MaxNumInputTokens}, {"encoder_cache_size", p.CacheSize}} {
		if f.size != 0 && f.size < e.MaxTokensPerItem {
			return c.errorf(at+"."+f.name, "must be at least engine.mm_max_tokens_per_item = %d, is %d",
				e.MaxTokensPerItem, f.size)
		}
	}
	p.GPUs, p.MaxNumSeqs = cmp.Or(p.GPUs, e.GPUs()), cmp.Or(p.MaxNumSeqs, e.MaxNumSeqs)
	p.MaxNumInputTokens = cmp.Or(p.MaxNumInputTokens, e.MaxNumInputTokens)
	p.CacheSize = cmp.Or(p.CacheSize, e.CacheSize)
	if p.TokenUS == nil {
		us := *e.TokenUS
		p.TokenUS = &us
	}
	if p.ItemUS == nil {
		us := e.ItemUS
		p.ItemUS = &us
	}
	if d.Computed.EmbeddingBytes = p.Transfer.BytesPerToken; d.Computed.EmbeddingBytes != 0 {
		return nil
	}
	if arch == nil {
		return c.errorf(at+".transfer.bytes_per_token", "must be set, since the model is not known")
	}
	d.Computed.EmbeddingBytes = arch.EmbeddingBytes()
	return nil
}

// validateEncodePools checks that encode pools go with the rest of the cluster.
func (c *Config) validateEncodePools(errorf strictyaml.Errorf) error {
	for i := range c.Deployments {
		if c.Deployments[i].Encode != nil && c.Fails() {
			return errorf(deploymentPath(i)+".encode", "is not supported with failures")
		}
	}
	return nil
}
