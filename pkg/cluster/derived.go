package cluster

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// Derived says what of a deployment nobody has stated: it follows from what it runs and
// on what. Where that is changed afterwards, in a what-if of a run or in a file that
// --print-config has made, it is derived anew.
type Derived struct {
	// Of is what it follows from, in words; Values are its paths in the deployment.
	Of     string   `yaml:"of" json:"of"`
	Values []string `yaml:"values" json:"values"`
}

// derivable is what may follow from the rest of a deployment, and how it is taken from
// another one. fromFile stands for step times that are of a file of coefficients.
var derivable = registry.Table[func(to, from *Deployment)]{
	{Name: "engine.max_num_seqs", Value: func(to, from *Deployment) { to.Engine.MaxNumSeqs = from.Engine.MaxNumSeqs }},
	{Name: "engine.max_num_batched_tokens", Value: func(to, from *Deployment) { to.Engine.MaxNumBatchedTokens = from.Engine.MaxNumBatchedTokens }},
	{Name: "engine.block_size", Value: func(to, from *Deployment) { to.Engine.BlockSize = from.Engine.BlockSize }},
	{Name: "engine.gpu_memory_utilization", Value: func(to, from *Deployment) { to.Engine.GPUMemoryUtilization = from.Engine.GPUMemoryUtilization }},
	{Name: "engine.enable_chunked_prefill", Value: func(to, from *Deployment) { to.Engine.EnableChunkedPrefill = from.Engine.EnableChunkedPrefill }},
	{Name: "engine.enable_prefix_caching", Value: func(to, from *Deployment) { to.Engine.EnablePrefixCaching = from.Engine.EnablePrefixCaching }},
	{Name: "engine.async_scheduling", Value: func(to, from *Deployment) { to.Engine.AsyncScheduling = from.Engine.AsyncScheduling }},
	{Name: "engine.reserve_full_sequence", Value: func(to, from *Deployment) { to.Engine.ReserveFullSequence = from.Engine.ReserveFullSequence }},
	{Name: "engine.watermark", Value: func(to, from *Deployment) { to.Engine.Watermark = from.Engine.Watermark }},
	{Name: "engine.max_model_len", Value: func(to, from *Deployment) { to.Engine.MaxModelLen = from.Engine.MaxModelLen }},
	{Name: "latency.model", Value: func(to, from *Deployment) { to.Latency.Model = from.Latency.Model }},
	{Name: "latency.alpha_us", Value: func(to, from *Deployment) { to.Latency.AlphaUS = from.Latency.AlphaUS }},
	{Name: "latency.beta_us", Value: func(to, from *Deployment) { to.Latency.BetaUS = from.Latency.BetaUS }},
	{Name: "latency.table", Value: func(to, from *Deployment) { to.Latency.Table = from.Latency.Table }},
	{Name: "latency.source", Value: func(to, from *Deployment) { to.Latency.Source = from.Latency.Source }},
	{Name: "latency.range", Value: func(to, from *Deployment) { to.Latency.Range = from.Latency.Range }},
	{Name: fromFile, Value: func(to, from *Deployment) { to.Latency.From = from.Latency.From }},
}

const fromFile = "latency.from"

// presets are those that the preset of the engine version gives.
var presets = derivable[:9]

// derivedFrom says what derived values of d follow from.
func (d *Deployment) derivedFrom() string {
	e := &d.Engine
	text := fmt.Sprintf("%s on %dx%dx%d", d.Model, e.TensorParallelSize, e.PipelineParallelSize, e.DataParallelSize)
	for _, part := range []struct{ before, value string }{{" ", d.GPU}, {", config ", d.ModelConfig}, {", preset ", e.Preset},
		{", dtype ", e.DType}, {", quantization ", e.Quantization}, {", kv_cache_dtype ", e.KVCacheDType}} {
		if part.value != "" {
			text += part.before + part.value
		}
	}
	return text
}

// derive notes that the value of that path was not stated.
func (d *Deployment) derive(path string) {
	if d.Derived == nil {
		d.Derived = &Derived{}
	}
	d.Derived.Values = append(d.Derived.Values, path)
}

// FromFile reports whether its step times are of a file of coefficients that the user
// named.
func (d *Deployment) FromFile() bool {
	return d.Derived != nil && slices.Contains(d.Derived.Values, fromFile)
}

// settle orders what was derived and says of what it was.
func (d *Deployment) settle() {
	k := d.Derived
	if k == nil {
		return
	}
	all := k.Values
	k.Of, k.Values = d.derivedFrom(), nil
	for _, path := range derivable.Names() {
		if slices.Contains(all, path) {
			k.Values = append(k.Values, path)
		}
	}
	if k.Values == nil {
		d.Derived = nil
	}
}

// forget takes out of the deployments what was derived of something else than they are
// now, or that an override takes the place of.
func (c *Config) forget(by *said) error {
	for i := range c.Deployments {
		d, at := &c.Deployments[i], fmt.Sprintf("deployments[%d].", i)
		if by.by(at[:len(at)-1]) != nil {
			d.Shown = nil // it was computed of what it was before
		}
		if d.Derived == nil {
			continue
		}
		for k, path := range d.Derived.Values {
			if !slices.Contains(derivable.Names(), path) {
				return by.fault(fmt.Sprintf("%sderived.values[%d]", at, k), "%v", registry.Unknown("derived value", path, derivable.Names()))
			}
		}
		if err := d.forget(at, by); err != nil {
			return err
		}
	}
	return nil
}

// forget does so for the deployment whose values are at paths that begin with at.
func (d *Deployment) forget(at string, by *said) error {
	k := d.Derived
	other := k.Of != d.derivedFrom()
	ofFile := slices.Contains(k.Values, fromFile)
	times := by.givesTimes(at, ofFile)
	if other && ofFile && !times {
		return by.fault(at+"latency", "comes from a file of coefficients for %s; for %s set latency.from again, or other step times", k.Of, d.derivedFrom())
	}
	fresh := &Deployment{Engine: defaultEngine()}
	k.Values = slices.DeleteFunc(k.Values, func(path string) bool {
		if by.by(at+path) != nil {
			return true
		}
		stale := other || times && strings.HasPrefix(path, "latency.")
		if stale {
			take, _ := derivable.Get("derived value", path)
			take(d, fresh)
			d.Shown = nil
			by.forgotten = append(by.forgotten, dotted(at+path))
		}
		return stale
	})
	return nil
}

// givesTimes reports whether an override says something of the step times at paths
// that begin with at. Beside coefficients of a file overhead and range may be others.
func (s *said) givesTimes(at string, ofFile bool) bool {
	at = dotted(at + "latency")
	for i := range s.sets {
		switch set := s.sets[i].in(s.config); {
		case !under(set, at) && !under(at, set), under(set, at+".jitter"):
		case ofFile && (under(set, at+".alpha_us") || under(set, at+".range") || under(set, at+".source")):
		default:
			return true
		}
	}
	return false
}
