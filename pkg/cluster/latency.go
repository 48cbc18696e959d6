package cluster

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
)

// latency finds out how long steps take.
func (c *completer) latency(d *Deployment, at string, arch *model.Architecture, gpu *hardware.GPU) error {
	l := &d.Latency
	if l.From != "" {
		if err := c.from(d, at, arch); err != nil {
			return err
		}
	}
	if l.Model == "" {
		switch {
		case l.Table != nil:
			l.Model = "table"
		case l.BetaUS != nil:
			l.Model = "linear"
		}
		if l.Model != "" {
			d.derive("latency.model")
		}
	}
	if l.Model == "" && arch != nil && gpu != nil {
		c.known(d, arch)
	}
	if l.Model == "roofline" {
		if arch == nil || gpu == nil {
			return c.fault(at+".latency", "a roofline cannot be computed: %s", missing(d, arch, gpu))
		}
		if l.AlphaUS == nil {
			l.AlphaUS = []float64{0, 0, 0}
			d.derive("latency.alpha_us")
		}
		if d.Engine.GPUs() > nodeGPUs {
			c.warnf(d, "the roofline takes all %d GPUs as on one node; between nodes exchanges take longer", d.Engine.GPUs())
		}
		d.Computed.Roofline = &latency.Replica{Work: arch.Work(), Machine: machine(d, arch, gpu)}
	}
	if l.Model == "" {
		return c.fault(at+".latency", "must be given, since nothing is measured nor can be computed: %s", missing(d, arch, gpu))
	}
	if l.Range != nil {
		if name, err := l.Range.Check(); err != nil {
			return c.fault(at+".latency.range."+name, "%v", err)
		}
	}
	if _, err := d.LatencyModel(); err != nil {
		return c.fault(at+".latency", "%v", err)
	}
	return nil
}

// nodeGPUs is how many GPUs a node has, but for racks that are one.
const nodeGPUs = 8

// known takes measured coefficients, or the roofline where there are none.
func (c *completer) known(d *Deployment, arch *model.Architecture) {
	e, l := &d.Engine, &d.Latency
	if set := c.measured(d, arch); set != nil {
		c.take(d, set)
		return
	}
	l.Model = "roofline"
	d.derive("latency.model")
	d.derive("latency.source")
	l.Source = "computed: nothing was measured for this model, GPU and parallelism"
	if arch.Overridden() {
		l.Source = "computed: nothing was measured for this dtype, quantization or kv_cache_dtype"
	}
	c.warnf(d, "nothing was measured for %s on %d x %s: step times come from the roofline model, which may be wrong by tens of percent", d.Model, e.GPUs(), d.GPU)
}

// from takes the coefficients of a file.
func (c *completer) from(d *Deployment, at string, arch *model.Architecture) error {
	l, at := &d.Latency, at+".latency.from"
	if l.Model != "" || l.BetaUS != nil || l.Table != nil {
		return c.fault(at, "names coefficients, and model, beta_us and table are some, too: give one of these")
	}
	path := l.From
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.dir, path)
	}
	sets, err := hardware.ReadSets(path, c.hardware...)
	if err != nil {
		return c.fault(at, "%v", err)
	}
	set := c.matching(sets, d, arch)
	if set == nil {
		var have []string
		for _, s := range sets {
			have = append(have, fmt.Sprintf("%s on %s, tensor parallelism %d", s.Model, s.GPU, s.TensorParallelSize))
		}
		if have == nil {
			have = []string{"none"}
		}
		return c.fault(at, "%s has no coefficients for %s on %s, tensor parallelism %d (has %s)", l.From, d.Model, d.GPU, d.Engine.TensorParallelSize, strings.Join(have, "; "))
	}
	c.take(d, set)
	l.Source, l.From = "from "+filepath.Base(path)+": "+set.Source, ""
	d.derive(fromFile)
	return nil
}

// take sets what a set says, but for what the file says itself.
func (c *completer) take(d *Deployment, set *hardware.Set) {
	l := &d.Latency
	alpha := l.AlphaUS
	l.Latency, l.Source = set.Latency, "measured with "+set.Engine
	d.derive("latency.model")
	d.derive("latency.source")
	if l.Table != nil {
		d.derive("latency.table")
	} else {
		d.derive("latency.beta_us")
	}
	if alpha != nil {
		l.AlphaUS = alpha
		l.Source += ", but for alpha_us"
	} else {
		d.derive("latency.alpha_us")
	}
	if l.Range == nil {
		l.Range = &set.Range
		d.derive("latency.range")
	}
	c.warnSettings(d, set)
}

// measured returns the coefficients for just this model as it is stored, GPU and
// parallelism: of several the last, which is the user's own; nil if there are
// none.
func (c *completer) measured(d *Deployment, arch *model.Architecture) *hardware.Set {
	if arch.Overridden() {
		return nil
	}
	return c.matching(c.catalog.Sets(), d, arch)
}

// matching is the last of sets that is of the deployment's model, GPU and parallelism.
func (c *completer) matching(sets []*hardware.Set, d *Deployment, arch *model.Architecture) *hardware.Set {
	e := &d.Engine
	for _, s := range slices.Backward(sets) {
		if s.GPU == d.GPU && s.TensorParallelSize == e.TensorParallelSize && s.PipelineParallelSize == e.PipelineParallelSize &&
			s.DataParallelSize == e.DataParallelSize && isOf(s.Model, d, arch) {
			return s
		}
	}
	return nil
}

// isOf reports whether what was measured by this name is the deployment's model:
// by the name of its architecture, or by its own unless another model has that.
func isOf(name string, d *Deployment, arch *model.Architecture) bool {
	if a, err := model.BuiltIn(name); err == nil && arch != nil {
		return a.Name == arch.Name
	}
	return strings.EqualFold(name, d.Model) || arch != nil && strings.EqualFold(name, arch.Name)
}

// warnSettings says where the engine is not as it was when it was measured.
func (c *completer) warnSettings(d *Deployment, set *hardware.Set) {
	for _, s := range []struct {
		name     string
		measured *bool
		have     bool
	}{
		{"async_scheduling", set.Settings.AsyncScheduling, d.Engine.AsyncScheduling},
		{"enable_prefix_caching", set.Settings.EnablePrefixCaching, d.Engine.EnablePrefixCaching},
	} {
		if s.measured != nil && *s.measured != s.have {
			c.warnf(d, "the coefficients were measured with %s %v, here it is %v", s.name, *s.measured, s.have)
		}
	}
	if v := d.Engine.VLLMVersion; v != "" && !strings.Contains(set.Engine, v) {
		c.warnf(d, "the coefficients were measured with %s, here vllm_version is %s", set.Engine, v)
	}
}

// machine is what a replica runs on.
func machine(d *Deployment, arch *model.Architecture, gpu *hardware.GPU) latency.Machine {
	e := &d.Engine
	return latency.Machine{FLOPS: gpu.FLOPS(arch.ComputePrecision()), AttentionFLOPS: gpu.FLOPS("bf16"), Bandwidth: gpu.MemoryBandwidth(), Link: gpu.LinkBandwidth(),
		TensorParallel: e.TensorParallelSize, PipelineParallel: e.PipelineParallelSize, DataParallel: e.DataParallelSize,
		ExpertParallel: e.MoE != nil && e.MoE.EnableAllToAll, Efficiency: gpu.Efficiency}
}
