package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/registry"
	"blis/pkg/strictyaml"
	"blis/pkg/tier"
)

// KVTier is a memory of a replica to which KV blocks are offloaded. Its size is GiB or Blocks.
type KVTier struct {
	// Tier is cpu, the memory of the host, or, below that, storage.
	Tier   string  `yaml:"tier" json:"tier"`
	GiB    float64 `yaml:"gib" json:"gib,omitempty"`
	Blocks int     `yaml:"blocks" json:"blocks,omitempty"`
	// Shared: a storage and its links are one for all replicas of the deployment.
	Shared bool `yaml:"shared" json:"shared,omitempty"`
	// Load is the link to the tier above, the GPUs of the replica for cpu, Store the one from it. Each runs one
	// transfer at a time.
	Load  KVLink `yaml:"load" json:"load"`
	Store KVLink `yaml:"store" json:"store"`
}

// KVLink is the speed of a link: a transfer takes LatencyUS plus its bytes at GBPerS, 10⁹ bytes a second.
type KVLink struct {
	LatencyUS float64 `yaml:"latency_us" json:"latency_us"`
	GBPerS    float64 `yaml:"gb_per_s" json:"gb_per_s"`
}

// KVOffload are the rules for the tiers of a deployment.
type KVOffload struct {
	// Policy says when blocks are stored: eager, at the end of the step that fills them; threshold, at that of the
	// first step of their request in which at least the share Threshold of the cache is in use; or lazy, when the cache
	// gives them to others, whose step waits for it.
	Policy    string  `yaml:"policy" json:"policy"`
	Threshold float64 `yaml:"threshold" json:"threshold,omitempty"`
	// Eviction says which blocks a full tier loses: lru, those of the request that used them least recently; arc,
	// vLLM's adaptive replacement; lfu, those that the fewest requests have used; or priority, those last used by the
	// request of the lowest priority (tier.Evictions).
	Eviction string `yaml:"eviction" json:"eviction"`
	// MinLoadBlocks is the least number of blocks that a request loads.
	MinLoadBlocks int `yaml:"min_load_blocks" json:"min_load_blocks"`
	// Storage says when blocks are copied to the storage: write-through, when they have been stored in the memory of
	// the host; or on-eviction, when that evicts them. It is empty without a storage.
	Storage string `yaml:"storage" json:"storage,omitempty"`
}

// The values of KVTier.Tier, KVOffload.Policy and KVOffload.Storage.
const (
	TierCPU     = "cpu"
	TierStorage = "storage"
	eager       = "eager"
	threshold   = "threshold"
	Lazy        = "lazy"

	writeThrough = "write-through"
	OnEviction   = "on-eviction"
)

// UnmarshalYAML decodes the rules over the defaults.
func (o *KVOffload) UnmarshalYAML(decode func(any) error) error {
	type plain KVOffload
	*o = defaultOffload
	if err := decode((*plain)(o)); err != nil {
		return err
	}
	if o.Policy == threshold && o.Threshold == 0 {
		o.Threshold = defaultThreshold
	}
	return nil
}

const defaultThreshold = 0.9

// UsedShare is the share of the cache's blocks that must be in use for a store.
func (o *KVOffload) UsedShare() float64 {
	if o.Policy != threshold {
		return 0
	}
	return o.Threshold
}

var defaultOffload = KVOffload{Policy: eager, Eviction: tier.Evictions[0], MinLoadBlocks: 1}

// tiers completes and checks the tiers of d, the deployment at path at.
func (c *resolver) tiers(d *Deployment, at string) error {
	if len(d.KVTiers) == 0 {
		if d.KVOffload != nil {
			c.warnf(d, "kv_offload has no effect: there are no kv_tiers")
		}
		if d.Engine.KVBytesPerBlock > 0 && d.Architecture == "" {
			c.warnf(d, "engine.kv_bytes_per_block has no effect: there are no kv_tiers")
		}
		return nil
	}
	if d.KVOffload == nil {
		o := defaultOffload
		d.KVOffload = &o
	}
	if d.KVOffload.Storage == "" && len(d.KVTiers) > 1 {
		d.KVOffload.Storage = writeThrough
	}
	if err := d.KVOffload.validate(at+".kv_offload", c.errorf); err != nil {
		return err
	}
	switch {
	case len(d.KVTiers) > 2:
		return c.errorf(at+".kv_tiers[2]", "is not supported: a deployment can have two tiers, %s and %s", TierCPU,
			TierStorage)
	case len(d.Computed.KVGroups) > 0:
		return c.errorf(at+".kv_tiers", "are not supported for a model with several KV cache groups or with windows")
	case !d.Engine.EnablePrefixCaching:
		return c.errorf(at+".kv_tiers", "need engine.enable_prefix_caching")
	}
	if err := c.blockBytes(d, at, "kv_tiers"); err != nil {
		return err
	}
	k := d.Computed
	for i, blocks := range []*int{&k.KVTierBlocks, &k.KVStorageBlocks}[:len(d.KVTiers)] {
		t, path := &d.KVTiers[i], fmt.Sprintf("%s.kv_tiers[%d]", at, i)
		if err := t.validate(path, []string{TierCPU, TierStorage}[i], c.errorf); err != nil {
			return err
		}
		if *blocks = t.Blocks; t.GiB > 0 {
			*blocks = int(min(t.GiB*(1<<30)/float64(k.KVBlockBytes), maxCacheTokens))
		}
		if *blocks == 0 {
			return c.errorf(path+".gib", "is %g, less than a block of %d bytes", t.GiB, k.KVBlockBytes)
		}
	}
	return c.storage(d, at)
}

