package sim

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/metrics"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// TestCaveats: the metrics warn about step times that were not measured.
func TestCaveats(t *testing.T) {
	const file = `version: 1
deployments:
  - id: line
    model: m
    engine: {num_gpu_blocks_override: 1000}
    latency: {alpha_us: [0, 0, 0], beta_us: [1000, 1, 1],
      range: {decode_sequences: [2, 3], input_tokens: [20, 100], output_tokens: [1, 50], prefill_tokens: [1, 150]}}
  - {id: roof, model: Qwen/Qwen3-8B, gpu: H100, latency: {model: roofline}}
  - {id: other, model: Qwen/Qwen3-14B, gpu: L4, engine: {tensor_parallel_size: 4}}
  - {id: kernels, model: Qwen/Qwen3-32B, gpu: H100, engine: {tensor_parallel_size: 2}}
`
	name := filepath.Join(t.TempDir(), "c.yaml")
	must(os.WriteFile(name, []byte(file), 0o666))
	c, err := cluster.Load(name, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	computed := []string{"deployment roof: step times are computed from a roofline, not measured",
		"deployment other: step times are computed from a roofline, not measured: nothing was measured for this " +
			"model, GPU and parallelism, and there are no tables of measured kernels of L4-24GB",
		"deployment kernels: step times are sums of kernels measured on h100_sxm"}
	request := func(input, output string) string {
		return `{"kind":"request","id":"` + input + "-" + output + `","arrival_us":0,"input_tokens":` + input +
			`,"output_tokens":` + output + "}\n"
	}
	for _, x := range []struct {
		workload string
		want     []string
	}{
		{request("20", "50") + request("100", "1"), computed},
		{request("10", "60"), []string{"deployment line: step times are extrapolated: " +
			"its input_tokens go down to 10; the measured range is 20 to 100; " +
			"output_tokens go up to 60; the measured range is 1 to 50"}},
		{strings.Repeat(request("99", "9"), 1) + request("98", "9") + request("97", "9") + request("96", "9"),
			[]string{"deployment line: step times are extrapolated: its decode_sequences go up to 4; the " +
				"measured range is 2 to 3; " +
				"prefill_tokens go up to 390; the measured range is 1 to 150"}},
	} {
		var out bytes.Buffer
		must(runCluster(context.Background(), c, mustSpecs(c), strings.NewReader(x.workload), &out,
			Options{Trace: "minimal"}))
		var m metrics.Record
		r := stream.NewReader(&out)
		for r.Next() {
			if r.Kind() == stream.KindMetrics {
				must(r.Decode(&m))
			}
		}
		if len(x.want) == 1 {
			x.want = append(x.want, computed...)
		}
		if diff := cmp.Diff(x.want, m.Warnings[:len(x.want)]); diff != "" {
			t.Errorf("%s:\n%s", x.workload, diff)
		}
	}
}

// TestJitter: the same seed gives the same run, another seed another run, and cv 0 the run without
// jitter.
func TestJitter(t *testing.T) {
	play := func(cv string, seed uint64) string {
		c, err := cluster.Load("", cluster.Options{Overrides: []string{"deployments.main.latency.jitter.cv=" + cv,
			"deployments.main.replicas=2"}})
		if err != nil {
			t.Fatal(err)
		}
		specs, err := replicaSpecs(c, seed)
		if err != nil {
			t.Fatal(err)
		}
		var in, out bytes.Buffer
		for range 3 {
			in.WriteString(`{"kind":"request","id":"` + string(rune('a'+in.Len()%26)) +
				`","arrival_us":0,"input_tokens":100,"output_tokens":50}` + "\n")
		}
		must(runCluster(context.Background(), c, specs, &in, &out, Options{Trace: "decisions", Check: true}))
		times := ""
		for _, o := range readOutcomes(t, out.Bytes()) {
			times += o.ID + " " + string(stream.Digest(o.CompletedUS)) + " "
		}
		return times
	}
	plain, one, same, other := play("0", 1), play("0.2", 1), play("0.2", 1), play("0.2", 2)
	if one != same || one == other || one == plain || plain != play("0", 2) {
		t.Errorf("seed 1: %s and again %s, seed 2: %s, no jitter: %s", one, same, other, plain)
	}
}
