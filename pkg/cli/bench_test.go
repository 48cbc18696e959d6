package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"blis/pkg/gen"
	"blis/pkg/sim"
	"blis/pkg/summarize"
)

// BenchmarkPipe runs blis-sim | blis-summarize on a workload in memory, with every outcome
// and decision in between.
func BenchmarkPipe(b *testing.B) {
	for _, size := range []struct {
		name               string
		requests, replicas int
	}{{"100k-16", 1e5, 16}, {"1m-64", 1e6, 64}} {
		if testing.Short() && size.requests > 1e5 {
			continue
		}
		b.Run(size.name, func(b *testing.B) {
			dir := b.TempDir()
			spec, cluster := filepath.Join(dir, "spec.yaml"), filepath.Join(dir, "cluster.yaml")
			write(b, spec, fmt.Sprintf(`version: "2"
aggregate_rate: %d
requests: %d
clients:
  - id: c
    rate_fraction: 1
    arrival: {process: poisson}
    input_distribution: {type: gaussian, params: {mean: 512, std_dev: 256, min: 1}}
    output_distribution: {type: gaussian, params: {mean: 256, std_dev: 128, min: 1}}
    prefix_spec: {num_prefix_groups: 512, prefix_length: {type: constant, params: {value: 256}}}
`, 22*size.replicas, size.requests))
			write(b, cluster, fmt.Sprintf(`version: 1
deployments:
  - id: main
    model: bench
    replicas: %d
    engine: {num_gpu_blocks_override: 16384}
    latency: {model: linear, alpha_us: [2000, 0, 30], beta_us: [12200, 35, 14]}
policies: {routing: {type: weighted}}
`, size.replicas))
			var workload bytes.Buffer
			if err := gen.Run(b.Context(), nil, &workload, gen.Options{Spec: spec}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				r, w := io.Pipe()
				go func() {
					w.CloseWithError(
						sim.Run(b.Context(), bytes.NewReader(workload.Bytes()), w,
							sim.Options{Cluster: cluster, Trace: "decisions"}),
					)
				}()
				if err := summarize.Run(b.Context(), r, io.Discard, summarize.Options{Format: "text"}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size.requests)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

func write(b *testing.B, name, text string) {
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}
