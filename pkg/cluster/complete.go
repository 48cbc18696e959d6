package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/model"
)

// completer fills in what a cluster file leaves to follow from the rest. What
// wins: --set, the file, the preset of the engine version, the defaults; for
// blocks num_gpu_blocks_override, else the memory; for step times those of the
// file, else measured ones, else the roofline.
type completer struct {
	catalog *hardware.Catalog
	// dir is the folder of the cluster file, hardware the user's own files.
	dir      string
	hardware []string
	// stated reports whether the file, or who called, says what is at path.
	stated func(path string) bool
	fault  fault
	warn   func(string)
}

// deployment completes d, which stands at path at.
func (c *completer) deployment(d *Deployment, at string) error {
	var gpu *hardware.GPU
	if d.GPU != "" {
		g, err := c.catalog.GPU(d.GPU)
		if err != nil {
			return c.fault(at+".gpu", "%v", err)
		}
		gpu, d.GPU = g, g.ID
	}
	if err := c.preset(d, at, gpu); err != nil {
		return err
	}
	if err := d.Engine.validate(at+".engine", c.fault); err != nil {
		return err
	}
	arch, err := c.architecture(d, at)
	if err != nil {
		return err
	}
	d.Computed = &Computed{GPUs: d.Engine.GPUs()}
	if arch != nil {
		c.describe(d, arch)
	}
	if err := c.blocks(d, at, arch, gpu); err != nil {
		return err
	}
	if err := c.latency(d, at, arch, gpu); err != nil {
		return err
	}
	c.warnIneffective(d, arch)
	d.settle()
	return nil
}

// preset gives the engine the defaults of its version, where nothing is stated; those
// of a version that is not named are there.
func (c *completer) preset(d *Deployment, at string, gpu *hardware.GPU) error {
	from := &Deployment{Engine: defaultEngine()}
	e := &from.Engine
	if d.Engine.Preset != "" {
		of, err := hardware.Presets.Get("preset", d.Engine.Preset)
		if err != nil {
			return c.fault(at+".engine.preset", "%v", err)
		}
		p := of(gpu)
		e.MaxNumSeqs, e.MaxNumBatchedTokens, e.BlockSize, e.GPUMemoryUtilization = p.MaxNumSeqs, p.MaxNumBatchedTokens, p.BlockSize, p.GPUMemoryUtilization
		e.EnableChunkedPrefill, e.EnablePrefixCaching, e.AsyncScheduling = p.EnableChunkedPrefill, p.EnablePrefixCaching, p.AsyncScheduling
		e.ReserveFullSequence, e.Watermark = p.ReserveFullSequence, p.Watermark
	}
	for _, v := range presets {
		if !c.stated(at + "." + v.Name) {
			v.Value(d, from)
			d.derive(v.Name)
		}
	}
	return nil
}

// architecture finds what is known of the model; nil if that is nothing and the
// file does not say that there is something.
func (c *completer) architecture(d *Deployment, at string) (*model.Architecture, error) {
	var arch *model.Architecture
	var err error
	if d.ModelConfig != "" {
		if arch, err = model.Find(d.ModelConfig); err != nil {
			return nil, c.fault(at+".model_config", "%v", err)
		}
	} else if arch, err = model.BuiltIn(d.Model); err != nil {
		arch = nil
	}
	e := &d.Engine
	if arch == nil {
		for _, f := range []struct{ name, value string }{{"dtype", e.DType}, {"quantization", e.Quantization}, {"kv_cache_dtype", e.KVCacheDType}} {
			if f.value != "" {
				return nil, c.fault(at+".engine."+f.name, "says nothing of a model that is not known: %v; model_config can name a config.json", err)
			}
		}
		return nil, nil
	}
	arch, err = arch.With(model.Overrides{DType: e.DType, Quantization: e.Quantization, KVCacheDType: e.KVCacheDType})
	if err != nil {
		return nil, c.fault(at+".engine", "%v", err)
	}
	switch {
	case e.MaxModelLen == 0:
		e.MaxModelLen = arch.MaxPositions
		d.derive("engine.max_model_len")
	case e.MaxModelLen > arch.MaxPositions:
		c.warnf(d, "max_model_len is %d, but the model sees %d tokens at most: a real vLLM would not start", e.MaxModelLen, arch.MaxPositions)
	}
	return arch, c.divides(e, at+".engine", arch)
}

