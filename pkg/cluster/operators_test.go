package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"blis/pkg/hardware"
)

// TestOperators: the operators model takes its kernels from the built-in tables, states what they cover,
// and is restored from a run without them.
func TestOperators(t *testing.T) {
	const text = "version: 1\ndeployments: [{id: a, model: meta-llama/Llama-3.1-8B, gpu: H100, " +
		"latency: {model: operators, kernels: {fuse_allreduce_rms: false}}}]"
	c, err := Parse("x", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, o := &c.Deployments[0].Latency, c.Deployments[0].Computed.Operators
	if o == nil || o.System != "h100_sxm" || len(o.Notes) > 0 || l.Range == nil || l.Range.DecodeSequences[1] != 2048 ||
		!strings.Contains(l.Source, "h100_sxm") || len(l.AlphaUS) != 4 {
		t.Errorf("%+v, %+v", l, o)
	}
	printed, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Restore("x", printed)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Deployments[0].LatencyModel()
	if err != nil {
		t.Fatal(err)
	}
	b, err := again.Deployments[0].LatencyModel()
	if err != nil {
		t.Fatal(err)
	}
	if a.Queueing(1000) != b.Queueing(1000) || a.Queueing(0) != FrontEndUS {
		t.Errorf("queueing takes %d and %d µs", a.Queueing(1000), b.Queueing(1000))
	}
	if a.Output(0) != 0 || a.Output(10) != 10*sendUS {
		t.Errorf("output takes %d and %d µs", a.Output(0), a.Output(10))
	}
}

func TestOperatorErrorsAndWarnings(t *testing.T) {
	for _, c := range []struct{ deployment, want string }{
		{"gpu: MI300X, latency: {model: operators}", "there are no tables of measured kernels of MI300X-192GB"},
		{"gpu: H100, latency: {model: operators, operators: absent}",
			"no tables of measured kernels of H100-SXM-80GB"},
		{"latency: {model: operators}", "the kernels are unknown: no gpu is set"},
		{"gpu: H100, latency: {model: operators, kernels: {cudagraph_mode: SOME}}", `unknown cudagraph_mode "SOME"`},
		{"gpu: H100, latency: {model: operators, kernels: {experts: fp9}}", `unknown experts "fp9"`},
		{"gpu: H100, latency: {model: operators, kernels: {float32_matmul_precision: low}}",
			`float32_matmul_precision: unknown precision "low" (have highest, high, medium)`},
		{"gpu: H100, latency: {model: operators, kernels: {max_cudagraph_capture_size: -1}}",
			"max_cudagraph_capture_size"},
		{"gpu: H100, latency: {model: roofline, kernels: {experts: fp8}}",
			"latency.kernels has no effect: only the operators model knows kernels"},
		{"gpu: H100, latency: {model: roofline, operators: x}",
			"latency.operators has no effect: only the operators model knows kernels"},
		{"gpu: H100, latency: {model: operators, beta_us: [1, 2, 3]}", "latency.beta_us has no effect"},
		{"gpu: H100, latency: {model: operators, kernels: {fi_allreduce_fusion_max_size_mb: -1}}",
			"fi_allreduce_fusion_max_size_mb: must be between 0 and 1024, is -1"},
		{"gpu: L40S, engine: {tensor_parallel_size: 2}, " +
			"latency: {model: operators, kernels: {fuse_allreduce_rms: true}}",
			"fuse_allreduce_rms has no effect: FlashInfer has no such kernel for 2 x L40S-48GB"},
		{"gpu: H100, engine: {enforce_eager: true, vllm_version: 0.19.1}, latency: {model: roofline}",
			"engine.enforce_eager has no effect: only the operators model knows CUDA graphs"},
		{"gpu: H100, engine: {enforce_eager: true}, latency: {model: roofline}",
			"engine.enforce_eager, besides more KV blocks, has no effect: only the operators model"},
		{"gpu: H100, engine: {enforce_eager: true}, latency: {model: operators, kernels: {cudagraph_mode: FULL}}",
			"latency.kernels.cudagraph_mode has no effect: enforce_eager has no CUDA graphs"},
		{"gpu: H100, latency: {model: operators, factors: {step_us: 9000, prefill: 1, kernels: h100_sxm 0123}}",
			"latency.factors were fitted with other kernels (h100_sxm 0123) than these (h100_sxm "},
		{"gpu: H100, engine: {tensor_parallel_size: 16}, latency: {model: operators}",
			"all-reduce over 16 GPUs: that over 8"},
	} {
		text := "version: 1\ndeployments: [{id: a, model: meta-llama/Llama-3.1-8B, " + c.deployment + "}]"
		if !strings.Contains(text, "engine:") {
			text = strings.Replace(text, "latency:", "engine: {num_gpu_blocks_override: 5000}, latency:", 1)
		}
		var warnings []string
		_, err := Parse("x", []byte(text), Options{Warn: func(w string) { warnings = append(warnings, w) }})
		if err != nil {
			warnings = append(warnings, err.Error())
		}
		if said := strings.Join(warnings, "\n"); !strings.Contains(said, c.want) {
			t.Errorf("%s: says %q, want %q", c.deployment, said, c.want)
		}
	}
}

// TestNamedTables: the operators model is the default where the user names a folder of tables, for all
// deployments or for one, also in a what-if of a run. A GPU that it does not have is an error.
func TestNamedTables(t *testing.T) {
	const folder = "../../../shared/data/operators"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("needs ../shared/data/operators")
	}
	const text = "version: 1\ndeployments: [{id: a, model: meta-llama/Llama-3.1-8B, gpu: H100}, " +
		"{id: b, model: meta-llama/Llama-3.1-8B, gpu: H100, latency: {model: roofline}}]"
	var warnings []string
	c, err := Parse("x", []byte(text), Options{Operators: folder, Warn: func(w string) {
		warnings = append(warnings,
			w)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Deployments[0].Latency; l.Model != "operators" || l.Operators != folder {
		t.Errorf("latency %+v", l)
	}
	if said := strings.Join(warnings, "\n"); c.Deployments[1].Latency.Model != "roofline" ||
		!strings.Contains(said, "deployment b: latency.operators has no effect") || strings.Contains(said,
		"deployment a") {
		t.Errorf("warnings %q", said)
	}
	measured, err := Parse("x", []byte(text), Options{})
	if err != nil || measured.Deployments[0].Latency.Model != "linear" {
		t.Fatalf("without a folder: %v, %+v", err, measured)
	}
	printed, err := json.Marshal(measured)
	if err != nil {
		t.Fatal(err)
	}
	whatIf, err := Parse("x", printed, Options{Operators: folder})
	if err != nil || whatIf.Deployments[0].Latency.Model != "operators" {
		t.Errorf("in a what-if: %v, %+v", err, whatIf)
	}
	_, err = Parse("x", []byte(strings.Replace(text, "gpu: H100}", "gpu: L4, engine: {max_model_len: 4096}}", 1)),
		Options{Operators: folder})
	if err == nil || !strings.Contains(err.Error(), "no tables of measured kernels of L4-24GB (no data/l4)") {
		t.Errorf("a GPU that the folder has not: %v", err)
	}
}

// TestGraphsAndFusion: the sizes of CUDA graphs, and of sums over GPUs that are fused with the norm, are
// those of the engine's version on the GPU.
func TestGraphsAndFusion(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		deployment           string
		captured, fused, one int64
	}{
		{"gpu: H100, engine: {tensor_parallel_size: 4, vllm_version: 0.19.0}", 512, 2 * mib, 2 * mib},
		{"gpu: H100, engine: {tensor_parallel_size: 8, vllm_version: 0.19.0}", 512, mib / 2, mib / 2},
		{"gpu: H100, engine: {tensor_parallel_size: 4, vllm_version: 0.16.0}", 512, 0, 0},
		{"gpu: H100, engine: {tensor_parallel_size: 4, vllm_version: 0.16.0}, " +
			"latency: {kernels: {fuse_allreduce_rms: true}}", 512, 2 * mib, 2 * mib},
		{"gpu: H100, engine: {tensor_parallel_size: 4, preset: vllm-0.15, max_num_seqs: 64}", 128, 0, 0},
		{"gpu: H100, engine: {tensor_parallel_size: 2, data_parallel_size: 2, vllm_version: 0.19.0}", 512, 0, 0},
		{"gpu: H100, engine: {tensor_parallel_size: 2, data_parallel_size: 2, vllm_version: 0.24.0}", 512, 64 * mib,
			32 * mib},
		{"gpu: B200, engine: {tensor_parallel_size: 4, vllm_version: 0.28.0, max_num_seqs: 2000}", 1024, 32 * mib,
			4 * mib},
		{"gpu: B200, engine: {tensor_parallel_size: 4, vllm_version: 0.24.0, max_num_seqs: 2000}", 512, 32 * mib,
			4 * mib},
		{"gpu: B300, engine: {tensor_parallel_size: 8, vllm_version: 0.19.0}", 512, 2 * mib, 2 * mib},
		{"gpu: B300, engine: {tensor_parallel_size: 8, vllm_version: 0.31.0}", 512, 4 * mib, 2 * mib},
		{"gpu: B300, engine: {tensor_parallel_size: 8, vllm_version: 0.18.0}", 512, 0, 0},
		{"gpu: B200, engine: {tensor_parallel_size: 2}, latency: {kernels: {fi_allreduce_fusion_max_size_mb: 8, " +
			"max_cudagraph_capture_size: 100}}", 100, 8 * mib, 32 * mib},
		{"gpu: B200", 512, 0, 0},
	} {
		d, _, err := parseDeployment("model: Qwen/Qwen3-32B, " + c.deployment)
		if err != nil {
			t.Errorf("%s: %v", c.deployment, err)
			continue
		}
		catalog, err := hardware.Open()
		if err != nil {
			t.Fatal(err)
		}
		gpu, err := catalog.GPU(d.GPU)
		if err != nil {
			t.Fatal(err)
		}
		r := resolver{warn: func(string) {}}
		fused, one := r.fuses(d, gpu)
		if have := captured(d, gpu); have != c.captured || fused != c.fused || one != c.one {
			t.Errorf("%s: graphs of %d tokens, sums of %d and %d bytes, want %d, %d and %d", c.deployment, have,
				fused, one,
				c.captured, c.fused, c.one)
		}
	}
}

// TestUnevenAttention: decode attention that is not in CUDA graphs waits for the longest context on Hopper. Until 0.10
// it is in none by default.
func TestUnevenAttention(t *testing.T) {
	for _, c := range []struct {
		gpu, engine, kernels string
		want                 float64
	}{
		{"H100", "vllm_version: 0.10.2", "", 132. / 8},
		{"H200", "vllm_version: 0.10.2, tensor_parallel_size: 4", "", 132. / 2},
		{"H100", "vllm_version: 0.11.0", "", 0},
		{"H100", "enforce_eager: true", "", 132. / 8},
		{"H100", "vllm_version: 0.19.0", "cudagraph_mode: PIECEWISE", 132. / 8},
		{"H100", "vllm_version: 0.10.2", "cudagraph_mode: FULL", 0},
		{"B200", "vllm_version: 0.10.2", "", 0},
		{"A100-SXM-80GB", "vllm_version: 0.10.2", "", 0},
	} {
		d, _, err := parseDeployment(fmt.Sprintf("model: meta-llama/Llama-3.1-8B, gpu: %s, engine: {%s}, "+
			"latency: {model: operators, kernels: {%s}}", c.gpu, c.engine, c.kernels))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		} else if wave := d.Computed.Operators.Wave; wave != c.want {
			t.Errorf("%+v: a wave of %g sequences", c, wave)
		}
	}
}

// TestTensorFloat32: routers in 32 bits use tensor cores if a setting allows it, and on Blackwell since 0.33.
func TestTensorFloat32(t *testing.T) {
	catalog, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		gpu, version, precision string
		want                    bool
	}{
		{"B200", "0.19", "", false},
		{"B200", "0.19", "highest", false},
		{"B200", "0.19", "high", true},
		{"H100", "0.19", "medium", true},
		{"B200", "0.33", "", true},
		{"B200", "0.33", "highest", true},
		{"H100", "0.33", "", false},
	} {
		gpu, err := catalog.GPU(c.gpu)
		if err != nil {
			t.Fatal(err)
		}
		var d Deployment
		d.Engine.VLLMVersion, d.Latency.Kernels.Float32MatmulPrecision = c.version, c.precision
		if got := d.tensorFloat32(gpu); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
