package cluster

import (
	"fmt"
	"reflect"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/model"
)

// resolver fills in the values that a cluster file leaves out. In order of
// precedence: --set, the file, the preset of the engine version, the defaults. KV
// blocks are num_gpu_blocks_override or else computed from the memory. Step times
// are those of the file, else measured ones, else sums of measured kernels, else the
// roofline's.
type resolver struct {
	*source
	hardware []string // the user's own files
	catalog  *hardware.Catalog
	warn     func(string)
	energy   bool
}

// deployment resolves d, the deployment at path at.
func (c *resolver) deployment(d *Deployment, at string) error {
	var gpu *hardware.GPU
	if d.GPU != "" {
		g, err := c.catalog.GPU(d.GPU)
		if err != nil {
			return c.errorf(at+".gpu", "%v", err)
		}
		gpu, d.GPU = g, g.ID
	}
	if err := c.preset(d, at, gpu); err != nil {
		return err
	}
	if err := d.Engine.validate(at+".engine", c.errorf); err != nil {
		return err
	}
	arch, err := c.architecture(d, at)
	if err != nil {
		return err
	}
	if err := c.mamba(d, at+".engine", arch, gpu); err != nil {
		return err
	}
	if err := c.batchLimits(d, at+".engine"); err != nil {
		return err
	}
	d.Computed = &Computed{GPUs: d.Engine.GPUs()}
	if arch != nil {
		c.describe(d, arch)
	}
	if err := c.pipeline(d, at, arch); err != nil {
		return err
	}
	if err := c.groupRules(d, at+".engine"); err != nil {
		return err
	}
	if err := c.stateRules(d, at+".engine", arch); err != nil {
		return err
	}
	if err := c.lora(d, at, arch); err != nil {
		return err
	}
	if err := c.blocks(d, at, arch, gpu); err != nil {
		return err
	}
	if err := c.tiers(d, at); err != nil {
		return err
	}
	if err := c.pool(d, at); err != nil {
		return err
	}
	if err := c.speculation(d, at, arch); err != nil {
		return err
	}
	if err := c.encoder(d, at); err != nil {
		return err
	}
	if err := c.encodePool(d, at, arch); err != nil {
		return err
	}
	if err := c.frontDoor(d, at); err != nil {
		return err
	}
	if err := c.structuredOutput(d, at); err != nil {
		return err
	}
	if err := c.dataParallel(d, at, arch); err != nil {
		return err
	}
	if err := c.prefillInterval(d, at); err != nil {
		return err
	}
	if err := c.eplb(d, at, arch); err != nil {
		return err
	}
	if err := c.latency(d, at, arch, gpu); err != nil {
		return err
	}
	c.hops(d, arch, gpu)
	c.power(d, arch, gpu)
	c.warnIneffective(d, arch)
	d.finalizeDerived()
	return nil
}

// preset gives the engine the defaults of its version where nothing else is set.
// Without a version the general defaults stay.
func (c *resolver) preset(d *Deployment, at string, gpu *hardware.GPU) error {
	if d.Engine.Preset != "" {
		preset, isNewer, err := findPreset(d.Engine.Preset)
		if err != nil {
			return c.errorf(at+".engine.preset", "%v", err)
		}
		if isNewer {
			c.warnf(d, "preset %s is newer than all known ones: it has the defaults of %s", d.Engine.Preset,
				preset.Name)
		}
		e := defaultEngine()
		preset.Value.apply(&e, gpu)
		type plain Engine // without the general defaults
		if err := c.doc.DecodeAt(at+".engine", (*plain)(&e)); err != nil {
			return err
		}
		d.Engine, d.Engine.Preset = e, preset.Name
	}
	for _, path := range presetValues {
		if !c.doc.Has(at + "." + path) {
			d.markDerived(path)
		}
	}
	return nil
}

