package sim

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/latency"
	"blis/pkg/stream"
)

// benchTie makes runs comparable with those of revisions that have no such parameter.
var benchTie = flag.String("benchtie", "", "the `RULE` of ties in routing, if not the default")

// BenchmarkSim simulates whole workloads, from a compressed stream in memory to a run at trace level
// minimal. It reports the CPU time of all threads per request, including the reader's.
func BenchmarkSim(b *testing.B) {
	for _, size := range []struct {
		name               string
		requests, replicas int
		rate               float64 // requests/s per replica; 22 is about 75 % load
	}{
		{"1k-1", 1e3, 1, 22}, {"10k-4", 1e4, 4, 22}, {"10k-4-idle", 1e4, 4, 2}, {"100k-16", 1e5, 16, 22},
		{"1m-16", 1e6, 16, 22}, {"1m-64", 1e6, 64, 22},
	} {
		if testing.Short() && size.requests > 1e5 {
			continue
		}
		var workload []byte
		for _, routing := range []string{"prefix", "least-loaded"} {
			b.Run(size.name+"/"+routing, func(b *testing.B) {
				if workload == nil {
					workload = benchWorkload(size.requests, size.rate*float64(size.replicas))
				}
				benchRun(b, benchCluster(b, size.replicas, routing), workload, size.requests)
			})
		}
	}
}

// BenchmarkLatency simulates the same workload with a roofline, with a linear fit to its step times, so
// that both take about as many steps, and with the operators model: the differences are the cost of
// the models' arithmetic.
func BenchmarkLatency(b *testing.B) {
	workload := benchWorkload(1e5, 16*22)
	roofline := benchFile(b, 16, "{type: least-loaded}", "{model: roofline, alpha_us: [2000, 0, 30]}")
	c, err := cluster.Load(roofline, cluster.Options{})
	if err != nil {
		b.Fatal(err)
	}
	step := func(x latency.Batch) float64 { return float64(mustSpecs(c)[0].model.Step(x)) }
	one := step(latency.Batch{Decode: 1, Context: 640})
	decode := (step(latency.Batch{Decode: 65, Context: 65 * 640}) - one) / 64
	prefill := (step(latency.Batch{Decode: 1, Context: 640, Prefill: 512, Chunks: 1, Pairs: 512 * 513 / 2}) - one) / 512
	linear := benchFile(b, 16, "{type: least-loaded}",
		fmt.Sprintf("{model: linear, alpha_us: [2000, 0, 30], beta_us: [%g, %g, %g]}", one-decode, prefill, decode))
	for _, of := range []struct{ name, file string }{{"linear", linear}, {"roofline", roofline},
		{"operators", benchFile(b, 16, "{type: least-loaded}", "{model: operators, alpha_us: [2000, 0, 30]}")}} {
		b.Run(of.name, func(b *testing.B) { benchRun(b, of.file, workload, 1e5) })
	}
}

// benchRun simulates a workload with the given number of requests.
func benchRun(b *testing.B, file string, workload []byte, requests int) {
	runtime.GC()
	before := cpuTime()
	for b.Loop() {
		o := Options{Cluster: file, Trace: "minimal"}
		if err := Run(context.Background(), bytes.NewReader(workload), io.Discard, o); err != nil {
			b.Fatal(err)
		}
	}
	all := float64(b.N) * float64(requests)
	b.ReportMetric((cpuTime()-before)*1e6/all, "cpu-µs/request")
	b.ReportMetric(all/b.Elapsed().Seconds(), "requests/s")
}

// cpuTime is the CPU time of the process in seconds.
func cpuTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// benchWorkload has Poisson arrivals, prompts N(512, 256) that start with one of 512 prefixes of 256
// tokens, and outputs N(256, 128).
func benchWorkload(n int, rate float64) []byte {
	var out bytes.Buffer
	w := stream.NewWriter(&out, false)
	must(w.Header(&stream.Header{Stream: stream.StreamWorkload, StreamVersion: stream.StreamVersion, Tool: "bench"}))
	r := rand.New(rand.NewPCG(1, 2))
	normal := func(mean, dev float64) int64 { return int64(math.Max(1, math.Round(mean+dev*r.NormFloat64()))) }
	prompt := make([]stream.Segment, 1)
	at := 0.0
	for i := range n {
		at += r.ExpFloat64() / rate * 1e6
		q := stream.Request{ID: fmt.Sprintf("req-%06d", i), ArrivalUS: stream.Micros(at), DeadlineUS: stream.Never,
			InputTokens: normal(512, 256), OutputTokens: normal(256, 128)}
		if q.InputTokens > 1 {
			prompt[0] = stream.Segment{ID: fmt.Sprintf("group-%d", r.IntN(512)), Tokens: min(256, q.InputTokens-1)}
			q.Prompt = prompt
		}
		must(w.Request(&q))
	}
	must(w.End(&stream.End{}))
	must(w.Close())
	return out.Bytes()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func benchCluster(b testing.TB, replicas int, routing string) string {
	spec, params := "least-loaded", ""
	if routing == "prefix" {
		spec, params = "weighted", "prefix-affinity: 3, queue-depth: 2, "
	}
	if *benchTie != "" {
		params += "tie: " + *benchTie
	}
	spec = fmt.Sprintf("{type: %s, params: {%s}}", spec, params)
	return benchFile(b, replicas, spec, "{model: linear, alpha_us: [2000, 0, 30], beta_us: [12200, 35, 14]}")
}

func benchFile(b testing.TB, replicas int, routing, steps string) string {
	file := filepath.Join(b.TempDir(), "cluster.yaml")
	text := fmt.Sprintf(`version: 1
deployments:
  - id: main
    model: meta-llama/Llama-3.1-8B
    gpu: H100-SXM-80GB
    replicas: %d
    engine: {num_gpu_blocks_override: 16384}
    latency: %s
policies: {routing: %s}
`, replicas, steps, routing)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	return file
}