// divides reports whether the model can be cut into as many parts.
func (c *completer) divides(e *Engine, at string, arch *model.Architecture) error {
	tp := e.TensorParallelSize
	for _, l := range arch.Layers {
		if t := &l.Attention; !cuts(t, tp) {
			return c.fault(at+".tensor_parallel_size", "must divide the model's %d attention heads, and its %d KV heads or be a multiple of them, is %d", t.Heads, t.KVHeads, tp)
		}
	}
	if layers := arch.Work().Layers; e.PipelineParallelSize > layers {
		return c.fault(at+".pipeline_parallel_size", "must be at most the model's %d layers, is %d", layers, e.PipelineParallelSize)
	}
	return nil
}

// cuts reports whether tp GPUs can share the heads of an attention.
func cuts(t *model.Attention, tp int) bool {
	return t.Heads%tp == 0 && (t.MLA != nil || t.KVHeads%tp == 0 || tp%t.KVHeads == 0)
}

// describe notes what is known of the model.
func (c *completer) describe(d *Deployment, arch *model.Architecture) {
	w := arch.Work()
	k := d.Computed
	k.TotalParameters, k.ActiveParameters = arch.TotalParameters(), arch.ActiveParameters()
	k.WeightBytes, k.KVBytesPerToken = arch.WeightBytes(), arch.KVBytesPerToken()
	k.AttentionFLOPs, k.MLPFLOPs, k.AttentionPairFLOPs = arch.AttentionFLOPs(), arch.MLPFLOPs(), w.PairFLOPs+w.WindowPairFLOPs
	if w.ExpertLayers > 0 {
		k.ExpertParallelSize = d.Engine.Experts()
	}
	if w.Window > 0 {
		blocks, extra := plan(d, w, nil).Window()
		k.Window = &Window{Tokens: w.Window, Blocks: blocks, ExtraBlocks: extra}
	}
}

// plan is the question what fits into a GPU.
func plan(d *Deployment, w model.Work, gpu *hardware.GPU) model.MemoryPlan {
	e := &d.Engine
	p := model.MemoryPlan{Work: w, Utilization: e.GPUMemoryUtilization,
		TP: e.TensorParallelSize, PP: e.PipelineParallelSize, DP: e.DataParallelSize, BlockSize: e.BlockSize,
		MaxNumSeqs: e.MaxNumSeqs, MaxNumBatchedTokens: e.MaxNumBatchedTokens}
	if gpu != nil {
		p.GPUMemory = int64(gpu.MemoryBytes())
	}
	return p
}

// blocks sizes the KV cache.
func (c *completer) blocks(d *Deployment, at string, arch *model.Architecture, gpu *hardware.GPU) error {
	e := &d.Engine
	d.Computed.KVBlocks = e.NumGPUBlocksOverride
	if arch == nil || gpu == nil {
		if e.NumGPUBlocksOverride > 0 {
			return nil
		}
		return c.fault(at+".engine.num_gpu_blocks_override", "must be given, since the memory cannot be counted: %s", missing(d, arch, gpu))
	}
	p := plan(d, arch.Work(), gpu)
	m := p.Memory()
	d.Computed.Memory = &m
	if m.Blocks == 0 {
		return c.doesNotFit(d, at, arch, p, m)
	}
	blocks := min(m.Blocks, int64(maxCacheTokens/e.BlockSize/e.DataParallelSize))
	switch {
	case e.NumGPUBlocksOverride == 0:
		d.Computed.KVBlocks = int(blocks)
	case int64(e.NumGPUBlocksOverride) > m.Blocks:
		c.warnf(d, "num_gpu_blocks_override is %d, but only %d blocks fit: %s", e.NumGPUBlocksOverride, m.Blocks, m)
	}
	need := (e.MaxModelLen + e.BlockSize - 1) / e.BlockSize
	if w := d.Computed.Window; w != nil {
		need += w.ExtraBlocks * min(need, w.Blocks)
	}
	if have := d.Computed.KVBlocks; need > have {
		c.warnf(d, "a request of max_model_len, %d tokens, takes %d blocks, and there are %d: a real vLLM would not start; requests that do not fit are rejected", e.MaxModelLen, need, have)
	}
	return nil
}