// architecture finds the architecture of the model; nil if the model is unknown
// and the file names no model_config and no precision.
func (c *resolver) architecture(d *Deployment, at string) (*model.Architecture, error) {
	var arch *model.Architecture
	var err error
	if d.ModelConfig != "" {
		if arch, err = c.model(at, d.ModelConfig); err != nil {
			return nil, c.errorf(at+".model_config", "%v", err)
		}
	} else if arch, err = model.BuiltIn(d.Model); err != nil {
		arch = nil
	}
	e := &d.Engine
	if arch == nil {
		for _, f := range []struct{ name, value string }{
			{"dtype", e.DType}, {"quantization", e.Quantization}, {"kv_cache_dtype", e.KVCacheDType},
		} {
			if f.value != "" {
				return nil, c.errorf(at+".model", "%v; engine.%s can only be applied to a known model: for another "+
					"one, set model_config to the path of a config.json", err, f.name)
			}
		}
		return nil, nil
	}
	arch, err = arch.With(model.Overrides{DType: e.DType, Quantization: e.Quantization, KVCacheDType: e.KVCacheDType})
	if err != nil {
		return nil, c.errorf(at+".engine", "%v", err)
	}
	switch {
	case e.MaxModelLen == 0:
		e.MaxModelLen = arch.MaxPositions
		d.markDerived("engine.max_model_len")
	case e.MaxModelLen > arch.MaxPositions:
		c.warnf(d, "max_model_len is %d, but the model supports at most %d tokens: a real vLLM starts only with "+
			"VLLM_ALLOW_LONG_MAX_MODEL_LEN=1", e.MaxModelLen, arch.MaxPositions)
	}
	return arch, c.checkSharding(e, at+".engine", arch)
}

// checkSharding returns an error if the model cannot be sharded as the engine says.
func (c *resolver) checkSharding(e *Engine, at string, arch *model.Architecture) error {
	tp := e.TensorParallelSize
	for _, l := range arch.Layers {
		if t := &l.Attention; !canShard(t, tp) {
			return c.errorf(at+".tensor_parallel_size",
				"must divide the model's %d attention heads, and divide or be a multiple of its %d KV heads, is %d",
				t.Heads, t.KVHeads, tp)
		}
	}
	if layers := arch.Work().Layers; e.PipelineParallelSize > layers {
		return c.errorf(at+".pipeline_parallel_size",
			"must be at most the model's %d layers, is %d", layers, e.PipelineParallelSize)
	}
	return nil
}

// canShard reports whether tp GPUs can share the heads of an attention layer.
func canShard(t *model.Attention, tp int) bool {
	return t.Heads%tp == 0 && (t.MLA != nil || t.KVHeads%tp == 0 || tp%t.KVHeads == 0)
}

// describe fills Computed with the sizes of the model.
func (c *resolver) describe(d *Deployment, arch *model.Architecture) {
	w := arch.Work()
	k := d.Computed
	k.TotalParameters, k.ActiveParameters = arch.TotalParameters(), arch.ActiveParameters()
	k.WeightBytes, k.KVBytesPerToken = arch.WeightBytes(), arch.KVBytesPerToken()
	k.AttentionFLOPs, k.MLPFLOPs = arch.AttentionFLOPs(), arch.MLPFLOPs()
	k.AttentionPairFLOPs = w.PairFLOPs + w.WindowPairFLOPs
	if w.ExpertLayers > 0 {
		k.ExpertParallelSize = d.Engine.TensorParallelSize * d.Engine.DataParallelSize
	}
	k.WindowTokens = w.Window
	if plan := memoryPlan(d, arch, nil).KVPlan(); len(plan.Groups) > 1 || plan.Groups[0].Kind != model.KVFull {
		k.KVGroups = plan.Groups
	}
}

// blocks sizes the KV cache.
func (c *resolver) blocks(d *Deployment, at string, arch *model.Architecture, gpu *hardware.GPU) error {
	e := &d.Engine
	d.Computed.KVBlocks = e.NumGPUBlocksOverride
	if arch == nil || gpu == nil {
		if e.NumGPUBlocksOverride > 0 {
			return nil
		}
		if arch == nil {
			return c.errorf(at+".model", "%s; or set num_gpu_blocks_override and the step times in latency",
				missingInfo(d, nil, gpu))
		}
		return c.errorf(at+".engine.num_gpu_blocks_override",
			"must be set, since the KV blocks cannot be computed from the memory: %s", missingInfo(d, arch, gpu))
	}
	if err := c.checkBlockSize(d, at+".engine", arch); err != nil {
		return err
	}
	p := memoryPlan(d, arch, gpu)
	m := p.Memory()
	d.Computed.Memory = &m
	if m.Blocks < minBlocks {
		return c.doesNotFit(d, at, arch, p, m)
	}
	blocks := min(m.Blocks, int64(maxCacheTokens/e.BlockSize/e.DataParallelSize))
	switch {
	case e.NumGPUBlocksOverride == 0:
		d.Computed.KVBlocks = int(blocks)
	case int64(e.NumGPUBlocksOverride) > m.Blocks:
		c.warnf(d, "num_gpu_blocks_override is %d, but only %d blocks fit: %s", e.NumGPUBlocksOverride, m.Blocks, m)
	}
	return c.longestRequest(d, at, arch, p)
}

