package deploy

import (
	"encoding/json"
	"fmt"
	"strings"

	"blis/pkg/cluster"
)

// vllmServe returns the command line of the replicas of each deployment.
func vllmServe(c *cluster.Config) (string, error) {
	var all strings.Builder
	schedule, err := schedulingOf(c)
	if err != nil {
		return "", err
	}
	for i := range c.Deployments {
		d := &c.Deployments[i]
		at := "deployments." + d.ID
		switch {
		case d.Prefill != nil:
			return "", unmapped(at, "is disaggregated: the transfer of KV caches is not exported")
		case d.Encode != nil:
			return "", unmapped(at+".encode", "is not exported")
		case len(d.KVTiers) > 0:
			return "", unmapped(at+".kv_tiers", "is not exported")
		case d.Engine.PreemptionMode != "recompute":
			return "", unmapped(at+".engine.preemption_mode", "is %s; vLLM recomputes", d.Engine.PreemptionMode)
		}
		where := ""
		if d.GPU != "" {
			where = fmt.Sprintf(", each on %d x %s", d.Engine.GPUs(), d.GPU)
		}
		fmt.Fprintf(&all, "# %s: replicas: %d%s\n", d.ID, d.Replicas, where)
		if v := d.Engine.VLLMVersion; v != "" {
			fmt.Fprintf(&all, "# vLLM %s\n", v)
		}
		if p := d.Latency.Kernels.Float32MatmulPrecision; p != "" {
			fmt.Fprintf(&all, "VLLM_FLOAT32_MATMUL_PRECISION=%s ", p)
		}
		fmt.Fprintf(&all, "vllm serve %s %s\n", quote(d.Model), strings.Join(flagsOf(d, schedule), " "))
	}
	return all.String(), nil
}

// schedulingOf returns the scheduling policy of the engines.
func schedulingOf(c *cluster.Config) (string, error) {
	switch s, p := c.Policies.Scheduler.Type, c.Policies.Preemption.Type; {
	case s == "fcfs" && p == "last-in":
		return "fcfs", nil
	case s == "priority-fcfs" && p == "lowest-priority":
		return "priority", nil
	case s == "fcfs":
		return "", unmapped("policies.preemption", "is %s; with the scheduler fcfs vLLM has last-in", p)
	case s == "priority-fcfs":
		return "", unmapped("policies.preemption", "is %s; with the scheduler priority-fcfs vLLM has "+
			"lowest-priority", p)
	default:
		return "", unmapped("policies.scheduler", "is %s; vLLM has fcfs and priority-fcfs", s)
	}
}

// flagsOf returns the flags that change times. Those whose default depends on the version are always there.
func flagsOf(d *cluster.Deployment, schedule string) []string {
	e := &d.Engine
	f := flags{}
	f.above("tensor-parallel-size", e.TensorParallelSize, 1)
	f.above("pipeline-parallel-size", e.PipelineParallelSize, 1)
	f.above("data-parallel-size", e.DataParallelSize, 1)
	if e.DataParallelExternalLB {
		f.add("data-parallel-external-lb")
	}
	if e.Preset == "" || isSince(e.Preset, 20) {
		f.above("dp-sync-interval", e.DPSyncInterval, 0)
	}
	if e.EnableExpertParallel || e.MoE != nil && e.MoE.EnableAllToAll {
		f.add("enable-expert-parallel")
	}
	if e.EnableEPLB {
		f.add("enable-eplb")
	}
	if x := e.EPLBConfig; x != nil && x.NumRedundantExperts > 0 {
		f.add("eplb-config", quote(fmt.Sprintf(`{"num_redundant_experts": %d}`, x.NumRedundantExperts)))
	}
	f.add("max-num-seqs", e.MaxNumSeqs)
	f.above("max-num-active-seqs", e.MaxNumActiveSeqs, 0)
	f.add("max-num-batched-tokens", e.MaxNumBatchedTokens)
	f.set("max-num-queued-reqs", e.MaxNumQueuedReqs)
	f.set("max-num-queued-tokens", e.MaxNumQueuedTokens)
	f.toggle("enable-chunked-prefill", e.EnableChunkedPrefill)
	f.above("long-prefill-token-threshold", max(e.LongPrefillTokenThreshold, e.ChunkSize), 0)
	f.above("prefill-schedule-interval", e.PrefillScheduleInterval, 1)
	f.toggle("async-scheduling", e.AsyncScheduling)
	if e.ReserveFullSequence || isSince(e.Preset, 19) {
		f.toggle("scheduler-reserve-full-isl", e.ReserveFullSequence)
	}
	f.add("block-size", e.BlockSize)
	f.toggle("enable-prefix-caching", e.EnablePrefixCaching)
	f.above("num-gpu-blocks-override", e.NumGPUBlocksOverride, 0)
	f.add("gpu-memory-utilization", e.GPUMemoryUtilization)
	if e.Watermark > 0 {
		f.add("watermark", e.Watermark)
	}
	f.above("max-model-len", e.MaxModelLen, 0)
	for _, t := range []struct{ name, value string }{{"dtype", e.DType}, {"quantization", e.Quantization},
		{"kv-cache-dtype", e.KVCacheDType}} {
		if t.value != "" {
			f.add(t.name, t.value)
		}
	}
	if e.EnforceEager {
		f.add("enforce-eager")
	}
	f.add("scheduling-policy", schedule)
	if text := compilation(&d.Latency.Kernels); text != "" {
		f.add("compilation-config", quote(text))
	}
	return f
}

// isSince reports whether a preset is of version 0.first of vLLM or later. Since 0.19 there is a flag for full
// sequences, which is on.
func isSince(preset string, first int) bool {
	var major, minor int
	n, _ := fmt.Sscanf(preset, "vllm-%d.%d", &major, &minor)
	return n == 2 && (major > 0 || minor >= first)
}

// compilation returns the compilation_config, "" if all of it is the default.
func compilation(k *cluster.Kernels) string {
	passes := map[string]any{}
	if k.FuseAllReduceRMS != nil {
		passes["fuse_allreduce_rms"] = *k.FuseAllReduceRMS
	}
	if k.FIAllReduceFusionMaxSizeMB != nil {
		passes["fi_allreduce_fusion_max_size_mb"] = *k.FIAllReduceFusionMaxSizeMB
	}
	all := map[string]any{}
	if len(passes) > 0 {
		all["pass_config"] = passes
	}
	if k.CUDAGraphMode != "" {
		all["cudagraph_mode"] = k.CUDAGraphMode
	}
	if k.MaxCUDAGraphCaptureSize > 0 {
		all["max_cudagraph_capture_size"] = k.MaxCUDAGraphCaptureSize
	}
	if len(all) == 0 {
		return ""
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("deploy: " + err.Error()) // numbers, flags and texts
	}
	return string(text)
}

// flags is a command line.
type flags []string

func (f *flags) add(name string, value ...any) {
	*f = append(*f, "--"+name)
	for _, v := range value {
		*f = append(*f, fmt.Sprint(v))
	}
}

// above adds a flag whose value is not the default.
func (f *flags) above(name string, value, byDefault int) {
	if value > byDefault {
		f.add(name, value)
	}
}

// set adds a flag unless its value is nil.
func (f *flags) set(name string, value *int) {
	if value != nil {
		f.add(name, *value)
	}
}

// toggle adds --NAME or --no-NAME.
func (f *flags) toggle(name string, on bool) {
	if !on {
		name = "no-" + name
	}
	f.add(name)
}

// quote returns a text as a shell reads it.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
