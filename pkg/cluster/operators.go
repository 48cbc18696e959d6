package cluster

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/model"
	"blis/pkg/operators"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

// operators computes the curves of the operators model. The error is operators.ErrNone if there are no
// tables of the GPU.
func (c *resolver) operators(d *Deployment, arch *model.Architecture, gpu *hardware.GPU) error {
	l, e := &d.Latency, &d.Engine
	if arch == nil || gpu == nil {
		return fmt.Errorf("the kernels are unknown: %s", missingInfo(d, arch, gpu))
	}
	folder := l.Operators
	if folder != "" && !filepath.IsAbs(folder) {
		folder = filepath.Join(c.dir, folder)
	}
	tables, err := operators.Load(folder, gpu.ID)
	if err != nil {
		return err
	}
	k := &l.Kernels
	d.Computed.Operators, err = operators.Compile(arch, tables, operators.Machine{
		TensorParallel: e.TensorParallelSize, PipelineParallel: e.PipelineParallelSize,
		DataParallel:   e.DataParallelSize,
		ExpertParallel: e.MoE != nil && e.MoE.EnableAllToAll, Bandwidth: gpu.MemoryBandwidth(),
		Link:        gpu.LinkBandwidth(),
		Captured:    int64(cmp.Or(k.MaxCUDAGraphCaptureSize, min(2*e.MaxNumSeqs, maxCaptured))),
		WholeGraphs: k.CUDAGraphMode == wholeGraphs, AsyncScheduling: e.AsyncScheduling,
		FusedReduce: c.fusesReduce(d, gpu), Experts: k.Experts, Distribution: k.ExpertDistribution,
	})
	if err != nil {
		return err
	}
	if l.AlphaUS == nil {
		l.AlphaUS = []float64{frontEndUS, tokenizeUS, 0}
		d.markDerived("latency.alpha_us")
	}
	reach, notes := d.Computed.Operators.Reach, d.Computed.Operators.Notes
	if l.Range == nil {
		span := func(most int64) hardware.Span { return hardware.Span{0, float64(max(1, most))} }
		l.Range = &hardware.Range{DecodeSequences: span(reach.Sequences), PrefillTokens: span(reach.Tokens),
			ContextTokens: span(reach.Context)}
		d.markDerived("latency.range")
	}
	if l.Source == "" {
		l.Source = "computed from kernels measured on " + tables.System
		d.markDerived("latency.source")
	}
	if len(notes) > 0 {
		c.warnf(d, "the tables of measured kernels do not have all of %s: %s", d.Model, strings.Join(notes, "; "))
	}
	return nil
}

// wholeGraphs is a cudagraph_mode.
const wholeGraphs = "FULL_DECODE_ONLY"

func (k *Kernels) check(at string, errorf strictyaml.Errorf) error {
	modes := []string{"FULL_AND_PIECEWISE", wholeGraphs}
	if k.CUDAGraphMode != "" && !slices.Contains(modes, k.CUDAGraphMode) {
		return errorf(at+".cudagraph_mode", "%v", registry.Unknown("cudagraph_mode", k.CUDAGraphMode, modes))
	}
	return strictyaml.Between[int](errorf, at+".")("max_cudagraph_capture_size", k.MaxCUDAGraphCaptureSize, 0,
		maxCacheTokens)
}

// fusesReduce reports whether the sum over GPUs and the norm after it are one kernel: since vLLM 0.14
// on Hopper and Blackwell with NVLink (vllm/config/vllm.py, enable_allreduce_rms_fusion).
func (c *resolver) fusesReduce(d *Deployment, gpu *hardware.GPU) bool {
	if fuse := d.Latency.Kernels.FuseAllReduceRMS; fuse != nil {
		return *fuse
	}
	version := strings.TrimPrefix(cmp.Or(d.Engine.VLLMVersion, d.Engine.Preset), "vllm-")
	old := version != "" && operators.CompareVersions(version, "0.14") < 0
	return !old && gpu.PeakTFLOPS.FP8 > 0 && gpu.Link == "nvlink"
}

// frontEndUS is the time of HTTP and of the processes before the queue, tokenizeUS that of tokenizing a
// token: together at most 5 ms for a prompt of 8192 tokens.
const (
	frontEndUS = 3000
	tokenizeUS = 0.25
)

// maxCaptured is the largest CUDA graph, in tokens (vllm/config/vllm.py, v0.11.0: the smaller of this
// and twice max_num_seqs).
const maxCaptured = 512
