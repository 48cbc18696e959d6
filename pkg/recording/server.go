package recording

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Folder is what the files of a recording's folder state about the server.
type Folder struct {
	Path string
	// Started says that a file states how the engine was started, so that settings it does not name have their
	// defaults.
	Started bool
	// stated are the values by their names in a cluster file, and model, gpu, vllm_version and tensor_parallel_size.
	stated map[string]statement
	// unused are settings without a meaning in a cluster file, such as speculative_config, by file.
	unused []string
}

// statement is a value with the file that states it.
type statement struct{ value, file string }

// The names of statements that are no settings in a cluster file.
const (
	statedModel   = "model"
	statedGPU     = "gpu"
	statedVersion = "vllm_version"
	statedTP      = "tensor_parallel_size"
)

// settingKind is how a value of a setting is written.
type settingKind int

const (
	integerSetting settingKind = iota
	ratioSetting
	boolSetting
	wordSetting
)

// settingKinds are the settings that are passed on.
var settingKinds = map[string]settingKind{statedModel: wordSetting, statedGPU: wordSetting, statedVersion: wordSetting,
	statedTP: integerSetting, "pipeline_parallel_size": integerSetting, "data_parallel_size": integerSetting,
	"max_num_seqs": integerSetting, "max_num_batched_tokens": integerSetting, "max_model_len": integerSetting,
	"block_size": integerSetting, "num_gpu_blocks_override": integerSetting,
	"long_prefill_token_threshold": integerSetting, "gpu_memory_utilization": ratioSetting,
	"enable_expert_parallel": boolSetting, "enable_chunked_prefill": boolSetting, "async_scheduling": boolSetting,
	"enable_prefix_caching": boolSetting, "enforce_eager": boolSetting, "quantization": wordSetting,
	"kv_cache_dtype": wordSetting, "dtype": wordSetting}

// settingNames are other names of settings, of short flags and of other programs.
var settingNames = map[string]string{"tp": statedTP, "tp_size": statedTP, "tensor_parallelism": statedTP,
	"tensor_parallel": statedTP, "pp": "pipeline_parallel_size", "dp": "data_parallel_size",
	"ep": "enable_expert_parallel", "kv_blocks_gpu": "num_gpu_blocks_override",
	"num_gpu_blocks": "num_gpu_blocks_override", "q": "quantization", "model_tag": statedModel}

// neutralSettings do not change the times of steps or what is scheduled.
var neutralSettings = strings.Fields(`api_key app chat_template disable_log_requests disable_log_stats download_dir
	enable_log_requests ep_dispatch generation_config hf_token host load_format max_log_len no_enable_log_requests
	otlp_traces_endpoint port revision seed served_model_name tokenizer tokenizer_mode trust_remote_code
	uvicorn_log_level distributed_executor_backend enable_auto_tool_choice tool_call_parser reasoning_parser
	collect_detailed_traces
	disable_uvicorn_access_log log_level response_role root_path allowed_origins ssl_keyfile ssl_certfile`)

// state takes a value from a file. Names may have dashes, and null, None and auto state nothing. It is an error if
// another file states another value, or if the value is none of its kind.
func (d *Folder) state(file, name, value string) error {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	if full := settingNames[name]; full != "" {
		name = full
	}
	if slices.Contains([]string{"", "null", "None", "auto"}, value) || slices.Contains(neutralSettings, name) {
		return nil
	}
	kind, known := settingKinds[name]
	if !known {
		d.unused = append(d.unused, fmt.Sprintf("%s=%s in %s", name, value, file))
		return nil
	}
	given, err := value, error(nil)
	switch kind {
	case integerSetting:
		value, err = plainInteger(value)
	case ratioSetting:
		_, err = strconv.ParseFloat(value, 64)
	case boolSetting:
		var on bool
		on, err = strconv.ParseBool(strings.ToLower(value))
		value = strconv.FormatBool(on)
	}
	if err != nil {
		return folderErrorf(filepath.Join(d.Path, file), "%s: %q is no value of it", name, given)
	}
	if name == statedVersion {
		value = strings.TrimPrefix(value, "v")
	}
	before, stated := d.stated[name]
	switch {
	case stated && before.value != value && name == statedModel && filepath.Base(before.value) == filepath.Base(value):
		return nil // a path on the server ends in the model's name
	case stated && before.value != value:
		return folderErrorf(d.Path, "%s is %s in %s and %s in %s: correct one of them", name, before.value, before.file,
			value, file)
	case !stated:
		d.stated[name] = statement{value, file}
	}
	return nil
}

// plainInteger is an integer without the units that vLLM takes: 8k is 8000, 8K is 8192.
func plainInteger(value string) (string, error) {
	units := map[byte]int64{'k': 1000, 'm': 1e6, 'g': 1e9, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
	number, unit := value, int64(1)
	if u := units[value[len(value)-1]]; u > 0 {
		number, unit = value[:len(value)-1], u
	}
	n, err := strconv.ParseFloat(number, 64)
	if n *= float64(unit); err == nil && (n < 0 || n != float64(int64(n)) || n > 1<<40) {
		err = strconv.ErrRange
	}
	return strconv.FormatInt(int64(n), 10), err
}

// get is a stated value, "" without.
func (d *Folder) get(name string) string { return d.stated[name].value }

// apply sets what is stated. The file of results states the setup of its own runs; the folder adds the rest.
func (d *Folder) apply(run *Run) {
	if model := d.get(statedModel); model != "" {
		run.Model = model // clients know only the name under which a server serves it
	}
	if run.GPU == "" {
		run.GPU = d.get(statedGPU)
	}
	if run.TensorParallel == 0 {
		run.TensorParallel, _ = strconv.Atoi(d.get(statedTP))
	}
	if v := d.get(statedVersion); v != "" {
		run.Engine = "vllm " + v
	}
	run.Settings = nil
	for _, name := range slices.Sorted(maps.Keys(d.stated)) {
		switch name {
		case statedModel, statedGPU, statedVersion, statedTP:
		default:
			run.Settings = append(run.Settings, name+"="+d.get(name))
		}
	}
	if len(d.unused) > 0 {
		run.warnf("these settings are not simulated: %s", strings.Join(abbreviate(d.unused), ", "))
	}
}

// Missing is what the folder does not state, of what a simulation needs to know.
func (d *Folder) Missing() (names []string) {
	for _, name := range []string{statedModel, statedGPU, statedVersion} {
		if d.get(name) == "" {
			names = append(names, name)
		}
	}
	if !d.Started {
		names = append(names, "max_num_seqs", "max_num_batched_tokens")
	}
	return names
}
