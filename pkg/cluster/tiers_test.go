package cluster

import (
	"strings"
	"testing"
)

const (
	tierLinks = "load: {latency_us: 50, gb_per_s: 25}, store: {gb_per_s: 20}"
	oneTier   = "kv_tiers: [{tier: cpu, gib: 1, " + tierLinks + "}]"
	twoTiers  = "kv_tiers: [{tier: cpu, gib: 1, " + tierLinks + "}, {tier: storage, gib: 9, " + tierLinks + "}]"
)

func TestTierBlocks(t *testing.T) {
	const llama = "model: meta-llama/Llama-3.1-8B, gpu: H100"
	for _, c := range []struct {
		text         string
		bytes, count int64
	}{
		{llama + ", kv_tiers: [{tier: cpu, gib: 64, " + tierLinks + "}]", 2097152, 32768},
		{llama + ", kv_tiers: [{tier: cpu, blocks: 7, " + tierLinks + "}]", 2097152, 7},
		{llama + ", engine: {block_size: 32, kv_cache_dtype: fp8}, " + oneTier, 2097152, 512},
		{llama + ", engine: {kv_bytes_per_block: 1048576}, kv_tiers: [{tier: cpu, gib: 0.5, " + tierLinks + "}]",
			1048576, 512},
	} {
		d, _, err := parseDeployment(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if k := d.Computed; k.KVBlockBytes != c.bytes || int64(k.KVTierBlocks) != c.count {
			t.Errorf("%s: %d blocks of %d bytes, want %d of %d", c.text, k.KVTierBlocks, k.KVBlockBytes, c.count,
				c.bytes)
		}
		if o := d.KVOffload; o == nil || *o != defaultOffload {
			t.Errorf("%s: kv_offload is %+v", c.text, o)
		}
	}
}

func TestTierErrors(t *testing.T) {
	const llama = "model: meta-llama/Llama-3.1-8B, gpu: H100, "
	for _, c := range []struct{ text, want string }{
		{llama + "kv_tiers: [{tier: disk, gib: 1, " + tierLinks + "}]",
			"kv_tiers[0].tier: must be cpu, the first tier, is \"disk\""},
		{llama + "kv_tiers: [{tier: cpu, " + tierLinks + "}]",
			"kv_tiers[0].gib is not in the file: must be set, or blocks, and not both"},
		{llama + "kv_tiers: [{tier: cpu, gib: 1e-6, " + tierLinks + "}]",
			"kv_tiers[0].gib: is 1e-06, less than a block"},
		{llama + "kv_tiers: [{tier: cpu, gib: -1, " + tierLinks + "}]", "kv_tiers[0].gib"},
		{llama + "kv_tiers: [{tier: cpu, gib: 1, store: {gb_per_s: 1}}]",
			"kv_tiers[0].load.gb_per_s is not in the file: must be at least 1e-06"},
		{llama + "kv_tiers: [{tier: cpu, gib: 1, load: {latency_us: -1, gb_per_s: 1}, store: {gb_per_s: 1}}]",
			"kv_tiers[0].load.latency_us"},
		{llama + "kv_tiers: [{tier: cpu, gib: 1, " + tierLinks + "}, {tier: cpu, gib: 1, " + tierLinks + "}]",
			"kv_tiers[1].tier: must be storage, the second tier, is \"cpu\""},
		{llama + "kv_tiers: [{tier: cpu, gib: 1, shared: true, " + tierLinks + "}]",
			"kv_tiers[0].shared: needs tier: storage"},
		{llama + "kv_tiers: [{tier: storage, gib: 1, " + tierLinks + "}]",
			"kv_tiers[0].tier: must be cpu, the first tier, is \"storage\""},
		{llama + "kv_offload: {storage: on-eviction}, " + oneTier,
			"kv_offload.storage: needs a tier storage in kv_tiers"},
		{llama + "kv_offload: {storage: never}, " + twoTiers,
			"kv_offload.storage: must be write-through or on-eviction, is \"never\""},
		{llama + strings.Replace(twoTiers, "gib: 9", "gib: 1e-6", 1), "kv_tiers[1].gib: is 1e-06, less than a block"},
		{llama + strings.TrimSuffix(twoTiers, "]") + ", {tier: storage, gib: 1, " + tierLinks + "}]",
			"kv_tiers[2]: is not supported: a deployment can have two tiers, cpu and storage"},
		{llama + "architecture: disaggregated, prefill: {replicas: 1}, " + twoTiers,
			"kv_tiers[1]: is not supported: replicas of a disaggregated deployment can have one tier, cpu"},
		{llama + "engine: {data_parallel_size: 2}, " + twoTiers,
			"kv_tiers[1]: is not supported with engine.data_parallel_size above 1"},
		{llama + "max_replicas: 3, " + twoTiers, "kv_tiers[1]: is not supported for a deployment that scales"},
		{llama + "kv_offload: {policy: lazily}, kv_tiers: [{tier: cpu, gib: 1, " + tierLinks + "}]",
			"kv_offload.policy: must be eager, threshold or lazy, is \"lazily\""},
		{llama + "kv_offload: {threshold: 0.5}, " + oneTier, "kv_offload.threshold: needs policy: threshold"},
		{llama + "kv_offload: {policy: lazy, threshold: 0.5}, " + oneTier,
			"kv_offload.threshold: needs policy: threshold"},
		{llama + "kv_offload: {policy: lazy, eviction: lfu}, " + oneTier,
			"kv_offload.eviction: must be lru with policy: lazy, is lfu"},
		{llama + "kv_offload: {policy: threshold, threshold: 1.5}, " + oneTier,
			"kv_offload.threshold: must be above 0 and at most 1, is 1.5"},
		{llama + "kv_offload: {eviction: fifo}, kv_tiers: [{tier: cpu, gib: 1, " + tierLinks + "}]",
			"kv_offload.eviction: unknown eviction policy \"fifo\""},
		{llama + "kv_offload: {min_load_blocks: 0}, kv_tiers: [{tier: cpu, gib: 1, " + tierLinks + "}]",
			"kv_offload.min_load_blocks"},
		{llama + "engine: {enable_prefix_caching: false}, kv_tiers: [{tier: cpu, gib: 1, " + tierLinks + "}]",
			"kv_tiers: need engine.enable_prefix_caching"},
		{"model: openai/gpt-oss-20b, gpu: H100, kv_tiers: [{tier: cpu, gib: 1, " + tierLinks + "}]",
			"kv_tiers: are not supported for a model with several KV cache groups"},
		{"model: unknown, engine: {num_gpu_blocks_override: 99}, latency: {beta_us: [1, 1, 1]}, " +
			oneTier, "engine.kv_bytes_per_block is not in the file: must be set"},
	} {
		_, _, err := parseDeployment(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n%v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestStorage: a storage has its own size, and write-through is the default.
func TestStorage(t *testing.T) {
	d, _, err := parseDeployment("model: meta-llama/Llama-3.1-8B, gpu: H100, " + twoTiers)
	if err != nil {
		t.Fatal(err)
	}
	if k := d.Computed; k.KVTierBlocks != 512 || k.KVStorageBlocks != 9*512 || d.KVOffload.Storage != "write-through" {
		t.Errorf("%d and %d blocks, %s", k.KVTierBlocks, k.KVStorageBlocks, d.KVOffload.Storage)
	}
}

// TestStorageWhereReplicasFail: that is refused.
func TestStorageWhereReplicasFail(t *testing.T) {
	_, _, err := parseDeployment("model: meta-llama/Llama-3.1-8B, gpu: H100, "+twoTiers,
		"failures={events: [{at: 1s, kind: down, replica: 0}]}")
	if err == nil || !strings.Contains(err.Error(), "kv_tiers[1]: is not supported where replicas fail") {
		t.Error(err)
	}
}

// TestTierSettingsWithoutTiers: settings of tiers, and policies that read tiers, warn without them.
func TestTierSettingsWithoutTiers(t *testing.T) {
	_, warnings, err := parseDeployment("model: meta-llama/Llama-3.1-8B, gpu: H100, "+
		"engine: {kv_bytes_per_block: 4096}, kv_offload: {min_load_blocks: 2}",
		"policies.routing={type: expression, score: replica.loading}")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(warnings, "\n")
	for _, want := range []string{"kv_offload has no effect", "engine.kv_bytes_per_block has no effect",
		"policies read kv_util_cpu or loading, which are 0"} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning %q in:\n%s", want, all)
		}
	}
	_, warnings, err = parseDeployment("model: meta-llama/Llama-3.1-8B, gpu: H100",
		"policies.routing={type: weighted, params: {tiered-prefix: 1}}")
	if all := strings.Join(warnings, "\n"); err != nil || !strings.Contains(all, "no deployment has kv_tiers") {
		t.Errorf("%v, warnings:\n%s", err, all)
	}
	_, warnings, err = parseDeployment("model: meta-llama/Llama-3.1-8B, gpu: H100",
		"policies.routing={type: weighted, params: {tiered_prefix_cpu: 0.5}}")
	if all := strings.Join(warnings, "\n"); err != nil ||
		!strings.Contains(all, "tiered_prefix_cpu has no effect: the scorer tiered-prefix has no weight") {
		t.Errorf("%v, warnings:\n%s", err, all)
	}
}

// TestEvictionByOnePriority: eviction by priority warns if all requests have one priority.
func TestEvictionByOnePriority(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   bool
	}{{"constant", true}, {"slo-based", false}} {
		const d = "model: meta-llama/Llama-3.1-8B, gpu: H100, kv_offload: {eviction: priority}, "
		_, warnings, err := parseDeployment(d+oneTier, "policies.priority={type: "+c.policy+"}")
		if err != nil {
			t.Fatal(err)
		}
		const warning = "kv_offload.eviction has no effect: every request has priority 0"
		if got := strings.Contains(strings.Join(warnings, "\n"), warning); got != c.want {
			t.Errorf("%s: warnings %q", c.policy, warnings)
		}
	}
}
