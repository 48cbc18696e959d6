package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/operators"
)

// latency resolves the latency model and its coefficients.
func (c *resolver) latency(d *Deployment, at string, arch *model.Architecture, gpu *hardware.GPU) error {
	l := &d.Latency
	if l.From != "" {
		if err := c.useCoefficientFile(d, at, arch); err != nil {
			return err
		}
	}
	if err := l.Kernels.check(at+".latency.kernels", c.errorf); err != nil {
		return err
	}
	if l.Model == "" && (l.Table != nil || l.BetaUS != nil || l.Factors != nil) {
		switch l.Model = "linear"; {
		case l.Table != nil:
			l.Model = "table"
		case l.Factors != nil:
			l.Model = "operators"
		}
		d.markDerived("latency.model")
	}
	if l.Factors != nil && l.Model != "operators" {
		return c.errorf(at+".latency.factors", "must not be set with the model %s: factors adjust operators", l.Model)
	}
	if l.Model == "" && arch != nil && gpu != nil {
		if err := c.chooseModel(d, at, arch, gpu); err != nil {
			return err
		}
	}
	if l.Model == "roofline" {
		if arch == nil || gpu == nil {
			return c.errorf(at+".latency", "the roofline cannot be computed: %s", missingInfo(d, arch, gpu))
		}
		if l.AlphaUS == nil {
			l.AlphaUS = []float64{0, 0, 0}
			d.markDerived("latency.alpha_us")
		}
		if d.Engine.GPUs() > nodeGPUs {
			c.warnf(d, "the roofline assumes that all %d GPUs are in one node; "+
				"communication between nodes takes longer", d.Engine.GPUs())
		}
		d.Computed.Roofline = &latency.Replica{Work: arch.Work(), Machine: machine(d, arch, gpu)}
	}
	if l.Model == "operators" && d.Computed.Operators == nil {
		if err := c.operators(d, at, arch, gpu); err != nil {
			return c.errorf(at+".latency", "%v", err)
		}
	}
	if l.Model == "" {
		return c.errorf(at+".latency",
			"must be set, since there is no measurement and no roofline: %s", missingInfo(d, arch, gpu))
	}
	if l.Range != nil {
		if name, err := l.Range.Check(); err != nil {
			return c.errorf(at+".latency.range."+name, "%v", err)
		}
	}
	if _, err := d.LatencyModel(); err != nil {
		return c.errorf(at+".latency", "%v", err)
	}
	return nil
}

// nodeGPUs is the number of GPUs of a node, except for rack-scale nodes.
const nodeGPUs = 8

// chooseModel uses measured coefficients or, if there are none, measured kernels or, if there are none of
// the GPU, the roofline. Tables of kernels that the user names come before measured coefficients.
func (c *resolver) chooseModel(d *Deployment, at string, arch *model.Architecture, gpu *hardware.GPU) error {
	e, l := &d.Engine, &d.Latency
	named := l.Operators != ""
	if !arch.Overridden() && !named { // coefficients are for exactly this model as stored
		if set := matching(c.catalog.Sets(), d, arch); set != nil {
			c.useCoefficients(d, set)
			return nil
		}
	}
	d.markDerived("latency.model")
	err := c.operators(d, at, arch, gpu)
	switch {
	case err == nil:
		l.Model = "operators"
		if !named {
			c.warnf(d, "nothing was measured for %s on %d x %s: step times are sums of kernels measured on %s, "+
				"which may be wrong by 5 to 20 percent", d.Model, e.GPUs(), d.GPU, d.Computed.Operators.System)
		}
		return nil
	case named || !errors.Is(err, operators.ErrNone):
		return c.errorf(at+".latency", "%v", err)
	}
	l.Model = "roofline"
	if l.Source == "" {
		l.Source = "computed: nothing was measured for this model, GPU and parallelism, and " + err.Error()
		d.markDerived("latency.source")
	}
	c.warnf(d, "nothing was measured for %s on %d x %s, and %v: "+
		"step times come from the roofline model, which may be wrong by tens of percent", d.Model, e.GPUs(), d.GPU, err)
	return nil
}

// useCoefficientFile uses the coefficients of the file latency.from.
func (c *resolver) useCoefficientFile(d *Deployment, at string, arch *model.Architecture) error {
	l, at := &d.Latency, at+".latency.from"
	if l.Model != "" || l.BetaUS != nil || l.Table != nil || l.Factors != nil {
		return c.errorf(at, "cannot be combined with model, beta_us, table or factors; set only one of them")
	}
	path, err := c.path(at, l.From)
	if err != nil {
		return c.errorf(at, "%v", err)
	}
	set, err := d.ReadCoefficients(path, arch, c.hardware...)
	if err != nil {
		return c.errorf(at, "%v", err)
	}
	c.useCoefficients(d, set)
	l.Source, l.From = "from "+filepath.Base(path)+": "+set.Source, ""
	d.markDerived(fromFile)
	return nil
}