// doesNotFit is the error of a model that is too large, with the least tensor
// parallelism that would do.
func (c *completer) doesNotFit(d *Deployment, at string, arch *model.Architecture, p model.MemoryPlan, m model.Memory) error {
	remedy := "no number of these GPUs holds it"
	for tp := p.TP + 1; tp <= maxRemedy; tp++ {
		p.TP = tp
		if !slices.ContainsFunc(arch.Layers, func(l model.Layers) bool { return !cuts(&l.Attention, tp) }) && p.Memory().Blocks > 0 {
			remedy = fmt.Sprintf("it needs tensor_parallel_size %d", tp)
			break
		}
	}
	return c.fault(at+".gpu", "%s does not fit into %d x %s: of each, %v; %s", d.Model, d.Engine.GPUs(), d.GPU, m, remedy)
}

// maxRemedy is the largest tensor parallelism that is advised.
const maxRemedy = 256

// missing says what would have to be known, and how to say it.
func missing(d *Deployment, arch *model.Architecture, gpu *hardware.GPU) string {
	var words []string
	if arch == nil {
		_, err := model.BuiltIn(d.Model)
		words = append(words, fmt.Sprintf("%v; model_config can name a config.json", err))
	}
	if gpu == nil {
		words = append(words, "no gpu is given")
	}
	return strings.Join(words, "; ")
}

// warnIneffective names what is stated and does nothing.
func (c *completer) warnIneffective(d *Deployment, arch *model.Architecture) {
	e := &d.Engine
	for _, s := range []struct {
		given     bool
		name, why string
	}{
		{e.SwapSpace > 0, "engine.swap_space", "preempted requests are recomputed"},
		{e.MaxNumPartialPrefills > 1, "engine.max_num_partial_prefills", "vLLM's V1 engine has no such bound"},
		{e.MoE != nil && arch != nil && arch.Work().ExpertLayers == 0, "engine.moe", "the model has no experts"},
		{e.MoE != nil && (e.MoE.UseFusedMoEKernel || e.MoE.MoEKernelBackend != ""), "the kernel in engine.moe", "kernels are part of the GPU's efficiency"},
		{e.MoE != nil && e.MoE.EnableAllToAll && d.Latency.Model != "roofline", "engine.moe.enable_all_to_all", "the step times are measured"},
		{d.Latency.Model == "roofline" && d.Latency.BetaUS != nil, "latency.beta_us", "the roofline computes step times"},
		{d.Latency.Model == "roofline" && d.Latency.Table != nil, "latency.table", "the roofline computes step times"},
		{d.Latency.Model == "roofline" && d.Latency.Range != nil, "latency.range", "the roofline is not measured"},
		{d.Latency.Model == "table" && d.Latency.BetaUS != nil, "latency.beta_us", "the table has the step times"},
		{d.Latency.Model == "linear" && d.Latency.Table != nil, "latency.table", "the model is linear"},
	} {
		if s.given {
			c.warnf(d, "%s has no effect: %s", s.name, s.why)
		}
	}
	if d.Shown != nil && !reflect.DeepEqual(d.Shown, asShown(d.Computed)) {
		c.warnf(d, "computed is not what follows from the rest; it is computed anew")
	}
	d.Shown = nil
}

func (c *completer) warnf(d *Deployment, format string, args ...any) {
	c.warn(fmt.Sprintf("deployment %s: ", d.ID) + fmt.Sprintf(format, args...))
}
