package cluster

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

// Derived lists the values of a deployment that were not set: they follow from its
// model, GPU and engine. If one of these changes afterwards, in a what-if of a run
// or in a file that --print-config wrote, they are derived again.
type Derived struct {
	// Of describes what the values follow from; Values are their paths in the deployment.
	Of     string   `yaml:"of" json:"of"`
	Values []string `yaml:"values" json:"values"`
}

// presetValues are the values that the preset of the engine version provides.
var presetValues = []string{
	"engine.max_num_seqs", "engine.max_num_batched_tokens", "engine.block_size", "engine.gpu_memory_utilization",
	"engine.enable_chunked_prefill", "engine.enable_prefix_caching", "engine.async_scheduling",
	"engine.reserve_full_sequence", "engine.watermark", "engine.free_order", "engine.long_prefill_token_threshold_lone",
	"engine.after_self_preemption", "engine.idle_victim_skips_next",
	"engine.prefix_cache_retention_interval", "engine.hashed_blocks", "engine.window_release", "engine.window_reserve",
	"engine.kv_group_ratio", "engine.mamba_cache_mode", "engine.mamba_chunks", "engine.num_prefill_checkpoint_blocks",
	"engine.mamba_fresh_hits", "engine.mamba_release",
}

// derivable are the values that may be derived, in the order of Derived.Values.
// fromFile means that the step times come from a file of coefficients.
var derivable = append(slices.Clone(presetValues), "engine.max_model_len",
	"engine.dp_sync_interval", "latency.model", "latency.alpha_us",
	"latency.beta_us", "latency.table", "latency.source", "latency.range", fromFile)

const fromFile = "latency.from"

// derivedFrom describes what the derived values of d follow from.
func (d *Deployment) derivedFrom() string {
	e := &d.Engine
	text := fmt.Sprintf("%s on %dx%dx%d", d.Model, e.TensorParallelSize, e.PipelineParallelSize, e.DataParallelSize)
	if e.MergeDataParallelRanks {
		text += ", ranks merged"
	}
	for _, part := range []struct{ label, value string }{
		{" ", d.GPU}, {", config ", d.ModelConfig}, {", preset ", e.Preset},
		{", dtype ", e.DType}, {", quantization ", e.Quantization}, {", kv_cache_dtype ", e.KVCacheDType},
	} {
		if part.value != "" {
			text += part.label + part.value
		}
	}
	return text
}

// markDerived notes that the values at these paths were not set.
func (d *Deployment) markDerived(paths ...string) {
	if d.Derived == nil {
		d.Derived = &Derived{}
	}
	d.Derived.Values = append(d.Derived.Values, paths...)
}

// isDerived reports whether the value at path was not set.
func (d *Deployment) isDerived(path string) bool {
	return d.Derived != nil && slices.Contains(d.Derived.Values, path)
}

// FromFile reports whether the step times come from a file of coefficients that the user named.
func (d *Deployment) FromFile() bool { return d.isDerived(fromFile) }

// finalizeDerived sorts the derived values and notes what they follow from.
func (d *Deployment) finalizeDerived() {
	values := slices.DeleteFunc(slices.Clone(derivable), func(path string) bool { return !d.isDerived(path) })
	if d.Derived = nil; len(values) > 0 {
		d.Derived = &Derived{d.derivedFrom(), values}
	}
}

// invalidateDerived removes from the document and from d, the deployment at path at, the derived
// values that no longer apply: what they follow from has changed, or an override sets them.
func (d *Deployment) invalidateDerived(s *source, at string) error {
	if s.doc.SetBy(at) != nil {
		d.Printed = nil // it was computed before the override
	}
	k := d.Derived
	if k == nil {
		return nil
	}
	for i, path := range k.Values {
		if !slices.Contains(derivable, path) {
			return s.errorf(fmt.Sprintf("%s.derived.values[%d]", at, i), "%v",
				registry.Unknown("derived value", path, derivable))
		}
	}
	newTimes := overridesTimes(s.doc, at+".latency.", d.FromFile())
	changed := k.Of != d.derivedFrom()
	if changed && d.FromFile() && !newTimes {
		return s.errorf(at+".latency",
			"comes from a file of coefficients for %s; for %s set latency.from again, or other step times",
			k.Of, d.derivedFrom())
	}
	newBatch := overridesBatch(s.doc, at+".engine.")
	fresh := Deployment{}
	k.Values = slices.DeleteFunc(k.Values, func(path string) bool {
		if s.doc.SetBy(at+"."+path) != nil {
			return true
		}
		stale := changed || newTimes && strings.HasPrefix(path, "latency.") ||
			newBatch && slices.Contains(batchValues, path)
		if stale {
			s.doc.Delete(at + "." + path)
			d.Printed = nil
		}
		return stale
	})
	if err := s.doc.DecodeAt(at, &fresh); err != nil {
		return err
	}
	d.Engine, d.Latency = fresh.Engine, fresh.Latency
	return nil
}

// batchValues are the values that follow from each other where only some of them are set.
var batchValues = []string{"engine.max_num_seqs", "engine.max_num_batched_tokens"}

// overridesBatch reports whether an override changes what batchValues follow from.
func overridesBatch(doc *strictyaml.Doc, at string) bool {
	return slices.ContainsFunc(
		[]string{"max_num_seqs", "max_num_batched_tokens", "max_model_len", "enable_chunked_prefill"},
		func(name string) bool { return doc.SetBy(at+name) != nil })
}

// overridesTimes reports whether an override changes the step times of the latency
// at path at. With coefficients of a file, alpha_us, range and source may differ.
func overridesTimes(doc *strictyaml.Doc, at string, ofFile bool) bool {
	names := []string{"model", "beta_us", "table", "from", "operators"}
	if !ofFile {
		names = append(names, "alpha_us", "range", "source")
	}
	return slices.ContainsFunc(names, func(name string) bool { return doc.SetBy(at+name) != nil })
}
