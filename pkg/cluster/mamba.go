package cluster

import (
	"slices"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/kv"
	"blis/pkg/model"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

// Mamba are the rules for models with layers that have a recurrent state: mamba, gated delta nets and the like.
type Mamba struct {
	// MambaCacheMode says whether prefix caching keeps states: mambaNone or mambaAlign. It follows from
	// EnablePrefixCaching, and EnablePrefixCaching follows from it if only that is not set.
	MambaCacheMode string `yaml:"mamba_cache_mode" json:"mamba_cache_mode"`
	// MambaChunks says where chunks of prompts end if states are kept: one of mambaChunks.
	MambaChunks string `yaml:"mamba_chunks" json:"mamba_chunks"`
	// NumPrefillCheckpointBlocks is the number of states that a chunk writes before its end, 0 or 1.
	NumPrefillCheckpointBlocks int `yaml:"num_prefill_checkpoint_blocks" json:"num_prefill_checkpoint_blocks"`
	// MambaFreshHits says when a request can start after a state that another one computes in this step: in the
	// same step (freshSameStep) or in the next one (FreshNextStep).
	MambaFreshHits string `yaml:"mamba_fresh_hits" json:"mamba_fresh_hits"`
	// MambaRelease says which states a request frees that it no longer needs: all of them (MambaReleaseAll), or
	// the one before the newest and those next to each other (mambaReleaseLast).
	MambaRelease string `yaml:"mamba_release" json:"mamba_release"`
}

// The values of Mamba.MambaCacheMode, Mamba.MambaFreshHits and Mamba.MambaRelease.
const (
	mambaNone        = "none"
	mambaAlign       = "align"
	freshSameStep    = "same-step" // before vLLM 0.19
	FreshNextStep    = "next-step"
	mambaReleaseLast = "last" // before vLLM 0.31
	MambaReleaseAll  = "all"
)

// mambaChunks are the values of Mamba.MambaChunks.
var mambaChunks = registry.Table[kv.StateChunks]{
	{Name: "prompts", Doc: "vLLM 0.15", Value: kv.AlignPrompts},
	{Name: "recomputed", Doc: "vLLM 0.19", Value: kv.AlignRecomputed},
	{Name: "shared", Doc: "vLLM 0.24", Value: kv.AlignShared},
	{Name: "blocks", Doc: "vLLM 0.28", Value: kv.AlignBlocks},
	{Name: "resumable", Doc: "vLLM 0.33", Value: kv.AlignResumable},
}

var defaultMamba = Mamba{MambaCacheMode: mambaNone, MambaChunks: "prompts", MambaFreshHits: freshSameStep,
	MambaRelease: mambaReleaseLast}

// mambaValues are the paths of Mamba in a deployment.
var mambaValues = []string{"engine.mamba_cache_mode", "engine.mamba_chunks", "engine.num_prefill_checkpoint_blocks",
	"engine.mamba_fresh_hits", "engine.mamba_release"}

// validate returns an error for the first invalid value.
func (m *Mamba) validate(path string, errorf strictyaml.Errorf) error {
	if _, err := mambaChunks.Get("value", m.MambaChunks); err != nil {
		return errorf(path+".mamba_chunks", "%v", err)
	}
	switch {
	case m.MambaCacheMode != mambaNone && m.MambaCacheMode != mambaAlign:
		return errorf(path+".mamba_cache_mode", "must be %s or %s, is %q", mambaNone, mambaAlign, m.MambaCacheMode)
	case m.NumPrefillCheckpointBlocks < 0 || m.NumPrefillCheckpointBlocks > 1:
		return errorf(path+".num_prefill_checkpoint_blocks", "must be 0 or 1, is %d", m.NumPrefillCheckpointBlocks)
	case m.MambaFreshHits != freshSameStep && m.MambaFreshHits != FreshNextStep:
		return errorf(path+".mamba_fresh_hits", "must be %s or %s, is %q", freshSameStep, FreshNextStep,
			m.MambaFreshHits)
	case m.MambaRelease != mambaReleaseLast && m.MambaRelease != MambaReleaseAll:
		return errorf(path+".mamba_release", "must be %s or %s, is %q", mambaReleaseLast, MambaReleaseAll,
			m.MambaRelease)
	}
	return nil
}

// gdnUnit is what the tokens of a block are a multiple of if the kernel of a gated delta net writes states within
// a prompt (FLASHINFER_GDN_CHECKPOINT_ALIGNMENT in vllm/v1/attention/backends/gdn_attn.py).
const gdnUnit = 64

// gdnKernels are words in the names of GPUs that have this kernel (_resolve_gdn_prefill_backend in
// vllm/model_executor/layers/mamba/gdn/qwen_gdn_linear_attn.py).
var gdnKernels = []string{"h100", "h200", "h20", "h800", "b200", "b300", "gb10", "rtx-pro-6000"}

// stateKind returns the kind of the layers with a recurrent state, "" if arch has none.
func stateKind(arch *model.Architecture) string {
	if arch != nil {
		for _, l := range arch.KVLayers() {
			if l.Kind == model.KVState {
				return l.State
			}
		}
	}
	return ""
}

// mamba makes the rules for states fit the model and the GPU, and each other.
func (c *resolver) mamba(d *Deployment, at string, arch *model.Architecture, gpu *hardware.GPU) error {
	e, kind := &d.Engine, stateKind(arch)
	if kind == "" {
		return nil
	}
	aligned := e.MambaCacheMode == mambaAlign
	switch {
	case d.isDerived("engine.enable_prefix_caching"):
		e.EnablePrefixCaching = aligned
	case d.isDerived("engine.mamba_cache_mode"):
		if e.MambaCacheMode = mambaNone; e.EnablePrefixCaching {
			e.MambaCacheMode = mambaAlign
		}
	case aligned != e.EnablePrefixCaching:
		return c.errorf(at+".mamba_cache_mode", "must be %s with enable_prefix_caching, and %s without it, is %s",
			mambaAlign, mambaNone, e.MambaCacheMode)
	}
	hasKernel := func(word string) bool { return gpu == nil || isCalled(gpu, word) }
	if d.isDerived("engine.num_prefill_checkpoint_blocks") && (kind == model.KimiDelta ||
		kind == model.GatedDeltaNet && !slices.ContainsFunc(gdnKernels, hasKernel)) {
		e.NumPrefillCheckpointBlocks = 0
	}
	return nil
}

// stateAlignment returns what the tokens of a block of states are a multiple of.
func (e *Engine) stateAlignment(arch *model.Architecture) int {
	if e.NumPrefillCheckpointBlocks > 0 && stateKind(arch) == model.GatedDeltaNet {
		return gdnUnit
	}
	return 1
}

// StateBlock returns the number of tokens in a block of states that are hashed, 0 if there are none.
func (d *Deployment) StateBlock() int {
	for _, g := range d.Computed.KVGroups {
		if g.Kind == model.KVState && d.Engine.EnablePrefixCaching {
			return g.BlockSize
		}
	}
	return 0
}

// StateChunks returns where chunks of prompts end.
func (e *Engine) StateChunks() kv.StateChunks {
	v, _ := mambaChunks.Get("value", e.MambaChunks) // "" only without layers that have states
	return v
}

// stateRules warns of rules for states that have no effect, and returns an error for settings with which vLLM does
// not start (VllmConfig.validate_block_size in vllm/config/vllm.py, MambaModelConfig in
// vllm/model_executor/models/config.py).
func (c *resolver) stateRules(d *Deployment, at string, arch *model.Architecture) error {
	e, size := &d.Engine, d.StateBlock()
	for _, path := range mambaValues {
		switch name := strings.TrimPrefix(path, "engine."); {
		case d.isDerived(path) || size > 0:
		case stateKind(arch) == "":
			c.warnf(d, "engine.%s has no effect: no layers with a recurrent state are known of the model", name)
		case path != mambaValues[0]:
			c.warnf(d, "engine.%s has no effect: mamba_cache_mode is none", name)
		}
	}
	if size == 0 {
		return nil
	}
	switch threshold := max(e.LongPrefillTokenThreshold, e.ChunkSize); {
	case !e.EnableChunkedPrefill:
		return c.errorf(at+".enable_chunked_prefill", "must be true with mamba_cache_mode align")
	case e.StateChunks() >= kv.AlignBlocks:
	case size > e.MaxNumBatchedTokens:
		return c.errorf(at+".max_num_batched_tokens", "must be at least the block size, %d tokens, with "+
			"mamba_cache_mode align before vLLM 0.28, is %d", size, e.MaxNumBatchedTokens)
	case 0 < threshold && threshold < size:
		return c.errorf(at+".long_prefill_token_threshold", "must be at least the block size, %d tokens, or 0, with "+
			"mamba_cache_mode align before vLLM 0.28, is %d", size, threshold)
	}
	return nil
}
