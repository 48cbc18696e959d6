package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"blis/pkg/hardware"
	"blis/pkg/registry"
)

// Preset is a change of the general defaults of an engine to those of a version, as of
// an API server on a GPU (nil: an unknown one).
type Preset struct {
	since version // the first version with these defaults
	apply func(*Engine, *hardware.GPU)
}

// version is major and minor of a version of vLLM.
type version struct{ major, minor int }

func (v version) before(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// Presets are the versions of vLLM at which defaults or rules change. vLLM before 0.8
// had another scheduler, which no settings reproduce.
//
// Sources: vllm/engine/arg_utils.py (EngineArgs.get_batch_defaults) for batch sizes, which
// depend on the memory of the device and, since 0.9, its name; vllm/config/{scheduler,cache}.py,
// vllm/v1/core/block_pool.py (BlockPool.free_blocks) and vllm/v1/core/sched/scheduler.py
// (Scheduler.schedule) for the rest. From 0.15.1 on, the rules of scheduling were compared with 0.15.1, 0.19.1,
// 0.24.0, 0.28.0, 0.31.0 and 0.33.0 only: a change may be some versions older than its preset.
var Presets = registry.Table[Preset]{
	{Name: "vllm-0.8", Doc: "the first V1 engine; 1024 sequences, 8192 tokens on GPUs of ≥ 70 GiB",
		Value: Preset{version{0, 8}, vllm08}},
	{Name: "vllm-0.11", Doc: "since 0.9: 256 sequences and 2048 tokens on every A100",
		Value: Preset{version{0, 9}, vllm09}},
	{Name: "vllm-0.15", Doc: "since 0.14: asynchronous scheduling", Value: Preset{version{0, 14}, vllm14}},
	{Name: "vllm-0.19", Doc: "admits a request only if all its tokens fit", Value: Preset{version{0, 19}, vllm19}},
	{Name: "vllm-0.20", Doc: "uses 0.92 of the GPU memory", Value: Preset{version{0, 20}, vllm20}},
	{Name: "vllm-0.24", Doc: "uses freed blocks without a hash first; reserves what windows hold",
		Value: Preset{version{0, 24}, vllm24}},
	{Name: "vllm-0.28", Doc: "16384 tokens on GPUs of ≥ 160 GiB; an idle victim skips no request",
		Value: Preset{version{0, 28}, vllm28}},
	{Name: "vllm-0.29", Doc: "hashes blocks of windows only where prompts end or part",
		Value: Preset{version{0, 29}, vllm29}},
	{Name: "vllm-0.31", Doc: "long_prefill_token_threshold spares a lone request",
		Value: Preset{version{0, 31}, vllm31}},
	{Name: "vllm-0.33", Doc: "a request that preempts itself ends no step; small batches on GB10",
		Value: Preset{version{0, 33}, vllm33}},
}

// latestPreset names the newest of Presets.
const latestPreset = "latest"

var presetVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^vllm-(\d{1,4})\.(\d{1,4})(\.\d+)?$`)
})

// findPreset returns the preset of a version with its name: one of Presets, which need not be
// listed, or latestPreset. A version that is not listed has the defaults of the last one before
// it. isNewer reports whether it is newer than all that are listed.
func findPreset(name string) (entry registry.Entry[Preset], isNewer bool, err error) {
	newest := Presets[len(Presets)-1]
	if name == latestPreset {
		return newest, false, nil
	}
	if _, err := Presets.Get("preset", name); err != nil && !presetVersion().MatchString(name) {
		return entry, false, fmt.Errorf("%w, %s, or any other version such as vllm-0.25", err, latestPreset)
	}
	wanted := versionOf(name)
	if wanted.before(Presets[0].Value.since) {
		return entry, false, fmt.Errorf("%s is too old: the oldest preset is %s, with which the V1 engine begins", name,
			Presets[0].Name)
	}
	for _, p := range Presets {
		if !wanted.before(p.Value.since) {
			entry = p
		}
	}
	return entry, newest.Value.since.before(wanted), nil
}

// versionOf returns the version in the name of a preset.
func versionOf(name string) version {
	parts := presetVersion().FindStringSubmatch(name)
	major, _ := strconv.Atoi(parts[1]) // digits
	minor, _ := strconv.Atoi(parts[2])
	return version{major, minor}
}

// smallGroupRatio is the kv_group_ratio before 0.19.
const smallGroupRatio = 1.25

// GPUs of these memories have larger batches.
const (
	largeGiB     = 70
	veryLargeGiB = 160
)

// isCalled reports whether the name of g has this word.
func isCalled(g *hardware.GPU, word string) bool {
	return g != nil && strings.Contains(strings.ToLower(g.ID+" "+g.Name), word)
}

func vllm08(e *Engine, g *hardware.GPU) {
	if g != nil && g.MemoryGiB >= largeGiB {
		e.MaxNumSeqs, e.MaxNumBatchedTokens = 1024, 8192
	}
	e.IdleVictimSkipsNext, e.KVGroupRatio = true, smallGroupRatio
}

func vllm09(e *Engine, g *hardware.GPU) {
	if isCalled(g, "a100") {
		g = nil
	}
	vllm08(e, g)
}

func vllm14(e *Engine, g *hardware.GPU) {
	vllm09(e, g)
	e.AsyncScheduling = true
}

func vllm19(e *Engine, g *hardware.GPU) {
	vllm14(e, g)
	e.ReserveFullSequence, e.KVGroupRatio = true, defaultGroups.KVGroupRatio
	e.MambaChunks, e.MambaFreshHits = "recomputed", FreshNextStep
}

func vllm20(e *Engine, g *hardware.GPU) {
	vllm19(e, g)
	e.GPUMemoryUtilization = 0.92
}

func vllm24(e *Engine, g *hardware.GPU) {
	vllm20(e, g)
	e.FreeOrder, e.HashedBlocks, e.WindowReserve = UnhashedFirst, hashReachable, ReserveWindow
	e.MambaChunks = "shared"
}

func vllm28(e *Engine, g *hardware.GPU) {
	vllm24(e, g)
	if g != nil && g.MemoryGiB >= veryLargeGiB {
		e.MaxNumBatchedTokens = 16384
	}
	e.IdleVictimSkipsNext, e.WindowRelease = false, ReleaseComputed
	e.MambaCacheMode, e.MambaChunks = mambaAlign, "blocks"
}

func vllm29(e *Engine, g *hardware.GPU) {
	vllm28(e, g)
	e.PrefixCacheRetentionInterval = 0
}

func vllm31(e *Engine, g *hardware.GPU) {
	vllm29(e, g)
	e.LongPrefillTokenThresholdLone, e.MambaRelease = false, MambaReleaseAll
}

func vllm33(e *Engine, g *hardware.GPU) {
	if isCalled(g, "gb10") {
		g = nil
	}
	vllm31(e, g)
	e.AfterSelfPreemption, e.MambaChunks, e.NumPrefillCheckpointBlocks = ContinueScheduling, "resumable", 1
}

// warnOfRules warns that a feature has one set of rules, those of vLLM 0.33, if the engine has another preset.
func (c *resolver) warnOfRules(d *Deployment, feature string) {
	if p := d.Engine.Preset; p != "" && !strings.HasPrefix(p, "vllm-0.33") {
		c.warnf(d, "%s follows the rules of vLLM 0.33, not those of %s", feature, p)
	}
}
