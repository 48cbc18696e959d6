package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blis/pkg/gen"
	"blis/pkg/metrics"
	"blis/pkg/sim"
	"blis/pkg/stream"
	"blis/pkg/summarize"

	"github.com/google/go-cmp/cmp"
)

// traffic is a workload with this rate in requests/s and this number of requests. Prompts
// share prefixes, and outputs have a few hundred tokens.
func traffic(t *testing.T, rate float64, requests int) []byte {
	t.Helper()
	spec := filepath.Join(t.TempDir(), "spec.yaml")
	text := fmt.Sprintf(`version: "2"
aggregate_rate: %g
requests: %d
clients:
  - id: c
    rate_fraction: 1
    arrival: {process: gamma, cv: 1.5}
    input_distribution: {type: lognormal, params: {mean: 900, std_dev: 600, min: 310, max: 6000}}
    output_distribution: {type: lognormal, params: {mean: 200, std_dev: 150, min: 2, max: 1000}}
    prefix_spec: {num_prefix_groups: 4, prefix_length: {type: constant, params: {value: 304}}}
`, rate, requests)
	if err := os.WriteFile(spec, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := gen.Run(t.Context(), nil, &out, gen.Options{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// summary holds the parts of blis-summarize's document that the tests use.
type summary struct {
	Refs      []summarize.StreamRef `json:"refs"`
	Warnings  []string              `json:"warnings"`
	Workload  summarize.Workload    `json:"workload"`
	Anomalies []stream.Anomaly      `json:"anomalies"`
	Metrics   struct {
		Queue      struct{ Mean float64 } `json:"queue"`
		Throughput struct{ RPS float64 }  `json:"throughput"`
		KV         struct {
			Hit float64 `json:"prefix_hit_ratio"`
		} `json:"kv"`
		Sessions *metrics.Sessions `json:"sessions"`
	} `json:"metrics"`
}

func summarized(t *testing.T, data []byte, o summarize.Options) (s summary) {
	t.Helper()
	o.Format = "json"
	var out bytes.Buffer
	if err := summarize.Run(t.Context(), bytes.NewReader(data), &out, o); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func simulated(t *testing.T, workload []byte, cluster string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := sim.Run(t.Context(), bytes.NewReader(workload), &out,
		sim.Options{Cluster: cluster, Trace: "decisions"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// between returns the options that select a time interval of a run, in s.
func between(t *testing.T, from, to float64) (o summarize.Options) {
	t.Helper()
	for _, i := range []struct {
		to *summarize.Instant
		at float64
	}{{&o.From, from}, {&o.To, to}} {
		if err := i.to.UnmarshalText(fmt.Appendf(nil, "%.3fs", i.at)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// Queues grow from a load of 1 on: at 0.5 no request waits, at 1.3 queue time grows by the
// excess of 0.3.
func TestQueuesGrowAboveLoadOne(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates long runs; run without -short")
	}
	const requests = 8000
	builtIn := summarize.Options{Cluster: new(string)}
	perSecond := summarized(t, traffic(t, 100, requests), builtIn).Workload.Load.Models[0].Capacity
	for _, load := range []float64{0.5, 0.9, 1.3} {
		workload := traffic(t, load*perSecond, requests)
		if got := *summarized(t, workload, builtIn).Workload.Load.Offered; math.Abs(got/load-1) > 0.05 {
			t.Errorf("the load is %.3f, want %g", got, load)
		}
		run := simulated(t, workload, "")
		span := requests / (load * perSecond)
		early := summarized(t, run, between(t, span*0.4, span*0.6)).Metrics.Queue.Mean
		late := summarized(t, run, between(t, span*0.8, span)).Metrics.Queue.Mean
		t.Logf("load %g: queue time %.0f ms, later %.0f ms", load, early, late)
		// The excess waits: for (load - 1)·s after s seconds. Batch slots fill first.
		grown := 1000 * 0.4 * span * (load - 1)
		if load < 1 && (early > 100 || late > 100) || load > 1 && math.Abs((late-early)/grown-1) > 0.25 {
			t.Errorf("load %g: queue time grows from %.0f to %.0f ms, by %.0f", load, early, late, late-early)
		}
	}
}

// The capacity is the throughput of a saturated simulation, whatever limits the steps.
func TestCapacityIsSaturatedThroughput(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates long runs; run without -short")
	}
	for _, c := range []struct {
		name, deployment, limit string
		low, high               float64 // of capacity by throughput
	}{
		{"sequences", "model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100-SXM-80GB, engine: {async_scheduling: " +
			"true}", "max_num_seqs", 0.99, 1.04},
		{"tokens", "model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100-SXM-80GB, engine: {max_num_batched_tokens: " +
			"800, max_num_seqs: 800}", "max_num_batched_tokens", 0.99, 1.04},
		{"roofline", "model: Qwen/Qwen3-14B, gpu: H100-SXM-80GB, latency: {model: roofline}, engine: " +
			"{max_num_seqs: 128}", "max_num_seqs", 0.99, 1.04},
		// The capacity does not account for preemptions.
		{"KV cache", "model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100-SXM-80GB, engine: " +
			"{num_gpu_blocks_override: 4000}", "kv_cache", 1, 1.12},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := filepath.Join(t.TempDir(), "cluster.yaml")
			text := "version: 1\ndeployments: [{id: a, " + c.deployment + "}]\n"
			if err := os.WriteFile(cluster, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			workload := traffic(t, 10000, 20000)
			described := summarized(t, workload, summarize.Options{Cluster: &cluster}).Workload
			run := summarized(t, simulated(t, workload, cluster), summarize.Options{}).Metrics
			m := described.Load.Models[0]
			ratio := m.Capacity / run.Throughput.RPS
			t.Logf("capacity %.2f/s by %s, throughput %.2f/s: %.3f", m.Capacity, m.Limit, run.Throughput.RPS, ratio)
			if m.Limit != c.limit || ratio < c.low || ratio > c.high {
				t.Errorf("capacity %.2f/s by %s, throughput %.2f/s: %.3f", m.Capacity, m.Limit, run.Throughput.RPS,
					ratio)
			}
		})
	}
}

// The described prefix hits are those of a cache without evictions on one replica that
// finishes each request before the next.
func TestDescribedHitsEqualCacheHits(t *testing.T) {
	cluster := filepath.Join(t.TempDir(), "cluster.yaml")
	text := "version: 1\ndeployments: [{id: a, model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100-SXM-80GB, " +
		"engine: {num_gpu_blocks_override: 1000000}}]\n"
	if err := os.WriteFile(cluster, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	workload := traffic(t, 0.05, 300)
	want := summarized(t, simulated(t, workload, cluster), summarize.Options{}).Metrics.KV.Hit
	if got := summarized(t, workload, summarize.Options{}).Workload.Prefix.BlockHit; got != want || got < 0.1 {
		t.Errorf("described hit ratio %g, simulated %g", got, want)
	}
}

// A workload and a run of it have the same workload digest.
func TestRunHasDigestOfWorkload(t *testing.T) {
	workload := traffic(t, 50, 20)
	described, run := summarized(t, workload, summarize.Options{}).Refs[0],
		summarized(t, simulated(t, workload, ""), summarize.Options{}).Refs[0]
	if described.WorkloadDigest != run.WorkloadDigest || described.WorkloadDigest == "" ||
		described.SpecDigest != run.SpecDigest ||
		*described.WorkloadSeed != *run.WorkloadSeed {
		t.Errorf("%+v and %+v", described, run)
	}
}

// A time interval of a run counts the sessions that arrive in it. Conditions (--where)
// apply to requests only.
func TestSessionsOfTimeInterval(t *testing.T) {
	var workload []byte
	for i := range 4 {
		workload = fmt.Appendf(
			workload,
			`{"kind":"session","id":"s%d","arrival_us":%d,"steps":[{"id":"a","input_tokens":100,"output_tokens":10},`+
				`{"id":"t","after":[0],"tool":"x","latency_us":%d,"output_tokens":1},`+
				`{"id":"b","after":[1],"input_tokens":120,"output_tokens":20}]}`+"\n",
			i,
			1_000_000*i,
			100_000*(i+1),
		)
	}
	run := simulated(t, workload, "")
	carried := summarized(t, run, summarize.Options{})
	if carried.Metrics.Sessions.Completed != 4 || carried.Metrics.Sessions.Tool.Max != 400 {
		t.Fatalf("%+v", carried.Metrics.Sessions)
	}
	if diff := cmp.Diff(carried.Metrics.Sessions, summarized(t, run, between(t, 0, 100)).Metrics.Sessions); diff != "" {
		t.Errorf("all of them: %s", diff)
	}
	if s := summarized(t, run, between(t, 1, 3)).Metrics.Sessions; s.Offered != 2 || s.Tool.Max != 300 {
		t.Errorf("two of them: %+v", s)
	}
	var where summarize.Where
	if err := where.UnmarshalText([]byte("input_tokens > 110")); err != nil {
		t.Fatal(err)
	}
	s := summarized(t, run, summarize.Options{Where: where})
	if s.Metrics.Sessions.Tool.Count > 0 ||
		!slices.ContainsFunc(s.Warnings,
			func(w string) bool { return strings.HasPrefix(w, "session metrics are missing") }) {
		t.Errorf("with a condition: %+v, %q", s.Metrics.Sessions, s.Warnings)
	}
}
