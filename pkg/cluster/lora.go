package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// LoRA is the use of LoRA adapters. MaxLoras and MaxCPULoras have the names of vLLM 0.33 (vllm/config/lora.py). Its
// rules are those of that version, whatever the preset.
type LoRA struct {
	// MaxLoras is the maximum number of adapters of the running requests, and of those on the GPU; 0: the deployment
	// serves no adapters. MaxCPULoras is the maximum number in the memory of the host, which include those on the GPU;
	// 0 is MaxLoras.
	MaxLoras    int `yaml:"max_loras" json:"max_loras,omitempty"`
	MaxCPULoras int `yaml:"max_cpu_loras" json:"max_cpu_loras,omitempty"`
	// MaxRank is the highest rank of the adapters, for which each slot on the GPU has memory; 0 is vLLM's default, 16.
	MaxRank int `yaml:"max_lora_rank" json:"max_lora_rank,omitempty"`
	// LoadUS is how long a step waits for an adapter that is not in the memory of the host, and CopyUS for one that is
	// not on the GPU.
	LoadUS *float64 `yaml:"lora_load_us" json:"lora_load_us,omitempty"`
	CopyUS *float64 `yaml:"lora_copy_us" json:"lora_copy_us,omitempty"`
	// StepFactor multiplies the time of a step in which a request has an adapter, and each adapter in it adds
	// AdapterUS.
	StepFactor *float64 `yaml:"lora_step_factor" json:"lora_step_factor,omitempty"`
	AdapterUS  float64  `yaml:"lora_adapter_us" json:"lora_adapter_us,omitempty"`
}

// copyUS is the time to copy an adapter from the memory of the host to an H100 with Llama-3.1-8B. It is that of many
// short copies, with ranks 8, 16 and 32 alike (vLLM 0.8.5; digital_twin_dynamic/estimators/predictor_loading in
// FerranAgulloLopez/GPULLMAdapterOptimization).
const copyUS = 6400

// loraRanks are the values of max_lora_rank (MaxLoRARanks in vllm/config/lora.py, v0.33.0).
var loraRanks = [...]int{1, 8, 16, 32, 64, 128, 256, 320, 512}

const defaultRank = 16

const (
	maxLoras      = 1 << 16
	maxLoRAFactor = 100
)

// validate returns an error for the first invalid value.
func (l *LoRA) validate(path string, errorf strictyaml.Errorf) error {
	if l.MaxLoras == 0 {
		return unset(path, "max_loras", errorf, setting{"max_cpu_loras", l.MaxCPULoras != 0},
			setting{"max_lora_rank", l.MaxRank != 0}, setting{"lora_load_us", l.LoadUS != nil},
			setting{"lora_copy_us", l.CopyUS != nil}, setting{"lora_step_factor", l.StepFactor != nil},
			setting{"lora_adapter_us", l.AdapterUS != 0})
	}
	if err := strictyaml.Between[int](errorf, path+".")("max_loras", l.MaxLoras, 1, maxLoras); err != nil {
		return err
	}
	switch {
	case l.MaxCPULoras != 0 && l.MaxCPULoras < l.MaxLoras:
		return errorf(path+".max_cpu_loras", "must be at least max_loras = %d, is %d", l.MaxLoras, l.MaxCPULoras)
	case l.MaxRank != 0 && !slices.Contains(loraRanks[:], l.MaxRank):
		return errorf(path+".max_lora_rank", "must be one of %s, is %d",
			strings.Trim(strings.ReplaceAll(fmt.Sprint(loraRanks), " ", ", "), "[]"), l.MaxRank)
	case l.LoadUS == nil:
		return errorf(path+".lora_load_us",
			"must be set with max_loras: the time to read an adapter into the memory of the host")
	case l.StepFactor == nil:
		return errorf(path+".lora_step_factor", "must be set with max_loras: what adapters multiply step times by")
	}
	between := strictyaml.Between[float64](errorf, path+".")
	if l.CopyUS != nil {
		if err := between("lora_copy_us", *l.CopyUS, 0, maxLatencyUS); err != nil {
			return err
		}
	}
	return cmp.Or(
		strictyaml.Between[int](errorf, path+".")("max_cpu_loras", l.MaxCPULoras, 0, maxLoras),
		between("lora_load_us", *l.LoadUS, 0, maxLatencyUS),
		between("lora_step_factor", *l.StepFactor, 1, maxLoRAFactor),
		between("lora_adapter_us", l.AdapterUS, 0, maxLatencyUS))
}

// lora checks whether adapters go with the rest of a deployment, and fills in the defaults.
func (c *resolver) lora(d *Deployment, at string, arch *model.Architecture) error {
	l := &d.Engine.LoRA
	if l.MaxLoras == 0 {
		return nil
	}
	at += ".engine.max_loras"
	switch {
	case len(d.KVTiers) > 0:
		return c.errorf(at, "is not supported with kv_tiers")
	case d.Architecture != "": // a pool, too
		return c.errorf(at, "is not supported for a disaggregated deployment")
	case d.Engine.DataParallelSize > 1:
		return c.errorf(at, "is not supported with data_parallel_size above 1, since each rank has its own adapters")
	}
	c.warnOfRules(d, "LoRA")
	if arch != nil && !arch.AdaptsAll() {
		c.warnf(d, "the slots for LoRA adapters take more memory than computed: attention of %s is left out; set "+
			"num_gpu_blocks_override to the number of the server", d.Model)
	}
	l.MaxCPULoras, l.MaxRank = cmp.Or(l.MaxCPULoras, l.MaxLoras), cmp.Or(l.MaxRank, defaultRank)
	if l.CopyUS == nil {
		l.CopyUS = new(float64(copyUS))
	}
	return nil
}