// minBlocks is the smallest number of KV blocks: one is the null block.
const minBlocks = 2

// missingInfo says which information is missing and how to provide it.
func missingInfo(d *Deployment, arch *model.Architecture, gpu *hardware.GPU) string {
	var words []string
	if arch == nil {
		_, err := model.BuiltIn(d.Model)
		words = append(words, fmt.Sprintf("%v; set model_config to the path of a config.json", err))
	}
	if gpu == nil {
		words = append(words, "no gpu is set")
	}
	return strings.Join(words, "; ")
}

// warnIneffective reports settings that have no effect.
func (c *resolver) warnIneffective(d *Deployment, arch *model.Architecture) {
	e := &d.Engine
	threshold := max(e.LongPrefillTokenThreshold, e.ChunkSize)
	for _, s := range []struct {
		set       bool
		name, why string
	}{
		{e.SwapSpace > 0, "engine.swap_space", "preempted requests are recomputed"},
		{e.MaxNumPartialPrefills > 1, "engine.max_num_partial_prefills", "vLLM's V1 engine has no such limit"},
		{e.LongPrefillTokenThresholdAdaptive && threshold == 0, "engine.long_prefill_token_threshold_adaptive",
			"long_prefill_token_threshold is 0"},
		{!d.isDerived("engine.long_prefill_token_threshold_lone") && threshold == 0,
			"engine.long_prefill_token_threshold_lone", "long_prefill_token_threshold is 0"},
		{e.MoE != nil && arch != nil && arch.Work().ExpertLayers == 0, "engine.moe", "the model has no experts"},
		{e.MoE != nil && (e.MoE.UseFusedMoEKernel || e.MoE.MoEKernelBackend != ""),
			"the kernel in engine.moe", "kernels are part of the GPU's efficiency"},
		{e.EnableExpertParallel && arch != nil && arch.Work().ExpertLayers == 0, "engine.enable_expert_parallel",
			"the model has no experts"},
		{e.expertParallel() && d.Latency.Model != "roofline" && d.Latency.Model != "operators",
			e.expertParallelName(), "the step times are measured"},
		{e.EnableEPLB && d.Latency.Model != "operators", "engine.enable_eplb",
			"only the operators model knows how tokens choose experts"},
		{d.Latency.Model == "roofline" && d.Latency.BetaUS != nil, "latency.beta_us",
			"the roofline computes step times"},
		{d.Latency.Model == "roofline" && d.Latency.Table != nil, "latency.table", "the roofline computes step times"},
		{d.Latency.Model == "roofline" && d.Latency.Range != nil, "latency.range", "the roofline is not measured"},
		{d.Latency.Model == "operators" && d.Latency.BetaUS != nil, "latency.beta_us",
			"measured kernels have the step times"},
		{d.Latency.Model == "operators" && d.Latency.Table != nil, "latency.table",
			"measured kernels have the step times"},
		{d.Latency.Model != "operators" && e.EnforceEager, d.eagerName(), "only the operators model knows CUDA graphs"},
		{d.Latency.Model == "operators" && e.EnforceEager && d.Latency.Kernels.CUDAGraphMode != "",
			"latency.kernels.cudagraph_mode", "enforce_eager has no CUDA graphs"},
		{d.Latency.Model != "operators" && d.Latency.Kernels != (Kernels{}), "latency.kernels",
			"only the operators model knows kernels"},
		{d.Latency.Model != "operators" && d.Latency.Operators != "", "latency.operators",
			"only the operators model knows kernels"},
		{d.Latency.Model == "table" && d.Latency.BetaUS != nil, "latency.beta_us", "the table has the step times"},
		{d.Latency.Model == "linear" && d.Latency.Table != nil, "latency.table", "the model is linear"},
	} {
		if s.set {
			c.warnf(d, "%s has no effect: %s", s.name, s.why)
		}
	}
	if d.Printed != nil && !reflect.DeepEqual(d.Printed, printed(d.Computed)) {
		c.warnf(d, "computed does not match the rest of the configuration; it is recomputed")
	}
	d.Printed = nil
}

func (c *resolver) warnf(d *Deployment, format string, args ...any) {
	c.warn(fmt.Sprintf("deployment %s: ", d.ID) + fmt.Sprintf(format, args...))
}
