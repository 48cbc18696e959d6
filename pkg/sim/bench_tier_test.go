package sim

import (
	"fmt"
	"testing"

	"blis/pkg/internal/reference"
)

// BenchmarkTier simulates the workload of BenchmarkSim/100k-16 without and with a KV tier in the hosts' memory. Their
// ratio is the cost of the tier.
func BenchmarkTier(b *testing.B) {
	workload := benchWorkload(1e5, 16*22)
	const latency = "{model: linear, alpha_us: [2000, 0, 30], beta_us: [12200, 35, 14]}"
	const tier = latency + `
    kv_tiers: [{tier: cpu, gib: 64, load: {latency_us: 50, gb_per_s: 25}, store: {latency_us: 50, gb_per_s: 25}}]`
	for _, of := range []struct{ name, latency string }{{"none", latency}, {"cpu", tier}} {
		file := benchFile(b, 16, "{type: least-loaded}", of.latency)
		b.Run(of.name, func(b *testing.B) { benchRun(b, file, workload, 1e5) })
	}
}

// BenchmarkStorage simulates half a million output tokens with a tier and a storage below it, in outputs of three
// lengths. A token takes as long in each.
func BenchmarkStorage(b *testing.B) {
	const tokens = 1 << 19
	file := benchFile(b, 1, "{type: least-loaded}", `{model: linear, alpha_us: [0, 0, 0], beta_us: [5000, 35, 14]}
    kv_tiers:
      - {tier: cpu, gib: 16, load: {gb_per_s: 25}, store: {gb_per_s: 25}}
      - {tier: storage, gib: 2000, load: {gb_per_s: 50}, store: {gb_per_s: 50}}`)
	for _, output := range []int{256, 2048, 16384} {
		var requests []reference.Request
		for i := range tokens / output {
			requests = append(requests, reference.Request{ID: fmt.Sprint("r", i), ArrivalUS: int64(i * output * 100),
				DeadlineUS: reference.Never, Input: 256, Output: output})
		}
		workload := workloadOf(requests)
		b.Run(fmt.Sprint(output), func(b *testing.B) { benchRun(b, file, workload, tokens) })
	}
}

// BenchmarkPools simulates the workload of BenchmarkSim/100k-16 with 16 replicas, and with 10 of them behind a prefill
// pool of 6 that computes all prompts. Their ratio is the cost of disaggregation.
func BenchmarkPools(b *testing.B) {
	workload := benchWorkload(1e5, 16*22)
	const latency = "{model: linear, alpha_us: [2000, 0, 30], beta_us: [12200, 35, 14]}"
	const pools = latency + `
    architecture: disaggregated
    prefill: {replicas: 6}
    decider: {type: always}`
	for _, of := range []struct {
		name, latency string
		replicas      int
	}{{"none", latency, 16}, {"disaggregated", pools, 10}} {
		file := benchFile(b, of.replicas, "{type: least-loaded}", of.latency)
		b.Run(of.name, func(b *testing.B) { benchRun(b, file, workload, 1e5) })
	}
}