// storage checks the storage of d, if it has one.
func (c *resolver) storage(d *Deployment, at string) error {
	path := at + ".kv_tiers[1]"
	switch {
	case len(d.KVTiers) < 2 && d.KVOffload.Storage != "":
		return c.errorf(at+".kv_offload.storage", "needs a tier %s in kv_tiers", TierStorage)
	case len(d.KVTiers) < 2:
		return nil
	case d.KVOffload.Policy == Lazy:
		return c.errorf(path, "is not supported with kv_offload.policy: %s", Lazy)
	case d.Architecture != "":
		return c.errorf(path, "is not supported: replicas of a disaggregated deployment can have one tier, %s", TierCPU)
	case d.Engine.Ranks() > 1:
		return c.errorf(path, "is not supported with engine.data_parallel_size above 1")
	case d.MaxReplicas > 0:
		return c.errorf(path, "is not supported for a deployment that scales (max_replicas)")
	}
	return nil
}

// HasTiers reports whether a deployment or a pool has tiers.
func (c *Config) HasTiers() bool {
	return slices.ContainsFunc(c.Pools(), func(d *Deployment) bool { return len(d.KVTiers) > 0 })
}

// blockBytes computes the size of a KV block for a purpose.
func (c *resolver) blockBytes(d *Deployment, at, purpose string) error {
	k := d.Computed
	if k.KVBlockBytes = d.Engine.KVBytesPerBlock; k.KVBlockBytes == 0 {
		k.KVBlockBytes = k.KVBytesPerToken * int64(d.Engine.BlockSize)
	}
	if k.KVBlockBytes == 0 {
		return c.errorf(at+".engine.kv_bytes_per_block", "must be set for %s, since the model is not known", purpose)
	}
	return nil
}

// maxTierGiB is the largest memory of a replica.
const maxTierGiB = 1 << 20

func (t *KVTier) validate(path, tier string, errorf strictyaml.Errorf) error {
	switch {
	case t.Tier != tier:
		place := map[string]string{TierCPU: "first", TierStorage: "second"}[tier]
		return errorf(path+".tier", "must be %s, the %s tier, is %q", tier, place, t.Tier)
	case t.Shared && tier != TierStorage:
		return errorf(path+".shared", "needs tier: %s", TierStorage)
	case (t.GiB != 0) == (t.Blocks != 0):
		return errorf(path+".gib", "must be set, or blocks, and not both")
	}
	between := strictyaml.Between[float64](errorf, path+".")
	return cmp.Or(
		between("gib", t.GiB, 0, maxTierGiB),
		strictyaml.Between[int](errorf, path+".")("blocks", t.Blocks, 0, maxCacheTokens),
		t.Load.validate(path+".load", errorf), t.Store.validate(path+".store", errorf))
}

func (l *KVLink) validate(path string, errorf strictyaml.Errorf) error {
	return cmp.Or(checkGBPerS(path+".gb_per_s", l.GBPerS, errorf),
		strictyaml.Between[float64](errorf, path+".")("latency_us", l.LatencyUS, 0, maxLatencyUS))
}

func checkGBPerS(path string, gbPerS float64, errorf strictyaml.Errorf) error {
	if !(gbPerS >= MinGBPerS) || gbPerS > MaxGBPerS {
		return errorf(path, "must be at least %g and at most %g, is %g", MinGBPerS, MaxGBPerS, gbPerS)
	}
	return nil
}

// MinGBPerS and MaxGBPerS are the bandwidths of the slowest and the fastest link, in 10⁹ bytes a second. A slower one
// would take longer for some transfers than the clock goes.
const MinGBPerS, MaxGBPerS = 1e-6, 1e6

func (o *KVOffload) validate(path string, errorf strictyaml.Errorf) error {
	switch {
	case o.Policy != eager && o.Policy != threshold && o.Policy != Lazy:
		return errorf(path+".policy", "must be %s, %s or %s, is %q", eager, threshold, Lazy, o.Policy)
	case o.Policy != threshold && o.Threshold != 0:
		return errorf(path+".threshold", "needs policy: %s", threshold)
	case o.Policy == threshold && !(o.Threshold > 0 && o.Threshold <= 1):
		return errorf(path+".threshold", "must be above 0 and at most 1, is %g", o.Threshold)
	case o.Storage != "" && o.Storage != writeThrough && o.Storage != OnEviction:
		return errorf(path+".storage", "must be %s or %s, is %q", writeThrough, OnEviction, o.Storage)
	case !slices.Contains(tier.Evictions, o.Eviction):
		return errorf(path+".eviction", "%v", registry.Unknown("eviction policy", o.Eviction, tier.Evictions))
	}
	if o.Policy == Lazy && o.Eviction != tier.Evictions[0] {
		return errorf(path+".eviction", "must be %s with policy: %s, is %s", tier.Evictions[0], Lazy, o.Eviction)
	}
	return strictyaml.Between[int](errorf, path+".")("min_load_blocks", o.MinLoadBlocks, 1, maxCacheTokens)
}