// ReadCoefficients reads those of a file for the deployment, whose model has an architecture; nil if
// that is unknown. gpus are files of the user's own GPUs.
func (d *Deployment) ReadCoefficients(path string, arch *model.Architecture, gpus ...string) (*hardware.Set, error) {
	sets, err := hardware.ReadSets(path, gpus...)
	if err != nil {
		return nil, err
	}
	set := matching(sets, d, arch)
	if set == nil {
		var have []string
		for _, s := range sets {
			have = append(have, s.Key.String())
		}
		return nil, fmt.Errorf("%s: has no coefficients for %s (has %s)", path, d.Key(),
			cmp.Or(strings.Join(have, "; "), "none"))
	}
	return set, nil
}

// useCoefficients uses a set of coefficients, except for values that the file sets.
func (c *resolver) useCoefficients(d *Deployment, set *hardware.Set) {
	l := &d.Latency
	alpha := l.AlphaUS
	l.Latency, l.Source, l.Uncertainty = set.Latency, set.Source, set.Uncertainty // of a fit: its recordings
	if set.Engine != "" {
		l.Source = "measured with " + set.Engine
	}
	d.markDerived("latency.model", "latency.source")
	switch {
	case l.Table != nil:
		d.markDerived("latency.table")
	case l.Factors != nil:
		d.markDerived("latency.factors")
	default:
		d.markDerived("latency.beta_us")
	}
	if alpha != nil {
		l.AlphaUS, l.Uncertainty.AlphaUS = alpha, nil
		l.Source += ", but for alpha_us"
	} else {
		d.markDerived("latency.alpha_us")
	}
	if l.Range == nil {
		l.Range = &set.Range
		d.markDerived("latency.range")
	}
	c.warnSettings(d, set)
}

// Key returns what coefficients for the deployment are for.
func (d *Deployment) Key() hardware.Key {
	e := &d.Engine
	return hardware.Key{Model: d.Model, GPU: d.GPU, TensorParallelSize: e.TensorParallelSize,
		PipelineParallelSize: e.PipelineParallelSize, DataParallelSize: e.DataParallelSize}
}

// matching returns the last of sets for the deployment's model, GPU and parallelism, nil if
// there is none. So the user's own come first.
func matching(sets []*hardware.Set, d *Deployment, arch *model.Architecture) *hardware.Set {
	key := d.Key()
	for _, s := range slices.Backward(sets) {
		if key.Model = s.Model; s.Key == key && isModel(s.Model, d, arch) { // isModel compares the models
			return s
		}
	}
	return nil
}

// isModel reports whether coefficients measured under this name are for the deployment's model: by
// the name of its architecture or, unless that is another known model, by its own name.
func isModel(name string, d *Deployment, arch *model.Architecture) bool {
	if a, err := model.BuiltIn(name); err == nil && arch != nil {
		return a.Name == arch.Name
	}
	return strings.EqualFold(name, d.Model) || arch != nil && strings.EqualFold(name, arch.Name)
}

// warnSettings reports where the engine differs from the measured one.
func (c *resolver) warnSettings(d *Deployment, set *hardware.Set) {
	compare := func(name string, measured *bool, have bool) {
		if measured != nil && *measured != have {
			c.warnf(d, "the coefficients were measured with %s %v, here it is %v", name, *measured, have)
		}
	}
	compare("async_scheduling", set.Settings.AsyncScheduling, d.Engine.AsyncScheduling)
	compare("enable_prefix_caching", set.Settings.EnablePrefixCaching, d.Engine.EnablePrefixCaching)
	if v := d.Engine.VLLMVersion; v != "" && !strings.Contains(set.Engine, v) {
		c.warnf(d, "the coefficients were measured with %s, here vllm_version is %s", set.Engine, v)
	}
}

// machine returns the hardware that a replica runs on.
func machine(d *Deployment, arch *model.Architecture, gpu *hardware.GPU) latency.Machine {
	e := &d.Engine
	return latency.Machine{
		FLOPS:            gpu.FLOPS(arch.ComputePrecision()),
		AttentionFLOPS:   gpu.FLOPS("bf16"),
		Bandwidth:        gpu.MemoryBandwidth(),
		Link:             gpu.LinkBandwidth(),
		SharedLink:       gpu.Link == "pcie",
		TensorParallel:   e.TensorParallelSize,
		PipelineParallel: e.PipelineParallelSize,
		DataParallel:     e.DataParallelSize,
		ExpertParallel:   e.expertParallel(),
		Efficiency:       gpu.Efficiency,
	}
}
