package cluster

import (
	"cmp"
	"fmt"
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
func (c *resolver) operators(d *Deployment, at string, arch *model.Architecture, gpu *hardware.GPU) error {
	l, e := &d.Latency, &d.Engine
	if arch == nil || gpu == nil {
		return fmt.Errorf("the kernels are unknown: %s", missingInfo(d, arch, gpu))
	}
	folder := l.Operators
	if folder != "" {
		var err error
		if folder, err = c.path(at+".latency.operators", folder); err != nil {
			return err
		}
	}
	tables, err := operators.Load(folder, gpu.ID)
	if err != nil {
		return err
	}
	fused, oneShot := c.fuses(d, gpu)
	k := &l.Kernels
	d.Computed.Operators, err = operators.Compile(arch, tables, operators.Machine{
		TensorParallel: e.TensorParallelSize, PipelineParallel: e.PipelineParallelSize,
		DataParallel:   e.DataParallelSize,
		ExpertParallel: e.expertParallel(), Bandwidth: gpu.MemoryBandwidth(),
		Link: gpu.LinkBandwidth(), Captured: captured(d, gpu), Graphs: d.graphs(),
		AsyncScheduling: e.AsyncScheduling, FusedBytes: fused, OneShotBytes: oneShot,
		Multiprocessors: multiprocessors(d, gpu), Mixed: mixed(gpu),
		Experts: k.Experts, Distribution: k.ExpertDistribution,
		EPLB: e.EnableEPLB, RedundantExperts: e.redundant(),
		TensorFloat32: d.tensorFloat32(gpu),
	})
	if err != nil {
		return err
	}
	if l.AlphaUS == nil {
		l.AlphaUS = []float64{FrontEndUS, TokenizeUS, 0, sendUS}
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
	if l.Factors != nil {
		if here := d.Computed.Operators.KernelsID(); !l.Factors.IsOf(here) {
			c.warnf(d, "latency.factors were fitted with other kernels (%s) than these (%s): tables, kernel settings "+
				"or the version of BLIS differ, so that prefill has another time; fit again", l.Factors.Kernels, here)
		}
	}
	if len(notes) > 0 {
		c.warnf(d, "the tables of measured kernels do not have all of %s: %s", d.Model, strings.Join(notes, "; "))
	}
	return nil
}

func (k *Kernels) check(at string, errorf strictyaml.Errorf) error {
	if k.CUDAGraphMode != "" && !slices.Contains(operators.AllGraphs, k.CUDAGraphMode) {
		var names []string
		for _, mode := range operators.AllGraphs {
			names = append(names, string(mode))
		}
		return errorf(at+".cudagraph_mode", "%v", registry.Unknown("cudagraph_mode", string(k.CUDAGraphMode), names))
	}
	if mb := k.FIAllReduceFusionMaxSizeMB; mb != nil && !(*mb >= 0 && *mb <= 1024) {
		return errorf(at+".fi_allreduce_fusion_max_size_mb", "must be between 0 and 1024, is %g", *mb)
	}
	if p := k.Float32MatmulPrecision; p != "" && !slices.Contains(matmulPrecisions, p) {
		return errorf(at+".float32_matmul_precision", "%v", registry.Unknown("precision", p, matmulPrecisions))
	}
	return strictyaml.Between[int](errorf, at+".")("max_cudagraph_capture_size", k.MaxCUDAGraphCaptureSize, 0,
		maxCacheTokens)
}

// graphs returns what CUDA graphs have. The default is that of VllmConfig.__post_init__ (vllm/config/__init__.py):
// pieces in v0.10.2, whole decode steps and else pieces since v0.11.0.
func (d *Deployment) graphs() operators.Graphs {
	if d.Engine.EnforceEager {
		return operators.NoGraphs
	}
	mode := operators.WholeDecodeAndRest
	if d.before("0.11") {
		mode = operators.PiecesOnly
	}
	return cmp.Or(d.Latency.Kernels.CUDAGraphMode, mode)
}

// matmulPrecisions are torch.set_float32_matmul_precision's; only the first does not use tensor cores.
var matmulPrecisions = []string{"highest", "high", "medium"}

// tensorFloat32 reports whether products in 32 bits use tensor cores: if a setting allows it, or on Blackwell since
// 0.33, which has such a kernel for routers (GateLinear in
// vllm/model_executor/layers/fused_moe/router/gate_linear.py; v0.25.0 has one for up to 32 tokens, which is not
// simulated).
func (d *Deployment) tensorFloat32(gpu *hardware.GPU) bool {
	precision := cmp.Or(d.Latency.Kernels.Float32MatmulPrecision, matmulPrecisions[0])
	return precision != matmulPrecisions[0] || capability(gpu) >= 100 && !d.before("0.33")
}

// captured returns the largest number of tokens of a CUDA graph: twice max_num_seqs, at most 512, or 1024
// on Blackwell since 0.28 (_set_cudagraph_sizes in vllm/config/vllm.py, v0.15.1 to v0.33.0).
func captured(d *Deployment, gpu *hardware.GPU) int64 {
	most := 512
	if capability(gpu) >= 100 && !d.before("0.28") {
		most = 1024
	}
	size := cmp.Or(d.Latency.Kernels.MaxCUDAGraphCaptureSize, min(2*d.Engine.MaxNumSeqs, most))
	return int64(min(size, d.Engine.MaxNumBatchedTokens))
}

// before reports whether the engine is older than a version of vLLM; without a version it is not.
func (d *Deployment) before(version string) bool {
	have := strings.TrimPrefix(cmp.Or(d.Engine.VLLMVersion, d.Engine.Preset), "vllm-")
	return have != "" && operators.CompareVersions(have, version) < 0
}

// capability is the CUDA compute capability of data center GPUs with NVLink, times 10, as far as vLLM's
// choices about sums over GPUs depend on it: 90 (Hopper), 100 or 103 (Blackwell); else 0.
func capability(gpu *hardware.GPU) int {
	switch p := gpu.PeakTFLOPS; {
	case gpu.Link != "nvlink" || p.FP8 == 0:
		return 0
	case p.FP4 == 0:
		return 90
	case strings.HasPrefix(gpu.ID, "B300"), strings.HasPrefix(gpu.ID, "GB300"):
		return 103
	}
	return 100
}

// multiprocessors returns those of a GPU where decode attention is FlashAttention 3 outside of CUDA graphs, and 0
// elsewhere. Then it divides sequences only if they are too few for all multiprocessors (max_num_splits is 0 in
// vllm/v1/attention/backends/flash_attn.py, v0.10.2 to v0.33.0; num_splits_heuristic in hopper/heuristics.h of
// Dao-AILab/flash-attention). In graphs it divides them evenly (max_num_splits is 32). FlashAttention 2, on older
// GPUs, also has no even division, but was not compared with servers.
func multiprocessors(d *Deployment, gpu *hardware.GPU) int {
	if g := d.graphs(); capability(gpu) == 90 && (g == operators.PiecesOnly || g == operators.NoGraphs) {
		return hopperMultiprocessors
	}
	return 0
}

// hopperMultiprocessors are those of H100 SXM, H200 and GH200 (data sheet of H100).
const hopperMultiprocessors = 132

// mixed is the fraction of its speed that decode attention reaches in a step with chunks: 1 on Hopper
// and Blackwell of data centers, whose kernels for chunks and for decode are separate or do not interfere;
// elsewhere one kernel (FlashAttention 2) does both, and the roofline's factor was measured.
func mixed(gpu *hardware.GPU) float64 {
	if capability(gpu) > 0 {
		return 1
	}
	return gpu.Efficiency.Mixed
}

// fuses returns up to how many bytes a sum over GPUs is one kernel with the norm after it, and up to how
// many each GPU reads the data of all others at once. It is vLLM's default since 0.17
// (enable_allreduce_rms_fusion in vllm/config/vllm.py: off in v0.15.1; v0.19.1 has it without data and
// pipeline parallelism, v0.24.0 with them).
func (c *resolver) fuses(d *Deployment, gpu *hardware.GPU) (fused, oneShot int64) {
	e, k := &d.Engine, &d.Latency.Kernels
	on := !d.before("0.17") && (e.DataParallelSize*e.PipelineParallelSize == 1 || !d.before("0.24"))
	if k.FuseAllReduceRMS != nil {
		on = *k.FuseAllReduceRMS
	}
	if !on || e.TensorParallelSize == 1 {
		return 0, 0
	}
	const mib = 1 << 20
	of := capability(gpu)
	if of == 103 && d.before("0.19") { // v0.15.1 has no sizes of it
		of = 0
	}
	limits := fusionMiB[of][e.TensorParallelSize]
	if of == 103 && e.TensorParallelSize == 8 && !d.before("0.31") {
		limits[0] = 4
	}
	if limits[0] == 0 && k.FuseAllReduceRMS != nil {
		c.warnf(d, "fuse_allreduce_rms has no effect: FlashInfer has no such kernel for %d x %s in this version",
			e.TensorParallelSize, d.GPU)
	}
	if k.FIAllReduceFusionMaxSizeMB != nil && limits[0] > 0 {
		limits[0] = *k.FIAllReduceFusionMaxSizeMB
	}
	return int64(limits[0] * mib), int64(limits[1] * mib)
}

// fusionMiB are the largest sums over GPUs that are fused with the norm, and the largest of these for which
// each GPU reads the data of all others, by compute capability and number of GPUs
// (FI_ALLREDUCE_FUSION_MAX_SIZE_MB and _FI_ALLREDUCE_ONE_SHOT_MAX_SIZES_MB in
// vllm/compilation/passes/fusion/allreduce_rms_fusion.py, v0.19.1; 90 and 100 also in v0.15.1).
var fusionMiB = map[int]map[int][2]float64{
	90:  {2: {64, 32}, 4: {2, 2}, 8: {0.5, 0.5}},
	100: {2: {64, 32}, 4: {32, 4}, 8: {1, 1}},
	103: {2: {64, 32}, 4: {64, 4}, 8: {2, 2}},
}

// The front end's times in µs, the same for all servers. None was chosen on the rows of scripts/silicon.
const (
	// FrontEndUS is the time of a request before the queue: HTTP, validation, up to 2000 µs in which vLLM's tokenizer
	// waits for other prompts (AsyncMicrobatchTokenizer in vllm/utils/async_utils.py), and messages between processes.
	// α0 of four calibrations on H100s (hardware/coefficients.yaml) is 4300 to 7000, of which tokenizing 575 tokens is
	// 1150. The mean of the rest is 4800. vLLM's own spans, without HTTP and tokenizing, have 1200 to 2000 for short
	// prompts on an idle server.
	FrontEndUS = 5000
	// TokenizeUS is the time of a prompt token. Hugging Face's tokenizers 0.23, byte-level BPE with a vocabulary of
	// 65,000, takes 0.9 to 1.5 on a core of an AMD EPYC for prose and programs, and 2.4 for the random tokens that
	// benchmarks send. vLLM's spans have 0.2 more after the tokenizer.
	TokenizeUS = 2
	// sendUS is the time of a decoding sequence, whose token goes to its client before that of a new one: the median
	// of α3 of the same calibrations, which is 36 to 101.
	sendUS = 50
)
